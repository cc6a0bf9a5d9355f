"""MEM402: a cache that nobody needs, and not the cache of every step."""

import pytest

from advisor.model.finding import Severity
from advisor.rules.memory.cached_memory_overhang import UNSEEN_PEAK_SCORE, cached_memory_overhang
from advisor.rules.samples import GIB, a_failure, a_ledger, a_record

check = cached_memory_overhang.check
LEDGER = a_ledger(weights=10 * GIB)


@pytest.mark.parametrize(
    ("live", "reserved", "fires"),
    [
        (12 * GIB, 24 * GIB, True),
        (
            12 * GIB,
            24 * GIB - 1,
            False,
        ),  # less than twice what was ever live, and just below 30% of the device
        (13 * GIB, 25 * GIB, False),  # less than twice
        (4 * GIB, 23 * GIB, False),  # less than 30% of the device
    ],
)
def test_it_takes_twice_what_was_live_and_a_third_of_the_device(live: int, reserved: int, fires: bool) -> None:
    record = a_record(dump_allocated_bytes=live, peak_allocated_bytes=live, dump_reserved_bytes=reserved)
    assert (check(record, None, LEDGER, None, None) is not None) is fires


def test_a_cache_that_every_step_uses_is_not_idle() -> None:
    record = a_record(dump_allocated_bytes=6 * GIB, peak_allocated_bytes=40 * GIB, dump_reserved_bytes=70 * GIB)
    assert check(record, None, LEDGER, None, None) is None


def test_without_history_the_cache_may_be_in_use() -> None:
    record = a_record(event_count=0, dump_allocated_bytes=6 * GIB, dump_reserved_bytes=30 * GIB)
    finding = check(record, None, LEDGER, None, None)
    assert finding is not None
    assert finding.confidence == UNSEEN_PEAK_SCORE
    assert finding.severity is Severity.INFO


def test_an_unknown_device_or_a_failure_is_not_its_business() -> None:
    record = a_record(dump_allocated_bytes=6 * GIB, peak_allocated_bytes=6 * GIB, dump_reserved_bytes=70 * GIB)
    assert check(record, None, a_ledger(device_bytes=None), None, None) is None
    assert check(record, None, LEDGER, None, a_failure()) is None
    failed = a_record(
        oom_count=1,
        dump_allocated_bytes=6 * GIB,
        peak_allocated_bytes=6 * GIB,
        dump_reserved_bytes=70 * GIB,
    )
    assert check(failed, None, LEDGER, None, None) is None
