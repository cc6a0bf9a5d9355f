"""MEM901: live memory that the record cannot explain."""

import pytest

from advisor.model.finding import Severity
from advisor.model.memory import Moment
from advisor.rules.memory.recording_started_late import (
    LEAST_UNRECORDED_BYTES,
    recording_started_late,
)
from advisor.rules.samples import GIB, a_ledger, a_record

check = recording_started_late.check


@pytest.mark.parametrize(
    ("live", "missing", "fires"),
    [
        (20 * GIB, 4 * GIB, True),
        (20 * GIB, 4 * GIB - 1, False),
        (LEAST_UNRECORDED_BYTES, LEAST_UNRECORDED_BYTES, True),
        (LEAST_UNRECORDED_BYTES, LEAST_UNRECORDED_BYTES - 1, False),
    ],
)
def test_it_takes_a_fifth_of_the_live_memory_and_256_mib(live: int, missing: int, fires: bool) -> None:
    finding = check(a_record(dump_allocated_bytes=live, unrecorded_live_bytes=missing), None)
    assert (finding is not None) is fires
    if finding is not None:
        assert finding.severity is Severity.INFO


@pytest.mark.parametrize(("events", "says"), [(1, True), (2, False)])
def test_a_snapshot_without_history_says_so(events: int, says: bool) -> None:
    finding = check(a_record(event_count=events, unrecorded_live_bytes=20 * GIB), None)
    assert finding is not None
    assert ("no history" in finding.statement) is says


@pytest.mark.parametrize(("unattributed", "inferred"), [(GIB, True), (5 * GIB, False)])
def test_what_was_inferred_is_not_called_unknown(unattributed: int, inferred: bool) -> None:
    finding = check(
        a_record(unrecorded_live_bytes=10 * GIB, moment=Moment.PEAK, moment_live_bytes=20 * GIB),
        a_ledger(weights=12 * GIB, unattributed=unattributed),
    )
    assert finding is not None
    assert ("inferred" in finding.statement) is inferred


@pytest.mark.parametrize(("moment", "words"), [(Moment.OOM, "when the request was refused"), (Moment.PEAK, "at the peak")])
def test_its_figures_are_of_the_moment_that_the_ledger_explains_and_say_so(moment: Moment, words: str) -> None:
    record = a_record(dump_allocated_bytes=GIB, moment=moment, moment_live_bytes=20 * GIB, unrecorded_live_bytes=5 * GIB)
    finding = check(record, None)
    assert finding is not None
    assert f"25% of what is live {words}" in finding.statement
    assert f"5 GiB of 20 GiB live {words}" in finding.observations[0].statement
    assert (
        check(a_record(dump_allocated_bytes=5 * GIB, moment=moment, moment_live_bytes=50 * GIB, unrecorded_live_bytes=5 * GIB), None)
        is None
    )


def test_a_ledger_of_another_moment_says_nothing_of_what_was_inferred() -> None:
    record = a_record(unrecorded_live_bytes=10 * GIB, moment=Moment.DUMP)
    finding = check(record, a_ledger(weights=12 * GIB, unattributed=0, at=Moment.PEAK))
    assert finding is not None
    assert "cannot say" in finding.statement
