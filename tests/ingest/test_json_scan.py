"""Brackets and quotes alone find the elements that a JSON reader finds."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ingest.json_scan import DEEPEST, open_brackets, scan_list

MANY = 10**6
TEXT = st.text(alphabet='ab"\\{}[],:\n é', max_size=6)
VALUES = st.recursive(
    st.integers() | TEXT | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(VALUES, max_size=6), st.text(max_size=10))
def test_the_elements_of_a_sound_list_are_found_and_its_end(values, behind):
    text = json.dumps(values).encode()
    scan = scan_list(text + behind.encode(), MANY)
    assert scan.end == len(text) - 1
    found = [json.loads(text[start:end]) for start, end in scan.spans]
    assert found == [value for value in values if isinstance(value, dict | list)]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=6), st.data())
def test_of_a_list_cut_anywhere_the_whole_elements_are_found(values, data):
    text = json.dumps(values).encode()
    whole = scan_list(text, MANY)
    cut = data.draw(st.integers(1, len(text) - 1))
    scan = scan_list(text[:cut], MANY)
    assert scan.end is None
    assert scan.spans == tuple(span for span in whole.spans if span[1] <= cut)


@pytest.mark.parametrize(("text", "depth"), [(b"", 0), (b'{"a": [', 2), (b'{"a": "[{"', 1), (b"[]", 0), (b'{"a', None), (b'["\\"', None)])
def test_open_brackets_are_counted_outside_of_texts(text, depth):
    assert open_brackets(text, MANY) == depth


def test_a_scan_gives_up_where_it_is_told_to():
    assert len(scan_list(b"[" + b"{}," * 100, 20).spans) == 10
    assert open_brackets(b"[" * 100, 20) is None
    deep = scan_list(b"[" + b"[" * 10 * DEEPEST, MANY)
    assert deep.token_count == DEEPEST + 1
