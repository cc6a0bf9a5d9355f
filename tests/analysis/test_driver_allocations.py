import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.driver_allocations import driver_allocations


def allocations_of(trace):
    read = trace.read()
    return driver_allocations(read, a_breakdown_of(read))


def test_calls_in_the_first_step_are_not_steady():
    trace = HandMadeTrace()
    for number in range(4):
        trace.step(number, number * 100, 100).call("cudaLaunchKernel", number * 100 + 5, 5)
    trace.call("cudaMalloc", 10, 40).call("cudaMalloc", 210, 8).call("cudaFree", 220, 12).call("cudaFree", 310, 5)
    found = allocations_of(trace)
    assert (found.alloc_count, found.free_count) == (2, 2)
    assert (found.steady_alloc_count, found.steady_free_count) == (1, 2)
    assert (found.steady_step_count, found.steady_steps_hit) == (3, 2)
    assert found.seconds == pytest.approx(65e-6)
    assert found.steady_seconds == pytest.approx(25e-6)


def test_only_the_idle_device_loses_by_them():
    trace = HandMadeTrace().step(0, 0, 100).step(1, 100, 100).kernel("void k()", 10, 130, launched=0)
    found = allocations_of(trace.call("cudaMalloc", 120, 50))
    assert found.steady_seconds == pytest.approx(50e-6)
    assert found.steady_exposed_seconds == pytest.approx(30e-6)


def test_amds_calls_count_too():
    found = allocations_of(HandMadeTrace().call("hipMalloc", 0, 10).call("hipFree", 20, 10))
    assert (found.alloc_count, found.free_count) == (1, 1)


def test_without_steps_it_is_unknown_which_are_steady():
    assert allocations_of(HandMadeTrace().call("cudaMalloc", 0, 10)).steady_alloc_count is None


def test_host_memory_is_not_the_devices():
    assert allocations_of(HandMadeTrace().call("cudaMallocHost", 0, 10)).alloc_count == 0


def test_without_recorded_calls_there_is_nothing_to_count():
    assert allocations_of(HandMadeTrace().kernel("void k()", 10, 5, launched=False)) is None
