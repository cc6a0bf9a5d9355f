"""MEM605: a cap that is reached, and not one that is far away."""

import pytest

from advisor.model.finding import Verification
from advisor.rules.memory.process_memory_cap import process_memory_cap
from advisor.rules.samples import GIB, MIB, a_failure

check = process_memory_cap.check


@pytest.mark.parametrize(("reserved", "fires"), [(39 * GIB + 1, True), (39 * GIB, False)])
def test_reserved_and_the_request_must_exceed_it(reserved: int, fires: bool) -> None:
    failure = a_failure(
        requested_bytes=GIB,
        allowed_bytes=40 * GIB,
        allocated_bytes=reserved,
        reserved_unallocated_bytes=0,
        resolution_bytes=0,
    )
    assert (check(failure) is not None) is fires


def test_printed_digits_are_not_surer_than_they_are() -> None:
    failure = a_failure(
        requested_bytes=2 * MIB,
        allowed_bytes=int(1.05 * GIB),
        allocated_bytes=1017 * MIB,
        reserved_unallocated_bytes=55 * MIB,
    )
    assert check(failure) is not None


@pytest.mark.parametrize(("allowed", "fires"), [(int(79.15 * GIB), False), (70 * GIB, True), (None, False)])
def test_a_fraction_of_one_is_no_cap(allowed: int | None, fires: bool) -> None:
    failure = a_failure(
        requested_bytes=GIB,
        allowed_bytes=allowed,
        allocated_bytes=70 * GIB,
        reserved_unallocated_bytes=0,
    )
    assert (check(failure) is not None) is fires


def test_only_arithmetic_on_free_memory_predicts_that_it_fits() -> None:
    fields = {
        "requested_bytes": GIB,
        "allowed_bytes": 40 * GIB,
        "allocated_bytes": 40 * GIB,
        "reserved_unallocated_bytes": 0,
    }
    with_room, without = (
        check(a_failure(free_bytes=30 * GIB, **fields)),
        check(a_failure(free_bytes=GIB // 2, **fields)),
    )
    assert with_room is not None
    assert without is not None
    assert with_room.actions[0].verified_by is Verification.ARITHMETIC
    assert without.actions[0].predicted.fits is None
