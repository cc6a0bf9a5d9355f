"""MEM407: many sizes and much unused memory, both."""

import pytest

from advisor.model.failure import Mention
from advisor.model.finding import Severity
from advisor.model.memory import Moment
from advisor.rules.memory.variable_shape_fragmentation import (
    LEAST_SIZES,
    variable_shape_fragmentation,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_log, a_record

check = variable_shape_fragmentation.check


@pytest.mark.parametrize(
    ("sizes", "live", "fires"),
    [
        (LEAST_SIZES, 56 * GIB, True),
        (LEAST_SIZES - 1, 56 * GIB, False),
        (LEAST_SIZES, 56 * GIB + 1, False),  # less than a fifth unused
    ],
)
def test_it_takes_a_hundred_sizes_and_a_fifth_unused(sizes: int, live: int, fires: bool) -> None:
    ledger = a_ledger(weights=live, allocated_bytes=live, reserved_bytes=70 * GIB)
    assert (check(a_record(distinct_large_sizes=sizes), ledger, None, None) is not None) is fires


def test_it_is_graver_where_a_request_failed() -> None:
    record = a_record(distinct_large_sizes=400)
    ledger = a_ledger(weights=40 * GIB, allocated_bytes=40 * GIB, reserved_bytes=70 * GIB)
    failed = a_ledger(at=Moment.OOM, weights=40 * GIB, allocated_bytes=40 * GIB, reserved_bytes=70 * GIB)
    before, after = check(record, ledger, None, None), check(record, failed, None, None)
    assert before is not None
    assert after is not None
    assert (before.severity, after.severity) == (Severity.WARNING, Severity.ERROR)
    assert "MEM401" in after.supersedes


@pytest.mark.parametrize(("idle", "fires"), [(2 * GIB, True), (2 * GIB - 1, False)])
def test_a_message_needs_the_words_and_the_arithmetic(idle: int, fires: bool) -> None:
    failure = a_failure(requested_bytes=2 * GIB, allocated_bytes=70 * GIB, reserved_unallocated_bytes=idle)
    log = a_log(mentions=(Mention(topic="variable-length", line=1, text="batches of variable length"),))
    assert (check(None, None, failure, log) is not None) is fires
    assert check(None, None, failure, a_log()) is None
