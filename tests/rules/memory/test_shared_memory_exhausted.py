"""MEM802: shared memory, less sure where no worker exists."""

from advisor.model.failure import Failure, FailureKind
from advisor.rules.memory.shared_memory_exhausted import NO_WORKERS_SCORE, shared_memory_exhausted
from advisor.rules.samples import MIB, a_failure, a_log

check = shared_memory_exhausted.check


def a_bus_error(generation: str = "bus error", requested_bytes: int | None = None) -> Failure:
    return a_failure(
        kind=FailureKind.SHARED_MEMORY_EXHAUSTED,
        generation=generation,
        message="Bus error",
        requested_bytes=requested_bytes,
        total_bytes=None,
    )


def test_the_number_of_workers_decides_how_sure_a_bus_error_is() -> None:
    without, with_workers = (check(a_bus_error(), a_log(settings=(("num_workers", count),))) for count in ("0", "8"))
    assert without is not None
    assert with_workers is not None
    assert without.confidence == NO_WORKERS_SCORE < with_workers.confidence
    assert any("8 workers" in fact.statement for fact in with_workers.observations)


def test_a_refused_segment_is_told_with_its_size() -> None:
    finding = check(a_bus_error("NCCL segment", requested_bytes=9 * MIB), None)
    assert finding is not None
    assert "NCCL" in finding.statement
    assert any("9 MiB" in fact.statement for fact in finding.observations)


def test_a_killed_worker_is_not_its_business() -> None:
    assert (
        check(
            a_failure(kind=FailureKind.HOST_OUT_OF_MEMORY, generation="DataLoader worker killed"),
            None,
        )
        is None
    )
