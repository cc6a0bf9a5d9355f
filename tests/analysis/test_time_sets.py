import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.time_sets import TimeSet

moments = st.integers(0, 60)
intervals = st.lists(st.tuples(moments, moments).map(sorted), max_size=12)


def a_set(pairs):
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return TimeSet.union(array[:, 0], array[:, 1])


def members(pairs):
    return {moment for start, end in pairs for moment in range(start, end)}


def of(found):
    return members(zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True))


@given(intervals)
def test_a_union_holds_what_any_interval_holds_once(pairs):
    found = a_set(pairs)
    assert of(found) == members(pairs)
    assert found.total_ns == len(members(pairs))
    assert (found.start_ns[1:] > found.end_ns[:-1]).all()


@given(intervals, moments, moments)
def test_what_lies_within_an_interval_is_counted_exactly(pairs, one, other):
    start, end = sorted((one, other))
    inside = a_set(pairs).within(np.array([start]), np.array([end]))
    assert inside.tolist() == [len(members(pairs) & set(range(start, end)))]


@given(intervals, moments, moments)
def test_a_complement_is_the_rest_of_the_window(pairs, one, other):
    start, end = sorted((one, other))
    assert of(a_set(pairs).complement(start, end)) == set(range(start, end)) - members(pairs)


@given(intervals, intervals)
def test_difference_and_common_part_are_those_of_the_members(left, right):
    assert of(a_set(left).minus(a_set(right))) == members(left) - members(right)
    assert of(a_set(left).common(a_set(right))) == members(left) & members(right)
