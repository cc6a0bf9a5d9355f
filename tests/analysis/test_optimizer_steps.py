import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.optimizer_steps import optimizer_steps

ADD = "void vectorized_elementwise_kernel<4, AddFunctor<float>>()"
FUSED = "void multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float>>()"


def optimizer_of(trace):
    read = trace.read()
    return optimizer_steps(read, a_breakdown_of(read))


def test_kernels_launched_inside_the_mark_are_the_optimizers_whenever_they_run():
    found = optimizer_of(
        HandMadeTrace()
        .kernel(ADD, 50, 100, launched=0)
        .annotation("Optimizer.step#AdamW.step", 10, 40)
        .kernel(ADD, 150, 10, launched=20)
        .kernel(ADD, 180, 10, launched=30)
        .kernel(ADD, 190, 10, launched=60)
    )
    assert (found.name, found.count, found.kernel_count) == ("AdamW", 1, 2)
    assert found.device_seconds == pytest.approx(20e-6)
    assert found.exposed_seconds == pytest.approx(20e-6)


def test_kernels_that_handle_many_tensors_are_told_apart():
    found = optimizer_of(HandMadeTrace().annotation("Optimizer.step#Adam.step", 0, 90).kernel(ADD, 20, 5).kernel(FUSED, 40, 5))
    assert (found.kernel_count, found.multi_tensor_count, found.fused_count) == (2, 1, 1)


def test_the_exchange_of_a_sharded_optimizer_is_no_kernel_of_its_own():
    trace = HandMadeTrace().annotation("Optimizer.step#Adam.step", 0, 90)
    assert optimizer_of(trace.kernel("ncclDevKernel_AllGather()", 20, 50)).kernel_count == 0


def test_without_a_device_its_operators_are_counted():
    trace = HandMadeTrace().annotation("Optimizer.step#SGD.step", 0, 90).operator("aten::add_", 5, 3)
    found = optimizer_of(trace)
    assert (found.kernel_count, found.device_seconds) == (1, None)


def test_without_recorded_launches_its_kernels_are_unknown():
    trace = HandMadeTrace().annotation("Optimizer.step#SGD.step", 0, 90)
    found = optimizer_of(trace.kernel(ADD, 20, 5, launched=False))
    assert (found.kernel_count, found.device_seconds) == (0, None)


def test_a_trace_without_updates_has_no_optimizer():
    assert optimizer_of(HandMadeTrace().kernel(ADD, 20, 5)) is None
