"""MEM501 measures a slope, or says that it only heard of one."""

import pytest

from advisor.model.failure import Mention
from advisor.model.finding import Severity
from advisor.rules.memory.memory_growth import (
    GROWTH_WORDS_SCORE,
    LATE_SCORE,
    LEAST_GROWTH_BYTES,
    STATED_SCORE,
    memory_growth,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = memory_growth.check


def score(text: str, failure: object) -> float:
    finding = check(None, None, failure, a_log(line_count=3, mentions=(Mention(topic="memory-grows", line=1, text=text),)))
    return finding.confidence if finding else 0.0


@pytest.mark.parametrize(("growth", "fires"), [(LEAST_GROWTH_BYTES, True), (LEAST_GROWTH_BYTES - 1, False)])
def test_a_slope_from_a_mebibyte_a_step(growth: float, fires: bool) -> None:
    assert (check(a_record(growth_bytes_per_step=float(growth)), None, None, None) is not None) is fires


def test_a_device_that_is_soon_full_is_a_failure_to_come() -> None:
    ledger = a_ledger(device_bytes=80 * GIB)
    slow = check(a_record(growth_bytes_per_step=float(MIB), dump_reserved_bytes=GIB), ledger, None, None)
    fast = check(a_record(growth_bytes_per_step=100.0 * MIB, dump_reserved_bytes=GIB), ledger, None, None)
    assert slow is not None
    assert fast is not None
    assert (slow.severity, fast.severity) == (Severity.WARNING, Severity.ERROR)


def test_fewer_than_twenty_steps_have_no_slope() -> None:
    assert check(a_record(growth_bytes_per_step=None), None, None, None) is None


def test_words_by_what_they_say() -> None:
    assert score("GPU memory grows slowly with every step", a_failure()) == STATED_SCORE
    assert score("GPU memory grows slowly with every step", None) == GROWTH_WORDS_SCORE
    assert score("CUDA out of memory after 2 epochs", a_failure()) == LATE_SCORE
    assert score("epoch 2 done, loss 0.3", a_failure()) == 0.0
    assert score("host memory grows with every step", a_failure()) == 0.0
