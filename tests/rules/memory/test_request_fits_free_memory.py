"""MEM708: more was free than was asked of the driver."""

import pytest

from advisor.model.failure import FailureKind, Frame, LogText, Mention
from advisor.model.finding import Finding
from advisor.rules.memory.request_fits_free_memory import request_fits_free_memory
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record


def check(*evidence: object) -> Finding | None:
    """The rule, on what is given of its evidence; the rest is not there."""
    found: Finding | None = request_fits_free_memory.check(*evidence, *[None] * (4 - len(evidence)))
    return found


@pytest.mark.parametrize(
    ("free", "confidence"),
    [
        (GIB - 1, None),
        (GIB, 0.45),
        (int(1.05 * GIB), 0.45),
        (int(1.06 * GIB), 0.8),
        (2 * GIB - 1, 0.8),
        (2 * GIB, 0.9),
    ],
)
def test_the_distance_between_free_and_asked_decides(free: int, confidence: float | None) -> None:
    finding = check(a_failure(requested_bytes=GIB, free_bytes=free, total_bytes=16 * GIB), None, None)
    assert (finding.confidence if finding else None) == confidence


@pytest.mark.parametrize(("free", "confidence"), [(0.049, 0.3), (0.051, 0.9)])
def test_a_device_that_is_all_but_full_is_only_a_candidate(free: float, confidence: float) -> None:
    finding = check(a_failure(requested_bytes=64 * MIB, free_bytes=int(free * 80 * GIB), total_bytes=80 * GIB), None, None)
    assert finding is not None
    assert finding.confidence == confidence
    assert bool(finding.ruled_out) is (confidence > 0.5)


def test_what_is_too_near_rules_nothing_out() -> None:
    near, far = (check(a_failure(requested_bytes=8 * GIB, free_bytes=free), None, None) for free in (8 * GIB + 70 * MIB, 20 * GIB))
    assert near is not None
    assert far is not None
    assert near.ruled_out == ()
    assert {ruled.code for ruled in far.ruled_out} == {"MEM102", "MEM201"}


@pytest.mark.parametrize(("free", "fires"), [(20 * MIB, True), (20 * MIB - 1, False)])
def test_an_event_of_a_snapshot_is_judged_by_its_segment(free: int, fires: bool) -> None:
    record = a_record(oom_count=1, oom_requested_bytes=3 * MIB, oom_free_bytes=free)
    assert (check(None, record, None) is not None) is fires


@pytest.mark.parametrize(("device", "confidence"), [(None, 0.9), (20 * GIB, 0.9), (21 * GIB, 0.3)])
def test_an_event_on_a_device_that_is_all_but_full_is_only_a_candidate(device: int | None, confidence: float) -> None:
    record = a_record(oom_count=1, oom_requested_bytes=64 * MIB, oom_free_bytes=GIB)
    finding = check(None, record, None, a_ledger(device_bytes=device, weights=8 * GIB))
    assert finding is not None
    assert finding.confidence == confidence


def test_a_printed_request_is_a_segment_already() -> None:
    assert check(a_failure(requested_bytes=2 * MIB, free_bytes=11 * MIB), None, None) is not None


@pytest.mark.parametrize("log", [a_log(mentions=(Mention(topic="windows", line=1, text="Windows 11"),)), None])
def test_windows_is_told_of_its_page_file_first(log: LogText | None) -> None:
    frames = (Frame(filename="C:\\venv\\Lib\\site-packages\\torch\\nn.py", line=1, function="forward"),) if log is None else ()
    finding = check(a_failure(requested_bytes=64 * MIB, free_bytes=8 * GIB, frames=frames), None, log)
    assert finding is not None
    assert "page file" in finding.actions[0].title


def test_other_limits_are_not_its_business() -> None:
    failure = a_failure(kind=FailureKind.UNIFIED_MEMORY_LIMIT, requested_bytes=MIB, free_bytes=GIB)
    assert check(failure, None, None) is None
