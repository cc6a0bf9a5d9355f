"""A search for words finds what the pattern of the same words finds."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.kernel_names import _KINDS
from advisor.analysis.word_search import WordSearch

PATTERNS = [pattern for _, pattern in _KINDS]
PIECES = sorted({piece for pattern in PATTERNS for piece in re.findall(r"[A-Za-z]{2,}", pattern)})
NAMES = st.lists(st.sampled_from([*PIECES, "_", "<", "::", "1", "d", " ", "wino", "fb", "rotary_"]), max_size=6).map("".join)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(NAMES, st.sampled_from(PATTERNS))
def test_it_agrees_with_the_pattern_that_it_stands_for(name, pattern):
    assert WordSearch(pattern).search(name) == bool(re.search(pattern, name, re.IGNORECASE))


@pytest.mark.parametrize(
    ("pattern", "found", "missed"),
    [
        ("all_?reduce", ["AllReduce", "x_all_reduce"], ["all__reduce", "all-reduce"]),
        (r"\bscan|grad(?!e)", ["a::scan", "wgrad"], ["ascan", "grade"]),
        (r"conv(?:ol|\d)|fft[12]d", ["convolve", "conv2", "fft2d"], ["convert", "fft3d"]),
        (r"ab?c", ["ac", "abc"], ["ab"]),
    ],
)
def test_words_may_be_patterns(pattern, found, missed):
    search = WordSearch(pattern).search
    assert all(map(search, found))
    assert not any(map(search, missed))
