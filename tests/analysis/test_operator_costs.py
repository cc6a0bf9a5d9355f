import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.operator_costs import operator_costs
from advisor.model.step_time import Bound
from advisor.rules.samples_time import a_ceiling

SQUARE = {"dims": [[4096, 4096], [4096, 4096]], "types": ["c10::BFloat16", "c10::BFloat16"]}
PRODUCT_FLOPS = 2 * 4096**3


def costs_of(trace, ceilings=None, **breakdown):
    read = trace.read()
    return operator_costs(read, a_breakdown_of(read, **breakdown), ceilings)


def a_product(trace, start, duration, *, external_id, name="sm80_xmma_gemm_bf16bf16", **shape):
    trace.operator("aten::mm", start, 20, external_id=external_id, **(shape or SQUARE))
    return trace.kernel(name, start + 50, duration, launched=start + 5, external_id=external_id)


def test_device_time_belongs_to_the_operator_that_launched():
    trace = a_product(HandMadeTrace(), 0, 1_000, external_id=1)
    trace.kernel("void splitKreduce_kernel()", 2_000, 100, launched=10, external_id=1)
    (cost,) = costs_of(trace).operators
    assert (cost.name, cost.calls) == ("aten::mm", 1)
    assert cost.device_seconds == pytest.approx(1_100e-6)


def test_flops_and_bytes_follow_from_the_shapes_of_each_call():
    trace = a_product(HandMadeTrace(), 0, 1_000, external_id=1)
    a_product(trace, 2_000, 1_000, external_id=2)
    costs = costs_of(trace)
    (cost,) = costs.operators
    assert cost.flops == costs.flops == 2 * PRODUCT_FLOPS
    assert cost.moved_bytes == 2 * 3 * 4096**2 * 2
    assert cost.intensity == pytest.approx(4096 / 3)
    assert (cost.attained_ratio, cost.bound) == (None, Bound.UNKNOWN)


def test_against_the_ceilings_a_product_tells_what_it_attains():
    seconds = PRODUCT_FLOPS / (0.5 * 312e12)
    costs = costs_of(a_product(HandMadeTrace(), 0, seconds * 1e6, external_id=1), a_ceiling())
    (cost,) = costs.operators
    assert cost.attained_ratio == pytest.approx(0.5, rel=1e-3)
    assert cost.bound is Bound.COMPUTE
    (shape,) = costs.matmuls
    assert (shape.rows, shape.columns, shape.inner, shape.dtype) == (4096, 4096, 4096, "bf16")
    assert (costs.peak_dtype, costs.peak_flops) == ("bf16", 312e12)


def test_a_pointwise_operator_is_bound_by_memory():
    trace = HandMadeTrace()
    trace.operator("aten::add", 0, 5, external_id=1, dims=[[1024, 1024], [1024, 1024]], types=["float", "float"])
    trace.kernel("void vectorized_elementwise_kernel<4>()", 30, 12, external_id=1)
    (cost,) = costs_of(trace, a_ceiling()).operators
    assert cost.bound is Bound.MEMORY
    assert cost.attained_ratio == pytest.approx(3 * 4 * 1024**2 / 2.039e12 / 12e-6, rel=1e-3)


def test_fp32_products_on_tensor_cores_are_tf32():
    trace = a_product(
        HandMadeTrace(),
        0,
        1_000,
        external_id=1,
        name="sm80_xmma_gemm_tf32f32_tf32f32_f32_tn_n",
        dims=[[64, 64], [64, 64]],
        types=["float", "float"],
    )
    assert costs_of(trace, a_ceiling()).peak_dtype == "tf32"


def test_kernels_without_an_operator_stand_under_their_own_name():
    costs = costs_of(HandMadeTrace().kernel("void lonely()", 100, 10).graph(0, [("void k()", 50, 5), ("void k()", 60, 5)]))
    assert {(cost.name, cost.calls) for cost in costs.operators} == {("void lonely()", 1), ("void k()", 2)}
    assert costs.flops is None


def test_without_external_ids_operators_are_found_by_time():
    trace = HandMadeTrace().operator("aten::linear", 0, 40, **SQUARE).operator("aten::addmm", 5, 30)
    trace.kernel("void k()", 100, 10, launched=10)
    assert [cost.name for cost in costs_of(trace).operators] == ["aten::addmm"]


def test_where_shapes_are_missing_flops_are_unknown_and_not_zero():
    trace = HandMadeTrace().operator("aten::mm", 0, 20, external_id=1)
    costs = costs_of(trace.kernel("void k()", 50, 10, launched=5, external_id=1))
    assert (costs.operators[0].flops, costs.flops, costs.unshaped_count) == (None, None, 1)


def test_on_a_cpu_operators_are_counted_by_their_own_time_and_wrappers_do_no_work():
    trace = HandMadeTrace(device=None)
    trace.operator("aten::linear", 0, 100, dims=[[8, 16], [4, 16], []], types=["float", "float", ""])
    trace.operator("aten::mm", 10, 80, dims=[[8, 16], [16, 4]], types=["float", "float"])
    costs = costs_of(trace)
    assert not costs.is_device_time
    assert [(cost.name, round(cost.device_seconds * 1e6)) for cost in costs.operators] == [("aten::mm", 80), ("aten::linear", 20)]
    assert costs.flops == 2 * 8 * 16 * 4


def test_utilization_is_of_the_whole_window():
    seconds = PRODUCT_FLOPS / 312e12
    trace = a_product(HandMadeTrace(), 0, seconds * 1e6, external_id=1)
    costs = costs_of(trace, a_ceiling(), window_seconds=4 * seconds)
    assert costs.mfu_ratio == pytest.approx(0.25)
    assert costs_of(trace).mfu_ratio is None


def test_no_more_than_twenty_operators_are_listed_and_all_are_in_the_sum():
    trace = HandMadeTrace()
    for number in range(25):
        trace.kernel(f"void kernel_{number}()", 100 * number + 50, number + 1)
    costs = costs_of(trace)
    assert len(costs.operators) == 20
    assert costs.total_seconds == pytest.approx(sum(range(1, 26)) * 1e-6)
    assert costs.operators[0].name == "void kernel_24()"
