"""MEM701 compares one request with the whole device."""

import pytest

from advisor.model.finding import Finding, Severity
from advisor.model.memory import Moment
from advisor.rules.memory.request_exceeds_device import (
    ABSURD_BYTES,
    EXCEEDS_SCORE,
    NEARLY_RATIO,
    NEARLY_SCORE,
    request_exceeds_device,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_record


def check(*evidence: object) -> Finding | None:
    """The rule, on what is given of its evidence; the rest is not there."""
    found: Finding | None = request_exceeds_device.check(*evidence, *[None] * (3 - len(evidence)))
    return found


@pytest.mark.parametrize(
    ("request_bytes", "score"),
    [
        (80 * GIB + 1, EXCEEDS_SCORE),
        (80 * GIB, NEARLY_SCORE),
        (int(NEARLY_RATIO * 80 * GIB), NEARLY_SCORE),
        (int(NEARLY_RATIO * 80 * GIB) - 1, 0.0),
        (ABSURD_BYTES, 0.0),
    ],
)
def test_by_the_share_of_the_device(request_bytes: int, score: float) -> None:
    finding = check(a_failure(total_bytes=80 * GIB, requested_bytes=request_bytes))
    assert (finding.confidence if finding else 0.0) == score


def test_unknown_sizes_say_nothing() -> None:
    assert check(a_failure(total_bytes=None, requested_bytes=90 * GIB)) is None
    assert check(a_failure(requested_bytes=None)) is None


def test_it_explains_every_block_that_might_be_large() -> None:
    finding = check(a_failure(total_bytes=80 * GIB, requested_bytes=256 * GIB))
    assert finding is not None
    assert "MEM201" in finding.supersedes
    assert any("262,144" in observation.statement for observation in finding.observations)


@pytest.mark.parametrize(("device", "fires"), [(80 * GIB, True), (90 * GIB, False), (None, False)])
def test_a_snapshot_s_request_is_measured_by_the_capacity(device: int | None, fires: bool) -> None:
    ledger = a_ledger(device_bytes=device, at=Moment.OOM, activations=8 * GIB, free=GIB)
    finding = check(None, ledger, a_record(oom_count=1, oom_requested_bytes=60 * GIB, oom_free_bytes=GIB))
    assert (finding is not None) is fires
    if finding is not None:
        assert finding.severity is Severity.ERROR
        assert any("60 GiB was refused with 1 GiB free" in fact.statement for fact in finding.observations)
