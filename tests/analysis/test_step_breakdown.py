"""Every moment of the window is counted once, and idle time goes to what the host did meanwhile."""

import pytest
from analysis.hand_made_trace import HandMadeTrace
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.step_breakdown import (
    BUSY_COMPUTING_RATIO,
    LEAST_ACTIVITY_COUNT,
    PACING_RATIO,
    step_breakdown,
)
from advisor.model.step_time import PARTS, Bound

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NCCL = "ncclDevKernel_AllReduce_Sum_f32"


def breakdown(trace):
    return step_breakdown(trace.read())[0]


def microseconds(item):
    return {name: round(seconds * 1e6) for name, seconds in item.seconds.items() if seconds}


def test_compute_hides_communication_and_copies_and_both_hide_idle_time():
    trace = HandMadeTrace()
    trace.kernel("gemm", 100, 50, launched=0, launch_duration=100)
    trace.kernel(NCCL, 120, 60, launched=10, stream=8)
    trace.copy("Memcpy HtoD (Pinned -> Device)", 170, 40, 64, launched=20, stream=9)
    found = breakdown(trace)
    assert microseconds(found) == {"compute": 50, "exposed_communication": 30, "exposed_copies": 30, "launch": 100}
    assert found.window_seconds == pytest.approx(210e-6)
    assert found.busy_ratio == pytest.approx(110 / 210)


def test_the_loaders_marks_are_the_inputs_whatever_happens_inside_them():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.annotation(LOADER, 100, 400)
    trace.operator("aten::stack", 150, 300)
    trace.kernel("gemm", 520, 100, launched=500, launch_duration=20)
    assert microseconds(breakdown(trace)) == {"compute": 190, "input_wait": 400, "launch": 30}


def test_a_loader_on_another_thread_counts_while_the_loop_does_nothing():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.event("user_annotation", LOADER, 100, 1000, tid=55)
    trace.operator("aten::add", 100, 300)
    trace.kernel("gemm", 1020, 80, launched=1000, launch_duration=20)
    assert microseconds(breakdown(trace)) == {"compute": 170, "launch": 330, "input_wait": 600}


def test_a_wait_for_the_device_costs_what_idles_behind_it_but_no_more_than_it_took():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.call("cudaStreamSynchronize", 80, 40)
    trace.kernel("gemm", 820, 80, launched=800, launch_duration=20)
    found = breakdown(trace)
    assert microseconds(found) == {"compute": 170, "synchronization": 60, "launch": 30, "other_idle": 640}


def test_a_wait_ends_with_the_next_launch():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 500, launched=0, launch_duration=10)
    trace.call("hipDeviceSynchronize", 20, 500)
    trace.kernel("gemm", 570, 30, launched=540, launch_duration=10)
    assert microseconds(breakdown(trace)) == {"compute": 530, "synchronization": 30, "launch": 40}


@pytest.mark.parametrize("at", ["before the first launch", "behind the last"])
def test_waits_outside_the_launches_are_not_the_loops(at):
    trace = HandMadeTrace()
    trace.kernel("gemm", 1010, 90, launched=1000, launch_duration=10)
    trace.kernel("gemm", 1110, 90, launched=1100, launch_duration=10)
    trace.call("cudaDeviceSynchronize", 0 if at == "before the first launch" else 1300, 500)
    assert "synchronization" not in microseconds(breakdown(trace))


def test_a_watchdogs_waits_are_not_the_loops():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.call("cudaEventSynchronize", 50, 700, tid=77)
    trace.kernel("gemm", 820, 80, launched=800, launch_duration=20)
    assert "synchronization" not in microseconds(breakdown(trace))


def test_short_pauses_between_operators_belong_to_issuing_and_long_ones_do_not():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 10, launched=0, launch_duration=10)
    trace.operator("aten::a", 60, 10)
    trace.operator("aten::b", 1000, 10)
    trace.kernel("gemm", 1030, 10, launched=1020, launch_duration=10)
    assert microseconds(breakdown(trace)) == {"compute": 20, "launch": 90, "other_idle": 930}


def test_a_device_that_idles_with_work_queued_waits_for_no_host():
    trace = HandMadeTrace()
    trace.kernel("gemm", 30, 70, launched=0, launch_duration=10)
    trace.kernel("gemm", 600, 100, launched=10, launch_duration=10)
    trace.operator("aten::a", 20, 600)
    assert microseconds(breakdown(trace)) == {"compute": 170, "launch": 30, "other_idle": 500}


def test_a_copy_to_the_host_that_blocks_is_a_wait_for_results():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.copy("Memcpy DtoH (Device -> Pageable)", 100, 20, 8, launched=20, launch_duration=160)
    trace.kernel("gemm", 220, 80, launched=200, launch_duration=20)
    assert microseconds(breakdown(trace)) == {"compute": 170, "exposed_copies": 20, "synchronization": 80, "launch": 30}


def test_a_copy_to_the_host_that_returns_early_is_a_launch():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.copy("Memcpy DtoH (Device -> Pinned)", 100, 20, 8, launched=20, launch_duration=10)
    trace.operator("aten::add", 30, 190)
    trace.kernel("gemm", 220, 80, launched=200, launch_duration=20)
    assert microseconds(breakdown(trace)) == {"compute": 170, "exposed_copies": 20, "launch": 110}


def test_a_pageable_copy_to_the_device_is_the_hosts_own_work_and_no_launch():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.copy("Memcpy HtoD (Pageable -> Device)", 380, 20, 8, launched=100, launch_duration=300)
    trace.kernel("gemm", 420, 80, launched=400, launch_duration=20)
    found = breakdown(trace)
    assert microseconds(found) == {"compute": 170, "exposed_copies": 20, "launch": 30, "other_idle": 280}
    assert "of the idle time for other reasons, 0.28 ms passed while the host copied from ordinary host memory" in found.notes


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("cudaMalloc", "memory from the driver"),
        ("hipFree", "memory from the driver"),
        ("cudaHostAlloc", "memory from the driver"),
        ("cuMemCreate", "memory from the driver"),
        ("cuModuleLoadData", "kernels' code"),
        ("cuLibraryLoadData", "kernels' code"),
    ],
)
def test_calls_that_prepare_memory_or_code_are_no_launches(call, said):
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.operator("aten::empty", 95, 310)
    trace.call(call, 100, 300)
    trace.kernel("gemm", 420, 80, launched=400, launch_duration=20)
    found = breakdown(trace)
    assert microseconds(found) == {"compute": 170, "launch": 30, "other_idle": 300}
    assert any(said in note for note in found.notes)


@pytest.mark.parametrize("call", ["cudaMallocAsync", "cudaFreeAsync", "cudaEventRecord", "cudaFuncGetAttributes"])
def test_calls_that_only_queue_or_ask_belong_to_launching(call):
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=0, launch_duration=10)
    trace.call(call, 100, 300)
    trace.kernel("gemm", 420, 80, launched=400, launch_duration=20)
    assert microseconds(breakdown(trace)) == {"compute": 170, "launch": 330}


def test_work_launched_before_the_record_began_was_queued():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 90, launched=False)
    trace.kernel("gemm", 500, 100, launched=False)
    trace.call("cudaStreamSynchronize", 50, 500)
    trace.kernel("gemm", 620, 80, launched=600, launch_duration=10)
    found = breakdown(trace)
    assert microseconds(found) == {"compute": 270, "launch": 20, "other_idle": 400}
    assert any("another stream, another rank or the hardware" in note for note in found.notes)


def test_idle_time_cannot_be_split_without_launches_and_the_note_says_so():
    trace = HandMadeTrace()
    for number in range(LEAST_ACTIVITY_COUNT):
        trace.kernel("gemm", 100 * number, 40, launched=False)
    found = breakdown(trace)
    assert set(microseconds(found)) == {"compute", "other_idle"}
    assert any("cannot be split" in note for note in found.notes)
    assert found.bound is Bound.UNKNOWN


def test_without_device_activity_nothing_is_said_of_how_busy_a_device_was():
    trace = HandMadeTrace().operator("aten::a", 0, 10).step(1, 0, 50).step(2, 50, 70)
    (found,) = step_breakdown(trace.read())
    assert found.device_index is None
    assert found.busy_ratio is None
    assert found.bound is Bound.UNKNOWN
    assert any("nothing can be said about how busy a device was" in note for note in found.notes)
    assert (found.step_count, found.step_seconds) == (2, pytest.approx(60e-6))


def test_the_parts_of_a_job_without_a_device_are_the_processors():
    trace = HandMadeTrace().operator("aten::a", 0, 300).annotation(LOADER, 200, 300).operator("aten::b", 700, 300)
    (found,) = step_breakdown(trace.read())
    assert microseconds(found) == {"compute": 500, "input_wait": 300, "other_idle": 200}
    assert sum(found.parts.values()) == pytest.approx(1)


def test_a_window_without_length_has_no_parts():
    for trace in (HandMadeTrace().operator("aten::a", 5, 0), HandMadeTrace().kernel("gemm", 5, 0, launched=False)):
        (found,) = step_breakdown(trace.read())
        assert found.parts == found.seconds == {}
        assert found.busy_ratio is None


def test_launches_without_kernels_are_named_as_missing_evidence():
    trace = HandMadeTrace()
    trace.call("cudaLaunchKernel", 0, 10)
    (found,) = step_breakdown(trace.read())
    assert found.parts == found.seconds == {}
    assert any("launches are recorded and no kernels" in note for note in found.notes)


def test_every_device_has_its_breakdown_and_the_busiest_stands_first():
    trace = HandMadeTrace()
    trace.kernel("gemm", 10, 20, launched=0)
    trace.event("kernel", "gemm", 50, 500, pid=3, tid=7, device=3, stream=7, correlation=99)
    found = step_breakdown(trace.read())
    assert [item.device_index for item in found] == [3, 0]
    assert found[0].window_seconds == found[1].window_seconds


def test_a_few_events_are_said_to_be_too_little_and_have_no_bound():
    trace = HandMadeTrace()
    for number in range(LEAST_ACTIVITY_COUNT - 1):
        trace.kernel("gemm", 1000 * number + 100, 900, launched=1000 * number)
    found = breakdown(trace)
    assert any("too little to judge" in note for note in found.notes)
    assert found.bound is Bound.UNKNOWN
    enough = trace.kernel("gemm", 1000 * (LEAST_ACTIVITY_COUNT - 1) + 100, 900)
    assert breakdown(enough).bound is Bound.COMPUTE


def steady(loss, *, compute, count=LEAST_ACTIVITY_COUNT, **options):
    """Steps of 1 ms: a kernel, then a loss of the rest in one part."""
    trace = HandMadeTrace()
    busy = round(1000 * compute)
    for number in range(count):
        begin = 1000 * number
        trace.kernel("gemm", begin + 10, busy - 10, launched=begin, launch_duration=9)
        loss(trace, begin + busy, 1000 - busy, **options)
    return trace


LOSSES = {
    Bound.INPUT: lambda trace, at, long: trace.annotation(LOADER, at, long),
    Bound.LAUNCH: lambda trace, at, long: trace.operator("aten::slow", at, long),
    Bound.COMMUNICATION: lambda trace, at, long: trace.kernel(NCCL, at, long, launched=at - 300),
    Bound.HOST: lambda trace, at, long: trace.annotation("save", at, long),
    Bound.MEMORY: lambda trace, at, long: trace.copy("Memcpy DtoD (Device -> Device)", at, long, 8, launched=at - 300),
}


@pytest.mark.parametrize("bound", LOSSES)
def test_the_largest_loss_sets_the_pace_where_computing_does_not(bound):
    assert breakdown(steady(LOSSES[bound], compute=BUSY_COMPUTING_RATIO - 0.05)).bound is bound
    assert breakdown(steady(LOSSES[bound], compute=BUSY_COMPUTING_RATIO + 0.05)).bound is Bound.COMPUTE


def test_losses_of_which_none_prevails_set_no_pace():
    def three(trace, at, long):
        third = long // 3
        trace.annotation(LOADER, at, third)
        trace.kernel(NCCL, at + third, third, launched=at)
        trace.operator("aten::slow", at + 2 * third, third)

    found = breakdown(steady(three, compute=0.4))
    assert max(found.parts[name] for name in PARTS if name != "compute") > PACING_RATIO
    assert found.bound is Bound.UNKNOWN


def test_steps_are_the_profilers_marks_else_the_optimizers():
    marked = steady(LOSSES[Bound.HOST], compute=0.5, count=20)
    marked.step(7, 0, 1000).step(8, 1000, 3000)
    assert (breakdown(marked).step_count, breakdown(marked).step_seconds) == (2, pytest.approx(2e-3))
    optimized = steady(LOSSES[Bound.HOST], compute=0.5, count=20)
    for number in range(4):
        optimized.annotation("Optimizer.step#SGD.step", 500 * number + 400, 50)
    assert breakdown(optimized).step_seconds == pytest.approx(500e-6, rel=0.1)


MOMENT = st.integers(0, 3000)
LENGTH = st.integers(0, 800)
EVENT = st.tuples(
    st.sampled_from(["gemm", NCCL, "copy", "operator", "call", "wait", "loader", "worker"]), MOMENT, LENGTH, st.integers(-200, 900)
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(EVENT, max_size=25))
def test_the_parts_partition_the_window_whatever_happens(events):
    trace = HandMadeTrace()
    trace.kernel("gemm", 1000, 100, launched=900)
    for kind, start, duration, lead in events:
        if kind in ("gemm", NCCL):
            trace.kernel(kind, start, duration, launched=start - lead, launch_duration=7)
        elif kind == "copy":
            trace.copy("Memcpy HtoD (Pageable -> Device)", start, duration, 8, launched=start - lead)
        elif kind == "operator":
            trace.operator("aten::a", start, duration)
        elif kind in ("call", "wait"):
            trace.call("cudaEventQuery" if kind == "call" else "cudaStreamSynchronize", start, duration)
        else:
            trace.event("user_annotation", LOADER, start, duration, tid=1 if kind == "loader" else 9)
    for found in step_breakdown(trace.read()):
        assert set(found.parts) == set(found.seconds) == set(PARTS)
        assert all(share >= 0 for share in found.parts.values())
        assert sum(found.parts.values()) == pytest.approx(1, abs=1e-9)
        assert sum(found.seconds.values()) == pytest.approx(found.window_seconds)
        busy = sum(found.parts[name] for name in ("compute", "exposed_communication", "exposed_copies"))
        assert busy == pytest.approx(found.busy_ratio)
