"""MEM403: retries beyond those that belong to a failure."""

import pytest

from advisor.model.evidence import Source
from advisor.model.failure import Mention
from advisor.model.tables import MemorySummary
from advisor.rules.memory.allocator_retries import LEAST_RETRIES, MANY_RETRIES, allocator_retries
from advisor.rules.samples import a_log

check = allocator_retries.check


def a_summary(retries: int | None, ooms: int | None = 0, device_index: int = 0) -> MemorySummary:
    source = Source(path="train.log")
    return MemorySummary(
        source=source,
        device_index=device_index,
        retries=retries,
        ooms=ooms,
        current={},
        peak={},
        counts={},
    )


@pytest.mark.parametrize(("retries", "fires"), [(1 + LEAST_RETRIES, True), (LEAST_RETRIES, False), (None, False)])
def test_each_failure_has_a_retry_of_its_own(retries: int | None, fires: bool) -> None:
    assert (check((a_summary(retries, ooms=1),), None) is not None) is fires


def test_many_retries_are_surer_than_few() -> None:
    few, many = check((a_summary(MANY_RETRIES - 1),), None), check((a_summary(MANY_RETRIES),), None)
    assert few is not None
    assert many is not None
    assert few.confidence < many.confidence


def test_a_rise_between_two_readings_of_one_device_is_surest() -> None:
    risen = check((a_summary(0), a_summary(1)), None)
    assert risen is not None
    assert risen.confidence == 0.9
    assert check((a_summary(0), a_summary(1, device_index=1)), None) is None
    assert check((a_summary(1), a_summary(1)), None) is None
    assert check((a_summary(0), a_summary(1, ooms=1)), None) is None


def test_the_warning_of_deepspeed_is_heard() -> None:
    text = "stage3.py:1898:step] 1 pytorch allocator cache flushes since last step"
    finding = check((), a_log(mentions=(Mention(topic="zero-3", line=9, text=text),)))
    assert finding is not None
    assert check((), a_log()) is None
