import io
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ingest.pickle_values import APPENDS, Memo, NotStreamableError, PickleValues


def values_in(pickled):
    """What a pickled list holds, read from behind its mark."""
    head = pickled.index(b"]\x94(") + 3
    reader = PickleValues(io.BytesIO(pickled[head:]), head, len(pickled), Memo(), 1)
    items, closing = reader.values(3, [], [])
    if closing != APPENDS:
        raise NotStreamableError("it is no list")
    assert pickled[reader.offset :] == b"."
    return items


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 400), 1 << 400) | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda parts: st.lists(parts, max_size=5) | st.dictionaries(st.text(max_size=3) | st.integers(), parts, max_size=5),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(plain | st.tuples(st.integers(), st.text(max_size=3)), min_size=2), st.sampled_from([4, 5]))
def test_plain_data_is_what_pickle_makes_of_it(value, protocol):
    pickled = pickle.dumps(value, protocol)
    assert values_in(pickled) == value
    assert list(map(repr, values_in(pickled))) == list(map(repr, value))


def test_what_is_shared_stays_shared():
    inner = ["a"]
    first, second, third = values_in(pickle.dumps([inner, {"b": inner}, inner], 4))
    assert first is third
    assert first is second["b"]


@pytest.mark.parametrize(
    "value",
    [
        [b"bytes", 1],
        [{1.5: 1}, 1],
        [{(1, 2): 3}, 1],
        [{None: 1}, 1],
        [(1, 2, 3, 4), 1],
        [((1,),), 1],
        [(None,), 1],
        [{1, 2}, 1],
        [1j, 1],
        [10**1000, 1],
        ["x" * 40_000, 1],
    ],
)
def test_what_no_snapshot_holds_is_left_to_others(value):
    with pytest.raises(NotStreamableError):
        values_in(pickle.dumps(value, 4))


@pytest.mark.parametrize(
    "body",
    [
        b"K\x01K\x02",  # no end
        b"K\x01u",
        b"K",
        b"e",
        b"}K\x01(K\x01K\x02ue",  # a mark behind something else
        b"](K\x01K\x02ue",
        b"}(K\x01ue",
        b"]\x94h\x01(K\x01e}K\x01K\x02h\x01h\x01(K\x01ee",  # a list that is filled again later
        b"]\x94K\x01ae",
        b"K\x01ae",
        b"ae",
        b"se",
        b"\x85e",
        b"\x94e",
        b"0e",
        b"2e",
        b"K\x01p0\ne",
        b"h\x05e",
        b"\x8c\x01\xffe",
        b"X\xff\xff\xff\xffe",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\xffe",
        b"].",
        b"](" * 100 + b"e" * 100,
    ],
)
def test_what_pickle_may_read_and_no_pickler_writes_is_left_to_others(body):
    pickled = b"\x80\x04]\x94(" + body + b"."
    try:
        whole = pickle.loads(pickled)
    except Exception:  # noqa: BLE001 - pickle raises almost anything
        whole = None
    try:
        items = values_in(pickled)
    except NotStreamableError:
        return
    assert items == whole
