"""MEM607: libraries that were refused memory, less sure where the words disguise it."""

from advisor.model.evidence import Source
from advisor.model.failure import Failure, FailureKind
from advisor.model.node import GpuReading, NodeReading
from advisor.rules.memory.library_allocation_failed import ROOM_BYTES, library_allocation_failed
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
