import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.nesting import parents, self_durations


@st.composite
def calls(draw):
    """Calls of two threads that nest or follow each other, in a shuffled order, with their parents."""
    rows = []

    def add(thread, start, end, parent, depth):
        rows.append((thread, start, end, parent))
        here = len(rows) - 1
        if depth:
            cuts = sorted(draw(st.lists(st.integers(start + 1, end - 1), unique=True, max_size=6)))
            for first, second in zip(cuts[::2], cuts[1::2], strict=False):
                if second - first > 2:
                    add(thread, first, second, here, depth - 1)

    for thread in (1, 2):
        for base in (0, 1000):
            add(thread, base, base + draw(st.integers(3, 900)), -1, 3)
    order = draw(st.permutations(range(len(rows))))
    place = {row: position for position, row in enumerate(order)}
    shuffled = [rows[row] for row in order]
    return [(t, s, e, place[p] if p >= 0 else -1) for t, s, e, p in shuffled]


@given(calls())
def test_each_call_finds_the_innermost_call_around_it(rows):
    columns = np.array([row[:3] for row in rows], dtype=np.int64)
    found = parents(columns[:, 0], columns[:, 1], columns[:, 2])
    assert found.tolist() == [row[3] for row in rows]


@given(calls())
def test_self_times_add_up_to_the_outermost_calls(rows):
    columns = np.array([row[:3] for row in rows], dtype=np.int64)
    duration = columns[:, 2] - columns[:, 1]
    parent = np.array([row[3] for row in rows])
    own = self_durations(parent, duration)
    assert own.sum() == duration[parent < 0].sum()
    assert (own >= 0).all()


def test_nothing_contains_nothing():
    empty = np.zeros(0, dtype=np.int64)
    assert parents(empty, empty, empty).tolist() == []


def test_a_call_that_reaches_beyond_another_is_not_inside_it():
    found = parents(np.array([1, 1]), np.array([0, 5]), np.array([10, 11]))
    assert found.tolist() == [-1, -1]
