import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.input_wait import input_wait

MARK = "enumerate(DataLoader)#_{}DataLoaderIter.__next__"


def wait_of(trace):
    read = trace.read()
    return input_wait(read, a_breakdown_of(read))


@pytest.mark.parametrize(
    ("name", "is_single"),
    [
        (MARK.format("SingleProcess"), True),
        (MARK.format("MultiProcessing"), False),
        ("enumerate(DataLoader)#TokenLoader.__next__", None),
    ],
)
def test_the_iterators_name_tells_whether_there_are_workers(name, is_single):
    assert wait_of(HandMadeTrace().annotation(name, 0, 10)).is_single_process is is_single


def test_exposed_is_the_idle_time_of_the_device_inside_the_marks():
    wait = wait_of(
        HandMadeTrace()
        .kernel("void k()", 0, 60, launched=0)
        .annotation(MARK.format("SingleProcess"), 20, 100)
        .kernel("void k()", 200, 10)
        .annotation(MARK.format("SingleProcess"), 205, 5)
    )
    assert wait.count == 2
    assert wait.wait_seconds == pytest.approx(105e-6)
    assert wait.exposed_seconds == pytest.approx(60e-6)
    assert wait.longest_seconds == pytest.approx(100e-6)


def test_without_a_device_nothing_is_known_of_its_idling():
    assert wait_of(HandMadeTrace().annotation(MARK.format("X"), 0, 10)).exposed_seconds is None


def test_gaps_without_marks_are_no_waits_for_input():
    assert wait_of(HandMadeTrace().kernel("void k()", 10, 5).kernel("void k()", 900, 5)) is None


def test_old_traces_keep_the_mark_among_the_operators():
    trace = HandMadeTrace().event("Operator", MARK.format("SingleProcess"), 0, 10)
    assert wait_of(trace).is_single_process


def stepping(*, first, wait):
    """A first step of some length, then four of 100 µs that wait at their start and compute for the rest."""
    trace = HandMadeTrace().step(0, 0, first).kernel("void k()", 10, first - 10, launched=1)
    for number in range(4):
        at = first + 100 * number
        trace.step(number + 1, at, 100).annotation(MARK.format("SingleProcess"), at, wait)
        trace.kernel("void k()", at + wait + 5, 95 - wait, launched=at + wait, launch_duration=5)
    return trace


def test_behind_a_slow_first_step_the_waits_are_counted_over_the_others():
    wait = wait_of(stepping(first=5_000, wait=40))
    assert wait.steady_step_count == 4
    assert wait.steady_window_seconds == pytest.approx(400e-6)
    assert wait.steady_lost_seconds == pytest.approx(160e-6)


def test_without_a_slow_first_step_the_whole_window_is_steady():
    wait = wait_of(stepping(first=100, wait=40))
    assert (wait.steady_step_count, wait.steady_window_seconds, wait.steady_lost_seconds) == (None, None, None)
