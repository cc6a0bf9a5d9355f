import pytest

from advisor.model.finding import Severity
from advisor.rules.compute.compute_bound import compute_bound
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_mix, operator_costs


def check(breakdown=None, mix=None, costs=None):
    return compute_bound.check(breakdown or a_breakdown(), mix or a_mix(), costs)


@pytest.mark.parametrize(("ratio", "fires"), [(0.799, False), (0.801, True)])
def test_four_fifths_of_computing_are_healthy(ratio, fires):
    found = check(a_breakdown(compute=ratio, other_idle=1 - ratio))
    assert (found is not None) is fires
    assert found is None or found.severity is Severity.INFO


@pytest.mark.parametrize(
    ("seconds", "fires"),
    [
        ((("matmul", 0.5), ("other", 0.5)), True),
        ((("matmul", 0.49), ("other", 0.51)), False),
        ((("matmul", 0.84), ("copy", 0.16)), False),
        ((("matmul", 0.69), ("elementwise", 0.31)), False),
    ],
)
def test_what_keeps_the_device_busy_must_be_dense_arithmetic(seconds, fires):
    assert (check(mix=a_mix(seconds=seconds, device_seconds=1.0)) is not None) is fires


def test_fp32_products_on_a_card_with_tensor_cores_are_not_all_well():
    assert check(mix=a_mix(fp32_matmul_seconds=0.3)) is None
    assert check(mix=a_mix(fp32_matmul_seconds=0.3, capability="6.1")) is not None


@pytest.mark.parametrize(("share", "fires"), [(0.149, False), (0.151, True)])
def test_a_small_part_of_a_known_peak_is_not_compute_bound(share, fires):
    costs = operator_costs(flops=share * 312e12)
    assert (check(costs=costs) is not None) is fires
