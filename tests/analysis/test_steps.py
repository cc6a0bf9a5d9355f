import pytest
from analysis.hand_made_trace import HandMadeTrace

from advisor.analysis.step_times import step_times
from advisor.analysis.steps import steps


def test_the_profilers_marks_are_steps():
    marked = steps(HandMadeTrace().step(2, 200, 90).step(1, 100, 80).read())
    assert marked.marked_by == "ProfilerStep"
    assert (marked.end_ns - marked.start_ns).tolist() == [80_000, 90_000]


def test_without_them_a_step_ends_with_the_optimizers_update():
    trace = HandMadeTrace().operator("aten::mm", 0, 10)
    for start in (80, 180, 280):
        trace.annotation("Optimizer.step#SGD.step", start, 20)
    marked = steps(trace.read())
    assert marked.marked_by == "Optimizer.step"
    assert (marked.end_ns - marked.start_ns).tolist() == [100_000] * 3


def test_an_update_inside_another_is_the_same_update():
    trace = HandMadeTrace()
    trace.annotation("Optimizer.step#Wrapper.step", 0, 50).annotation("Optimizer.step#SGD.step", 5, 40)
    trace.annotation("Optimizer.step#Wrapper.step", 100, 50).annotation("Optimizer.step#SGD.step", 105, 40)
    assert len(steps(trace.read()).start_ns) == 2


def test_a_trace_without_marks_has_no_steps():
    read = HandMadeTrace().operator("aten::mm", 0, 10).read()
    assert (steps(read).marked_by, step_times(read)) == ("", None)


def times_of(*durations, **extra):
    trace, at = HandMadeTrace(), 0
    for number, duration in enumerate(durations):
        trace.step(number, at, duration)
        for name, count in extra.items():
            for call in range(count[number]):
                trace.call(name, at + 1 + call, 1)
        at += duration
    return step_times(trace.read())


@pytest.mark.parametrize(("first", "slow"), [(149, 0), (151, 1)])
def test_a_first_step_of_more_than_one_and_a_half_medians_is_slow(first, slow):
    assert times_of(first, 100, 100, 100).slow_first_count == slow


def test_what_the_slow_steps_took_beyond_the_median_is_their_excess():
    found = times_of(400, 200, 100, 100, 100, 100)
    assert found.slow_first_count == 2
    assert found.first_excess_seconds == pytest.approx(400e-6)


def test_a_job_whose_steps_vary_has_no_warm_up():
    assert times_of(200, 100, 200, 100, 200, 100).slow_first_count == 0


def test_what_happened_only_in_the_slow_steps_is_named():
    found = times_of(400, 100, 100, 100, cudaMalloc=(20, 0, 1, 0), cudaLaunchKernel=(9, 9, 9, 9))
    assert found.warm_up_marks == (("cudaMalloc", 20),)
