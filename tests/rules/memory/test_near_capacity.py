"""MEM903: live memory near the device's size, before anything fails."""

import pytest

from advisor.rules.blocks import NEAR_CAPACITY_RATIO
from advisor.rules.memory.near_capacity import near_capacity
from advisor.rules.samples import GIB, a_failure, a_ledger, a_log, a_record

check = near_capacity.check
LEDGER = a_ledger(device_bytes=100 * GIB, weights=60 * GIB)
LIMIT = int(NEAR_CAPACITY_RATIO * 100 * GIB) + 1


@pytest.mark.parametrize(("peak", "fires"), [(LIMIT, True), (LIMIT - 2, False)])
def test_it_takes_92_percent_of_the_device(peak: int, fires: bool) -> None:
    assert (check(a_record(peak_allocated_bytes=peak), None, LEDGER, None, None, None) is not None) is fires


def test_cache_alone_is_not_near_capacity() -> None:
    record = a_record(peak_allocated_bytes=60 * GIB, peak_reserved_bytes=99 * GIB)
    assert check(record, None, LEDGER, None, None, None) is None


def test_it_is_silent_where_something_failed_or_the_size_is_unknown() -> None:
    record = a_record(peak_allocated_bytes=99 * GIB)
    assert check(record, None, LEDGER, None, a_failure(), None) is None
    assert check(a_record(peak_allocated_bytes=99 * GIB, oom_count=1), None, LEDGER, None, None, None) is None
    assert check(record, None, a_ledger(device_bytes=None), None, None, None) is None


def test_engines_fill_the_device_on_purpose() -> None:
    record = a_record(peak_allocated_bytes=95 * GIB)
    cache = a_ledger(device_bytes=100 * GIB, weights=30 * GIB, kv_cache=60 * GIB)
    assert check(record, None, cache, None, None, None) is None
    assert check(record, None, LEDGER, None, None, a_log(frameworks=("vllm",))) is None
