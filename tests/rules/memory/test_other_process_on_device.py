"""MEM601: what others hold, as far as the figures tell it from this process's own."""

import pytest

from advisor.model.evidence import Source
from advisor.model.failure import Mention, ProcessMemory
from advisor.model.finding import Finding, Severity
from advisor.model.memory import Moment
from advisor.model.node import GpuReading, NodeReading
from advisor.rules.capacity import OUTSIDE_BYTES
from advisor.rules.memory.other_process_on_device import other_process_on_device
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record


def check(*evidence: object) -> Finding | None:
    """The rule, on what is given of its evidence; the rest is not there."""
    found: Finding | None = other_process_on_device.check(*evidence, *[None] * (5 - len(evidence)))
    return found


@pytest.mark.parametrize(
    ("total", "others", "fires"),
    [
        (80 * GIB, 8 * GIB, True),
        (80 * GIB, 8 * GIB - 1, False),  # below a tenth
        (8 * GIB, 1 * GIB, True),
        (8 * GIB, 1 * GIB - 1, False),  # a desktop
    ],
)
def test_others_count_from_a_tenth_of_the_device(total: int, others: int, fires: bool) -> None:
    own = total - others - 100 * MIB
    failure = a_failure(
        total_bytes=total, requested_bytes=GIB, free_bytes=100 * MIB, allocated_bytes=own - 600 * MIB,
        reserved_unallocated_bytes=50 * MIB, process_bytes=own,
    )  # fmt: skip
    assert (check(failure, None, None) is not None) is fires


@pytest.mark.parametrize(("outside", "fires"), [(OUTSIDE_BYTES, True), (OUTSIDE_BYTES - 1, False)])
def test_an_undivided_sum_must_exceed_a_context(outside: int, fires: bool) -> None:
    failure = a_failure(
        total_bytes=20 * GIB, requested_bytes=GIB, free_bytes=GIB // 2, allocated_bytes=20 * GIB - GIB // 2 - outside,
        reserved_unallocated_bytes=0,
    )  # fmt: skip
    finding = check(failure, None, None)
    assert (finding is not None) is fires
    if finding is not None:
        assert finding.confidence <= 0.6
        assert finding.settles is not None


def test_the_one_process_that_a_container_names_is_this_one() -> None:
    failure = a_failure(
        total_bytes=int(15.77 * GIB), requested_bytes=546 * MIB, free_bytes=514 * MIB, allocated_bytes=int(13.7 * GIB),
        reserved_unallocated_bytes=700 * MIB, other_processes=(ProcessMemory(pid=5, used_bytes=int(15.25 * GIB)),),
    )  # fmt: skip
    assert check(failure, None, None) is None


def test_a_request_beyond_the_device_is_nobody_elses_fault() -> None:
    failure = a_failure(
        total_bytes=12 * GIB,
        requested_bytes=32 * GIB,
        free_bytes=9 * GIB,
        allocated_bytes=0,
        reserved_unallocated_bytes=0,
    )
    assert check(failure, None, None) is None


def test_oversubscribed_figures_do_not_close_and_are_left_alone() -> None:
    failure = a_failure(
        total_bytes=8 * GIB,
        requested_bytes=GIB,
        free_bytes=0,
        allocated_bytes=14 * GIB,
        reserved_unallocated_bytes=0,
    )
    assert check(failure, None, None) is None


def a_reading(*sizes: int) -> NodeReading:
    processes = tuple(ProcessMemory(pid=index, used_bytes=size, name="python") for index, size in enumerate(sizes))
    return NodeReading(
        source=Source(path="smi.txt"),
        gpus=(GpuReading(index=0, total_bytes=40 * GIB, processes=processes),),
    )


@pytest.mark.parametrize(
    ("sizes", "fires"),
    [
        ((20 * GIB, 15 * GIB), True),
        ((39 * GIB,), False),
        ((39 * GIB, 200 * MIB), False),
        ((), False),
    ],
)
def test_nvidia_smi_is_asked_where_the_message_has_no_figures(sizes: tuple[int, ...], fires: bool) -> None:
    words = a_failure(total_bytes=None, generation="words only")
    assert (check(words, a_reading(*sizes), None) is not None) is fires


def test_a_busy_node_without_a_failure_is_not_a_finding() -> None:
    assert check(None, a_reading(20 * GIB, 15 * GIB), a_log()) is None


def test_a_report_of_left_over_workers_is_heard() -> None:
    said = Mention(topic="zombie-process", line=1, text="a zombie process still holds the GPU")
    assert check(None, None, a_log(line_count=5, mentions=(said,))) is not None
    assert check(None, None, a_log(line_count=5000, mentions=(said,))) is None


def a_refused_snapshot(*, outside: int = 71 * GIB, requested: int = 2 * GIB, device: int | None = 80 * GIB) -> Finding | None:
    """A snapshot's refused request on a device of which `outside` is not this process's."""
    held = 80 * GIB - outside - 256 * MIB
    rest = {"unattributed": outside} if device else {}
    ledger = a_ledger(device_bytes=device, at=Moment.OOM, reserved_bytes=held, activations=held, free=256 * MIB, **rest)
    record = a_record(oom_count=1, oom_requested_bytes=requested, oom_free_bytes=256 * MIB)
    return check(None, None, None, ledger, record)


def test_a_snapshot_s_event_and_the_capacity_tell_of_others() -> None:
    finding = a_refused_snapshot()
    assert finding is not None
    assert finding.severity is Severity.ERROR
    assert finding.confidence == 0.9
    assert "71 GiB" in finding.statement
    assert any("256 MiB free" in fact.statement for fact in finding.observations)
    assert finding.settles is not None


@pytest.mark.parametrize(("outside", "fires"), [(8 * GIB, True), (8 * GIB - 1, False)])
def test_a_snapshot_s_rest_counts_from_a_tenth_of_the_device(outside: int, fires: bool) -> None:
    assert (a_refused_snapshot(outside=outside) is not None) is fires


def test_without_the_capacity_a_snapshot_tells_of_nobody() -> None:
    assert a_refused_snapshot(device=None) is None


def test_a_snapshot_s_request_beyond_the_device_is_nobody_elses_fault() -> None:
    assert a_refused_snapshot(requested=81 * GIB) is None
