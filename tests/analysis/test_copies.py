import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.copies import copies

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"


def groups_of(trace):
    read = trace.read()
    return copies(read, a_breakdown_of(read)).groups


def test_only_what_no_kernel_runs_beside_is_exposed():
    (group,) = groups_of(HandMadeTrace().kernel("void k()", 100, 50).copy(PAGEABLE, 130, 40, 16 * 1024**2).copy(PAGEABLE, 300, 10, 400))
    assert group.device_seconds == pytest.approx(50e-6)
    assert group.exposed_seconds == pytest.approx(30e-6)
    assert (group.count, group.large_count, group.moved_bytes) == (2, 1, 16 * 1024**2 + 400)
    assert (group.direction, group.is_pageable) == ("HtoD", True)


def test_copies_beside_collectives_are_not_exposed():
    (group,) = groups_of(
        HandMadeTrace().kernel("ncclDevKernel_AllReduce()", 100, 50).copy("Memcpy HtoD (Pinned -> Device)", 110, 20, 400, stream=9)
    )
    assert (group.exposed_seconds, group.is_pageable) == (0, False)


def test_idle_time_inside_the_blocking_call_is_told_apart():
    (group,) = groups_of(HandMadeTrace().kernel("void k()", 0, 20, launched=0).copy(PAGEABLE, 90, 10, 400, launched=10, launch_duration=90))
    assert group.blocked_seconds == pytest.approx(90e-6)
    assert group.stalled_seconds == pytest.approx(70e-6)


@pytest.mark.parametrize("name", ["Memcpy HtoD (Host -> Device)", "CopyHostToDevice"])
def test_where_the_name_does_not_tell_the_kind_of_memory_it_is_unknown(name):
    (group,) = groups_of(HandMadeTrace().copy(name, 100, 10, 64))
    assert group.is_pageable is None


def test_fills_are_no_copies():
    read = HandMadeTrace().kernel("Memset (Device)", 10, 5, category="gpu_memset").read()
    assert copies(read, a_breakdown_of(read)).groups == ()
