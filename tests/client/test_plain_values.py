import argparse
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import time
from collections import OrderedDict, defaultdict, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.client import plain_values
from advisor.client.plain_values import LONGEST_TEXT, MOST_ITEMS, PlainValues
from advisor.client.redaction import REDACTED

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner) | st.tuples(inner, inner),
    max_leaves=60,
)


def read(value, name=""):
    return PlainValues().read(value, name)


@given(JSON, st.text())
def test_every_value_becomes_one_of_json(value, name):
    json.loads(json.dumps(read(value, name), allow_nan=False))


@given(
    st.dictionaries(
        st.sampled_from("abcdefg"),
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_numbers_and_switches_stay_what_they_are(values):
    assert read(values, "config") == values


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()

    def __str__(self):
        raise AssertionError

    def __repr__(self):
        raise AssertionError


class Silent:
    def __repr__(self):
        raise AssertionError

    __str__ = __repr__

    def __getattr__(self, name):
        raise AssertionError(name)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Color.RED, "red"),
        (Level.HIGH, 3),
        (Word("adam"), "adam"),
        (True, True),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (2**300, "<int of 301 bits>"),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (dt.timedelta(seconds=3), "0:00:03"),
        (decimal.Decimal("0.1"), "0.1"),
        (deque([1, 2]), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(int, a=1), {"a": 1}),
        ({1: "x", None: "y", 2.5: "z", Color.RED: 0, (1,): 1}, {"1": "x", "None": "y", "2.5": "z", "red": 0, "<tuple>": 1}),
        (b"12345", "<5 bytes>"),
        (range(3), "range(0, 3)"),
        (1j, "1j"),
        (argparse.Namespace(lr=1, inner=argparse.Namespace(a=(1, 2))), {"lr": 1, "inner": {"a": [1, 2]}}),
        (Silent(), f"<{__name__}.Silent>"),
        (Silent, f"<class {__name__}.Silent>"),
        (math, "<module math>"),
        (read, f"<function {__name__}.read>"),
        (print, "<builtin_function_or_method>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_value_is_shown_without_asking_it(value, shown):
    assert read(value) == shown


def test_secrets_are_hidden_by_name_at_any_depth():
    config = {
        "wandb": {"key": "abc", "project": "p", "api_key": "q"},
        "api": {"key": "abc"},
        "hub_token": "abc",
        "tokenizer": {"name": "gpt2", "pad_token": "<pad>", "max_tokens": 5},
        "credentials": {"user": "me", "pin": 1234, "more": ["x", {"y": "z"}]},
        "keys": ["input_ids", "labels"],
        "tokens": ["a", "b"],
        "api_keys": ["a", "b"],
        "db": "postgres://u:p@h/d",
        "password": 1234,
        "use_auth_token": True,
    }
    values = PlainValues()
    assert values.read(config, "config") == {
        "wandb": {"key": REDACTED, "project": "p", "api_key": REDACTED},
        "api": {"key": REDACTED},
        "hub_token": REDACTED,
        "tokenizer": {"name": "gpt2", "pad_token": "<pad>", "max_tokens": 5},
        "credentials": {"user": REDACTED, "pin": REDACTED, "more": [REDACTED, {"y": REDACTED}]},
        "keys": ["input_ids", "labels"],
        "tokens": ["a", "b"],
        "api_keys": [REDACTED, REDACTED],
        "db": f"postgres://{REDACTED}@h/d",
        "password": REDACTED,
        "use_auth_token": True,
    }
    assert values.redacted_count == 12
    assert values.cut_count == 0


def test_a_float_below_the_name_of_a_password_is_hidden():
    assert read({"password": 0.5, "credentials": {"a": 0.5}}) == {"password": REDACTED, "credentials": {"a": REDACTED}}


def test_a_key_of_a_dictionary_that_is_a_secret_is_hidden():
    token = "gh" + "p_" + "aB3dE6" * 6
    assert read({token: 1}) == {REDACTED: 1}


def test_long_deep_and_many_values_are_cut_and_counted():
    values = PlainValues()
    assert values.read("x" * 10_000) == "x" * LONGEST_TEXT
    assert len(values.read(list(range(1000)))) == MOST_ITEMS
    assert len(values.read(dict.fromkeys(range(1000), 0.5))) == MOST_ITEMS
    assert values.cut_count == 1 + 800 + 800
    deep = PlainValues()
    nested = []
    for _ in range(50):
        nested = [nested]
    assert json.dumps(deep.read(nested)) == '[[[[[["<list>"]]]]]]'
    assert deep.cut_count == 1


def test_a_cycle_ends():
    cycle = {"a": 1}
    cycle["self"] = cycle
    assert read(cycle) == {"a": 1, "self": "<dict>"}


def test_a_huge_configuration_takes_no_longer_than_its_limit():
    config = {f"group{number}": {f"name{inner}": [inner] * 100 for inner in range(100)} for number in range(1000)}
    values = PlainValues()
    began = time.process_time()
    values.read(config)
    assert time.process_time() - began < 1.0
    assert values.cut_count > 0


def test_a_dictionary_that_another_thread_changes_under_way_is_given_up(monkeypatch):
    def changing(*_):
        yield "a", 1
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(plain_values, "fields_of", changing)
    values = PlainValues()
    assert values.read({"a": 1}) == "<dict>"
    assert values.cut_count == 1
