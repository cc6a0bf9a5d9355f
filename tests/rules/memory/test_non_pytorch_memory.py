"""MEM602: this process's memory outside the allocator, beyond a context."""

import pytest

from advisor.model.failure import FailureKind
from advisor.model.finding import Finding, Severity
from advisor.model.memory import Moment
from advisor.rules.capacity import CONTEXT_BYTES
from advisor.rules.memory.non_pytorch_memory import non_pytorch_memory
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record


def check(*evidence: object) -> Finding | None:
    """The rule, on what is given of its evidence; the rest is not there."""
    found: Finding | None = non_pytorch_memory.check(*evidence, *[None] * (4 - len(evidence)))
    return found


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


@pytest.mark.parametrize(("outside", "fires"), [(40 * GIB, True), (40 * GIB + 1, False), (8 * GIB, True), (8 * GIB - 1, False)])
def test_a_snapshot_s_rest_of_unknown_owner_is_a_candidate_up_to_half_the_device(outside: int, fires: bool) -> None:
    held = 80 * GIB - outside - 256 * MIB
    ledger = a_ledger(at=Moment.OOM, reserved_bytes=held, activations=held, free=256 * MIB, unattributed=outside)
    finding = check(None, None, ledger, a_record(oom_count=1, oom_requested_bytes=2 * GIB, oom_free_bytes=256 * MIB))
    assert (finding is not None) is fires
    if finding is not None:
        assert finding.severity is Severity.ERROR
        assert finding.confidence == 0.3
