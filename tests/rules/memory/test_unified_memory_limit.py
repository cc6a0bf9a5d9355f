"""MEM804: the limit of MPS."""

import pytest

from advisor.model.failure import Failure, FailureKind
from advisor.rules.memory.unified_memory_limit import unified_memory_limit
from advisor.rules.samples import GIB, a_failure

check = unified_memory_limit.check


def a_refusal(**fields: object) -> Failure:
    base: dict[str, object] = {
        "kind": FailureKind.UNIFIED_MEMORY_LIMIT,
        "backend": "MPS",
        "generation": "MPS GiB",
        "total_bytes": None,
    }
    return a_failure(**(base | fields))


@pytest.mark.parametrize(("others", "first"), [(3 * GIB, "empty_cache"), (3 * GIB - 1, "smaller batch")])
def test_the_cache_is_given_back_first_where_it_is_large(others: int, first: str) -> None:
    failure = a_refusal(
        allocated_bytes=7 * GIB,
        other_allocations_bytes=others,
        allowed_bytes=10 * GIB,
        requested_bytes=GIB,
    )
    finding = check(failure)
    assert finding is not None
    assert first in finding.actions[0].change


def test_arithmetic_that_closes_is_surer_than_words() -> None:
    figures = check(a_refusal(allocated_bytes=9 * GIB, allowed_bytes=10 * GIB, requested_bytes=2 * GIB))
    words = check(a_refusal(generation="words only"))
    assert figures is not None
    assert words is not None
    assert words.confidence < figures.confidence


def test_a_buffer_that_metal_refuses_is_another_limit() -> None:
    assert check(a_refusal(generation="Metal buffer limit")) is None
    assert check(a_failure()) is None
