"""MEM802: shared memory, less sure where no worker exists."""

from advisor.model.failure import Failure, FailureKind
from advisor.rules.memory.shared_memory_exhausted import (
    BARE_SCORE,
    MAPPED_FILE_SCORE,
    NO_WORKERS_SCORE,
    SHARED_MEMORY_NAMED_SCORE,
    WORKER_SCORE,
    shared_memory_exhausted,
)
from advisor.rules.samples import MIB, a_failure, a_log
from advisor.rules.samples_time import a_log_that_mentions

check = shared_memory_exhausted.check


IN_A_WORKER = "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error."


def a_bus_error(generation: str = "bus error", requested_bytes: int | None = None, message: str = IN_A_WORKER) -> Failure:
    return a_failure(
        kind=FailureKind.SHARED_MEMORY_EXHAUSTED,
        generation=generation,
        message=message,
        requested_bytes=requested_bytes,
        total_bytes=None,
    )


def test_the_number_of_workers_decides_how_sure_a_bus_error_is() -> None:
    without, with_workers = (check(a_bus_error(), a_log(settings=(("num_workers", count),))) for count in ("0", "8"))
    assert without is not None
    assert with_workers is not None
    assert without.confidence == NO_WORKERS_SCORE < with_workers.confidence
    assert any("8 workers" in fact.statement for fact in with_workers.observations)


def test_what_else_the_log_says_decides_what_a_bus_error_is_worth() -> None:
    def score(topic: str = "", line: int = 40, message: str = IN_A_WORKER) -> float:
        log = a_log_that_mentions(topic, "some line", line=line) if topic else a_log()
        return check(a_bus_error(message=message), log).confidence

    assert score("shared-memory") == SHARED_MEMORY_NAMED_SCORE
    assert score("memory-mapped-file") == MAPPED_FILE_SCORE
    assert score() == WORKER_SCORE
    assert score("shared-memory", line=a_bus_error().line) == WORKER_SCORE  # the message's own advice
    assert score(message="Bus error (core dumped)") == BARE_SCORE
    assert SHARED_MEMORY_NAMED_SCORE > WORKER_SCORE > MAPPED_FILE_SCORE > BARE_SCORE > NO_WORKERS_SCORE


def test_a_bus_error_is_not_said_to_be_more_than_it_is() -> None:
    assert "probably" in check(a_bus_error(), None).statement
    assert "may have been" in check(a_bus_error(message="Bus error (core dumped)"), None).statement
    assert "was full" in check(a_bus_error("torch segment"), None).statement


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
