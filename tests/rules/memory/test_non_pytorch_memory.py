"""MEM602: this process's memory outside the allocator, beyond a context."""

import pytest

from advisor.model.failure import FailureKind
from advisor.rules.capacity import CONTEXT_BYTES
from advisor.rules.memory.non_pytorch_memory import non_pytorch_memory
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log

check = non_pytorch_memory.check


@pytest.mark.parametrize(
    ("total", "own", "fires"),
    [
        (24 * GIB, CONTEXT_BYTES + 1, True),
        (24 * GIB, CONTEXT_BYTES, False),
        (80 * GIB, 4 * GIB, True),
        (80 * GIB, 4 * GIB - 1, False),  # below a twentieth of the device
    ],
)
def test_it_takes_more_than_a_context_and_a_twentieth_of_the_device(total: int, own: int, fires: bool) -> None:
    failure = a_failure(
        total_bytes=total, requested_bytes=GIB, free_bytes=200 * MIB, allocated_bytes=10 * GIB, reserved_unallocated_bytes=0,
        process_bytes=10 * GIB + own,
    )  # fmt: skip
    assert (check(failure, None, None) is not None) is fires


def test_an_undivided_sum_is_only_a_candidate() -> None:
    fields = {
        "total_bytes": 32 * GIB,
        "requested_bytes": GIB,
        "free_bytes": GIB // 2,
        "reserved_unallocated_bytes": GIB,
    }
    failure = a_failure(allocated_bytes=27 * GIB, **fields)
    alone, distributed = check(failure, a_log(), None), check(failure, a_log(world_size=8), None)
    assert alone is not None
    assert distributed is not None
    assert alone.confidence < distributed.confidence < 0.5
    assert check(a_failure(allocated_bytes=10 * GIB, **fields), a_log(), None) is None  # no library takes half a device


def test_nccl_that_is_refused_memory_explains_the_library_failure() -> None:
    failure = a_failure(
        kind=FailureKind.COLLECTIVE_ALLOCATION_FAILED,
        message="Failed to CUDA calloc 6291456 bytes",
        total_bytes=None,
    )
    finding = check(failure, None, None)
    assert finding is not None
    assert finding.supersedes == ("MEM607",)


def test_a_ledger_tells_it_too() -> None:
    assert check(None, None, a_ledger(weights=40 * GIB, non_pytorch=6 * GIB)) is not None
    assert check(None, None, a_ledger(weights=40 * GIB, non_pytorch=1 * GIB)) is None
    assert check(None, None, None) is None
