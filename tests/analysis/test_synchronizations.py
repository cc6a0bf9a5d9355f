import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.step_breakdown import step_breakdown
from advisor.analysis.synchronizations import synchronizations


def waits_of(trace):
    read = trace.read()
    return synchronizations(read, a_breakdown_of(read))


def test_the_host_may_wait_as_long_as_it_likes_while_the_device_computes():
    waits = waits_of(
        HandMadeTrace()
        .kernel("void k()", 10, 990, launched=0)
        .kernel("void k()", 1000, 100, launched=10)
        .call("cudaStreamSynchronize", 50, 800)
        .kernel("void k()", 1100, 50, launched=900)
    )
    assert (waits.count, waits.exposed_seconds) == (1, 0)
    assert waits.host_seconds == pytest.approx(800e-6)


def test_idle_time_between_a_wait_and_the_next_launch_is_charged_to_it():
    waits = waits_of(
        HandMadeTrace()
        .kernel("void k()", 10, 90, launched=0)
        .call("cudaStreamSynchronize", 20, 80)
        .kernel("void k()", 165, 50, launched=160)
    )
    assert waits.exposed_seconds == pytest.approx(60e-6)


def test_no_more_is_charged_than_the_host_would_have_been_further_on():
    waits = waits_of(
        HandMadeTrace()
        .kernel("void k()", 10, 20, launched=0)
        .call("cudaStreamSynchronize", 40, 5)
        .kernel("void k()", 205, 50, launched=200)
    )
    assert waits.exposed_seconds == pytest.approx(10e-6)


def test_a_wait_that_nothing_follows_or_precedes_is_the_profilers():
    waits = waits_of(
        HandMadeTrace()
        .call("cudaDeviceSynchronize", 0, 50)
        .kernel("void k()", 110, 20, launched=100)
        .call("cudaDeviceSynchronize", 200, 50)
    )
    assert waits.count == 0


def test_a_copy_to_the_host_that_blocks_is_a_wait_and_one_that_returns_early_is_not():
    def copied(launch_duration):
        return waits_of(
            HandMadeTrace()
            .kernel("void k()", 10, 50, launched=0)
            .copy("Memcpy DtoH (Device -> Pageable)", 60, 10, 8, launched=20, launch_duration=launch_duration)
            .kernel("void k()", 205, 50, launched=200)
        )

    assert copied(60).count == 1
    assert copied(5).count == 0


def test_it_names_the_operator_that_people_write_and_their_line():
    trace = HandMadeTrace()
    trace.event("python_function", "train.py(12): step", 0, 500)
    trace.event("python_function", "torch/_tensor.py(40): item", 15, 100)
    trace.operator("aten::item", 16, 90, external_id=1)
    trace.operator("aten::_local_scalar_dense", 17, 88, external_id=2)
    trace.kernel("void k()", 10, 90, launched=5)
    trace.call("cudaStreamSynchronize", 20, 80, external_id=2)
    trace.kernel("void k()", 165, 50, launched=160)
    (site,) = waits_of(trace).sites
    assert (site.operator, site.call) == ("aten::item", "cudaStreamSynchronize")
    assert site.line == "train.py(12): step"


def test_without_external_ids_the_operator_is_found_by_time():
    trace = HandMadeTrace()
    trace.operator("aten::nonzero", 16, 90)
    trace.kernel("void k()", 10, 90, launched=5)
    trace.call("cudaStreamSynchronize", 20, 80)
    trace.kernel("void k()", 165, 50, launched=160)
    (site,) = waits_of(trace).sites
    assert site.operator == "aten::nonzero"


def test_idle_time_inside_the_loader_is_the_inputs():
    mark = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    waits = waits_of(
        HandMadeTrace()
        .kernel("void k()", 10, 90, launched=0)
        .call("cudaStreamSynchronize", 20, 80)
        .annotation(mark, 100, 60)
        .kernel("void k()", 175, 50, launched=170)
    )
    assert waits.exposed_seconds == pytest.approx(10e-6)


def test_waits_in_slow_first_steps_are_warm_up():
    trace = HandMadeTrace().step(0, 0, 1_000)
    at = 1_000
    for number in range(1, 5):
        trace.step(number, at, 100)
        trace.kernel("void k()", at + 10, 20, launched=at + 1)
        at += 100
    trace.kernel("void k()", 10, 20, launched=1)
    trace.call("cudaDeviceSynchronize", 100, 800)
    assert waits_of(trace).count == 0


def test_without_recorded_calls_nothing_is_known():
    assert waits_of(HandMadeTrace().kernel("void k()", 10, 5, launched=False)) is None


def test_a_watchdogs_wait_is_not_the_loops():
    trace = HandMadeTrace()
    trace.kernel("void k()", 10, 90, launched=0)
    trace.call("cudaEventSynchronize", 20, 300, tid=77)
    trace.kernel("void k()", 405, 50, launched=400)
    assert waits_of(trace).count == 0


def test_a_device_that_waits_for_another_stream_is_not_held_up_by_the_hosts_wait():
    trace = HandMadeTrace()
    trace.kernel("void k()", 10, 40, launched=0)
    trace.kernel("void k()", 300, 50, launched=8)
    trace.call("cudaStreamSynchronize", 20, 330)
    trace.kernel("void k()", 400, 50, launched=395)
    assert waits_of(trace).exposed_seconds == pytest.approx(45e-6)


def test_freeing_driver_memory_is_no_wait_for_a_result():
    trace = HandMadeTrace().kernel("void k()", 10, 40, launched=0).call("cudaFree", 20, 100)
    assert waits_of(trace.kernel("void k()", 160, 50, launched=150)).count == 0


def test_of_waits_that_overlap_the_earlier_one_is_charged():
    trace = HandMadeTrace()
    trace.kernel("void k()", 10, 90, launched=0)
    trace.call("cudaStreamSynchronize", 20, 80).call("cudaDeviceSynchronize", 110, 10)
    trace.kernel("void k()", 165, 50, launched=160)
    found = waits_of(trace)
    assert found.exposed_seconds == pytest.approx(60e-6)
    assert [site.call for site in found.sites if site.exposed_seconds] == ["cudaStreamSynchronize"]


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
EVENT = st.tuples(
    st.sampled_from(["gemm", "to host", "to device", "operator", "wait", "free", "copy at once", "loader"]),
    st.integers(0, 3000),
    st.integers(0, 800),
    st.integers(-200, 900),
    st.integers(0, 900),
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(EVENT, max_size=25))
def test_together_they_are_the_breakdowns_part_for_synchronization(events):
    trace = HandMadeTrace().kernel("void k()", 1000, 100, launched=900)
    for kind, start, duration, lead, blocked in events:
        if kind == "gemm":
            trace.kernel("void k()", start, duration, launched=start - lead, launch_duration=7)
        elif kind.startswith("to "):
            name = "Memcpy DtoH (Device -> Pageable)" if kind == "to host" else "Memcpy HtoD (Pageable -> Device)"
            trace.copy(name, start, duration, 8, launched=start - lead, launch_duration=blocked)
        elif kind == "operator":
            trace.operator("aten::a", start, duration)
        elif kind == "loader":
            trace.annotation(LOADER, start, duration)
        else:
            trace.call({"wait": "cudaStreamSynchronize", "free": "cudaFree", "copy at once": "hipMemcpyWithStream"}[kind], start, duration)
    read = trace.read()
    (breakdown,) = step_breakdown(read)
    found = synchronizations(read, breakdown)
    assert found.exposed_seconds == pytest.approx(breakdown.seconds["synchronization"], abs=1e-12)
