import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.communication import collective_of, communication

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def communication_of(trace):
    read = trace.read()
    return communication(read, a_breakdown_of(read))


def test_only_what_no_computation_hides_is_exposed():
    found = communication_of(
        HandMadeTrace()
        .kernel("void k()", 100, 50)
        .kernel(ALL_REDUCE, 120, 80, stream=20)
        .kernel("ncclDevKernel_SendRecv(x)", 300, 10, stream=20)
    )
    assert found.device_seconds == pytest.approx(90e-6)
    assert found.exposed_seconds == pytest.approx(60e-6)
    assert [(group.name, group.count) for group in found.groups] == [("all_reduce", 1), ("send_recv", 1)]


def test_collectives_side_by_side_are_counted_once():
    found = communication_of(HandMadeTrace().kernel(ALL_REDUCE, 100, 50, stream=20).kernel(ALL_REDUCE, 110, 50, stream=21))
    assert found.device_seconds == pytest.approx(60e-6)


def test_a_device_without_collectives_has_no_communication():
    assert communication_of(HandMadeTrace().kernel("void k()", 100, 50)) is None


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (ALL_REDUCE, "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16", "reduce_scatter"),
        ("ncclKernel_AllGather_RING_LL", "all_gather"),
        ("void multimem_all_reduce_kernel<c10::BFloat16>()", "all_reduce"),
        ("ncclKernel_Broadcast", "broadcast"),
        ("rcclGenericKernel", "rcclGenericKernel"),
    ],
)
def test_kernels_tell_their_collective(kernel, name):
    assert collective_of(kernel) == name
