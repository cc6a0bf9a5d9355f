"""MEM404: memory that waits for another stream, beyond what overlap needs."""

import pytest

from advisor.model.evidence import Source
from advisor.model.tables import MemorySummary
from advisor.rules.memory.cross_stream_hold import LEAST_WAITING_BYTES, cross_stream_hold
from advisor.rules.samples import GIB, MIB, a_record

check = cross_stream_hold.check


@pytest.mark.parametrize(
    ("live", "waiting", "fires"),
    [
        (18 * GIB, 2 * GIB, True),
        (18 * GIB, 2 * GIB - 1, False),  # just below a tenth of what is active
        (GIB, LEAST_WAITING_BYTES, True),
        (GIB, LEAST_WAITING_BYTES - 1, False),
    ],
)
def test_a_tenth_of_what_is_active_and_half_a_gibibyte_wait(live: int, waiting: int, fires: bool) -> None:
    record = a_record(dump_allocated_bytes=live, pending_free_bytes=waiting)
    assert (check(record, None) is not None) is fires


@pytest.mark.parametrize(("active_bytes", "fires"), [(23 * GIB, True), (20 * GIB + 10 * MIB, False)])
def test_a_summary_shows_it_beyond_its_rounding(active_bytes: int, fires: bool) -> None:
    summary = MemorySummary(
        source=Source(path="log"), device_index=0, peak={}, counts={}, resolution_bytes=MIB // 2,
        current={"allocated": 20 * GIB, "active": active_bytes},
    )  # fmt: skip
    assert (check(None, summary) is not None) is fires
    assert check(None, None) is None
