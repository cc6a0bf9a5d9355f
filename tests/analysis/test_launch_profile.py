import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.launch_profile import launch_profile


def profile_of(trace):
    read = trace.read()
    return launch_profile(read, a_breakdown_of(read))


def test_a_kernel_launched_after_the_device_ran_dry_is_starved():
    trace = HandMadeTrace()
    for start in (100, 200, 300):  # each runs 10 µs and is launched 10 µs before
        trace.kernel("void reduce_kernel<512>()", start, 10)
    profile = profile_of(trace)
    assert profile.starved_ratio == pytest.approx(2 / 3)
    assert profile.starved_seconds == pytest.approx(180e-6)
    assert profile.short_gap_seconds == pytest.approx(180e-6)


def test_kernels_queued_ahead_are_not_starved_even_with_gaps_between():
    trace = HandMadeTrace()
    for place, start in enumerate((100, 200, 300)):
        trace.kernel("void reduce_kernel<512>()", start, 50, launched=place * 6)
    profile = profile_of(trace)
    assert profile.starved_ratio == 0
    assert profile.median_queue_seconds == pytest.approx((200 - 6) * 1e-6)


def test_a_gap_of_more_than_a_millisecond_is_no_launch_gap():
    trace = HandMadeTrace()
    for start in (100, 200, 5_000):
        trace.kernel("void reduce_kernel<512>()", start, 10)
    profile = profile_of(trace)
    assert profile.short_gap_seconds == pytest.approx(90e-6)
    assert profile.starved_seconds == pytest.approx((90 + 4_790) * 1e-6)


def test_recording_the_events_in_a_gap_took_part_of_it():
    trace = HandMadeTrace()
    trace.kernel("void reduce_kernel<512>()", 100, 10)
    for start in range(120, 160, 4):
        trace.operator("aten::view", start, 2)
    trace.kernel("void reduce_kernel<512>()", 200, 10)
    # Ten operators and one launch of two microseconds each.
    assert profile_of(trace).profiler_seconds == pytest.approx(22e-6)


def test_kernels_out_of_one_graph_have_one_launch():
    trace = HandMadeTrace().graph(0, [("void k()", 100 + 10 * n, 8) for n in range(9)])
    trace.kernel("void k()", 300, 8)
    profile = profile_of(trace)
    assert (profile.kernel_count, profile.launch_count, profile.graph_launch_count) == (10, 2, 1)
    assert profile.graph_kernel_ratio == pytest.approx(0.9)


def test_with_few_recorded_launches_there_is_no_profile():
    trace = HandMadeTrace().kernel("void k()", 100, 8)
    for start in (200, 300, 400):
        trace.kernel("void k()", start, 8, launched=False)
    assert profile_of(trace) is None
