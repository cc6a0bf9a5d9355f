import pytest

from advisor.model.finding import Severity
from advisor.rules.compute.low_mfu import low_mfu
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_ceiling, a_decode, a_product, operator_costs


def check(share=0.2, decode=None, **costs):
    costs = operator_costs(flops=share * 312e12, **costs)
    return low_mfu.check(a_breakdown(launch=0.4), costs, a_ceiling(), None, decode)


@pytest.mark.parametrize(("share", "fires"), [(0.301, False), (0.299, True)])
def test_it_fires_below_three_tenths_of_the_peak(share, fires):
    found = check(share)
    assert (found is not None) is fires
    assert found is None or found.severity is Severity.INFO


def test_it_tells_where_the_rest_went():
    assert "computing 60%, waiting for launches 40%" in check().statement


def test_flops_of_less_than_half_of_the_time_are_not_the_jobs():
    assert check(modelled_seconds=0.44, total_seconds=0.9) is None


def test_an_unknown_peak_is_no_low_share():
    assert check(peak_flops=None) is None


def test_work_below_the_ridge_point_cannot_reach_the_peak():
    thin = a_product(flops=1e12, moved_bytes=1e12 / 100)
    assert check(matmuls=(thin,)) is None


def test_pointwise_work_has_no_peak_to_reach():
    assert check(matmuls=()) is None


def test_generation_has_a_rule_of_its_own():
    assert check(decode=a_decode(mark="step[DECODE bs=8]")) is None
