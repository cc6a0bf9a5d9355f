"""MEM902: a dump after the failing frames were gone, and not one between two steps."""

import pytest

from advisor.model.evidence import Source
from advisor.model.tables import MemorySummary
from advisor.rules.memory.snapshot_after_unwind import snapshot_after_unwind
from advisor.rules.samples import GIB, a_failure, a_record

check = snapshot_after_unwind.check


@pytest.mark.parametrize(
    ("live", "reserved", "fires"),
    [
        (10 * GIB, 20 * GIB, True),
        (10 * GIB, 20 * GIB - 1, False),
        (GIB // 4, GIB, True),
        (GIB // 4, GIB - 1, False),
    ],
)
def test_reserved_is_twice_what_is_live_and_worth_speaking_of(live: int, reserved: int, fires: bool) -> None:
    record = a_record(oom_count=1, dump_allocated_bytes=live, dump_reserved_bytes=reserved)
    assert (check(record, None, None) is not None) is fires


def test_without_a_failure_it_is_a_dump_between_two_steps() -> None:
    record = a_record(dump_allocated_bytes=6 * GIB, dump_reserved_bytes=23 * GIB)
    assert check(record, None, None) is None
    assert check(record, None, a_failure()) is not None


def test_a_summary_printed_after_a_failure_is_recognized() -> None:
    summary = MemorySummary(
        source=Source(path="log"), device_index=0, ooms=1, counts={},
        current={"allocated": GIB, "reserved": 12 * GIB}, peak={"allocated": 5 * GIB},
    )  # fmt: skip
    finding = check(None, summary, None)
    assert finding is not None
    assert "cannot show" in finding.statement
