"""MEM709: errors that are taken for a lack of memory."""

import pytest

from advisor.ingest import failure_lookalikes
from advisor.model.failure import FailureKind, Mention
from advisor.rules.memory.not_out_of_memory import EXABYTE_BYTES, OTHERS, not_out_of_memory
from advisor.rules.samples import a_failure, a_log

check = not_out_of_memory.check


@pytest.mark.parametrize("generation", [name for name, _ in failure_lookalikes._KINDS])
def test_every_wording_that_the_reader_knows_has_advice(generation: str) -> None:
    assert generation in OTHERS


@pytest.mark.parametrize(("requested", "fires"), [(EXABYTE_BYTES, True), (EXABYTE_BYTES - 1, False)])
def test_an_exabyte_is_a_garbage_size(requested: int, fires: bool) -> None:
    assert (check(a_failure(requested_bytes=requested), None) is not None) is fires


def test_a_bus_error_without_workers_is_not_shared_memory() -> None:
    failure = a_failure(kind=FailureKind.SHARED_MEMORY_EXHAUSTED, generation="bus error", message="Bus error")
    said = Mention(topic="num-workers-0", line=2, text="DataLoader(num_workers=0)")
    finding = check(failure, a_log(mentions=(said,)))
    assert finding is not None
    assert finding.supersedes == ("MEM802",)
    assert check(failure, a_log(settings=(("num_workers", "0"),))) is not None
    assert check(failure, a_log(settings=(("num_workers", "4"),))) is None


def test_an_unknown_wording_is_less_sure() -> None:
    unknown = check(a_failure(kind=FailureKind.NOT_OUT_OF_MEMORY, generation="something new"), None)
    assert unknown is not None
    assert unknown.confidence == 0.6
    assert unknown.settles is not None


def test_where_files_are_mapped_a_bus_error_may_be_theirs() -> None:
    failure = a_failure(
        kind=FailureKind.SHARED_MEMORY_EXHAUSTED,
        generation="bus error",
        message="DataLoader worker (pid 7) is killed by signal: Bus error.",
    )
    mapped = Mention(topic="memory-mapped-file", line=2, text="env = lmdb.open(path)")
    finding = check(failure, a_log(mentions=(mapped,)))
    assert finding is not None
    assert finding.confidence < 0.5
    assert "may be no lack of memory" in finding.statement
    assert finding.supersedes == ()
    assert check(failure, a_log()) is None
