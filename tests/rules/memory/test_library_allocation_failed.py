"""MEM607: libraries that were refused memory, less sure where the words disguise it."""

from advisor.ingest import failure_libraries
from advisor.model.evidence import Source
from advisor.model.failure import Failure, FailureKind
from advisor.model.node import GpuReading, NodeReading
from advisor.rules.memory.library_allocation_failed import ROOM_BYTES, SCORES, library_allocation_failed
from advisor.rules.samples import a_failure

check = library_allocation_failed.check


def a_refusal(generation: str, line: int = 120) -> Failure:
    return a_failure(
        kind=FailureKind.LIBRARY_ALLOCATION_FAILED,
        backend="cuBLAS",
        generation=generation,
        line=line,
        message="status",
        total_bytes=None,
    )


def test_a_disguised_status_is_less_sure_than_a_plain_one() -> None:
    plain, disguised = a_refusal("allocation failed"), a_refusal("disguised as not initialized")
    first, second = check(plain, (plain,), None), check(disguised, (disguised,), None)
    assert first is not None
    assert second is not None
    assert second.confidence < first.confidence


def test_what_is_said_on_empty_devices_too_is_not_above_a_half() -> None:
    for generation in ("fixed workspace", "insufficient resources"):
        failure = a_refusal(generation)
        finding = check(failure, (failure,), None)
        assert finding is not None
        assert finding.confidence <= 0.5
        assert "smaller pieces" in finding.actions[0].title


def test_a_compiler_at_run_time_lacks_the_host_s_memory() -> None:
    failure = a_refusal("host allocation failed")
    finding = check(failure, (failure,), None)
    assert finding is not None
    assert "memory of the host" in finding.statement
    assert [action.title for action in finding.actions] == ["Free memory of the host"]


def test_every_wording_of_the_reader_has_a_score() -> None:
    assert set(SCORES) == {
        failure_libraries.ALLOCATION_FAILED,
        failure_libraries.HOST_ALLOCATION_FAILED,
        failure_libraries.NOT_INITIALIZED,
        failure_libraries.INTERNAL_ERROR,
        failure_libraries.NO_ALGORITHM,
        failure_libraries.FIXED_WORKSPACE,
        failure_libraries.INSUFFICIENT_RESOURCES,
    }


def test_an_earlier_error_explains_a_disguised_status_and_not_a_plain_one() -> None:
    earlier = a_failure(kind=FailureKind.NOT_OUT_OF_MEMORY, line=100)
    later = a_failure(kind=FailureKind.NOT_OUT_OF_MEMORY, line=140)
    disguised, plain = a_refusal("disguised as not initialized"), a_refusal("allocation failed")
    assert check(disguised, (earlier, disguised), None) is None
    assert check(disguised, (disguised, later), None) is not None
    assert check(plain, (earlier, plain), None) is not None


def test_room_on_the_device_makes_it_doubtful() -> None:
    failure = a_refusal("allocation failed")
    scores = []
    for free in (ROOM_BYTES, ROOM_BYTES - 1):
        reading = NodeReading(source=Source(path="smi.txt"), gpus=(GpuReading(index=0, free_bytes=free),))
        finding = check(failure, (failure,), reading)
        assert finding is not None
        scores.append(finding.confidence)
    assert scores[0] < 0.5 < scores[1]


def test_pytorchs_own_message_is_not_its_business() -> None:
    failure = a_failure()
    assert check(failure, (failure,), None) is None
