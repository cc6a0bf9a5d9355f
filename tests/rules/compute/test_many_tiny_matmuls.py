import pytest

from advisor.rules.compute.many_tiny_matmuls import many_tiny_matmuls
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_decode, a_launch_profile, a_mix


def check(count, *, products=None, step_count=10, launches=None, decode=None):
    mix = a_mix(
        kernel_count=10_000,
        counts=(("matmul", products or count), ("elementwise", 3_000)),
        tiny_matmul_count=count,
        tiny_matmul_seconds=count * 5e-6,
    )
    breakdown = a_breakdown(launch=0.5, step_count=step_count)
    return many_tiny_matmuls.check(breakdown, mix, launches, decode)


@pytest.mark.parametrize(("count", "fires"), [(2_990, False), (3_000, True)])
def test_three_hundred_a_step_are_many(count, fires):
    assert (check(count) is not None) is fires


@pytest.mark.parametrize(("count", "fires"), [(999, False), (2_000, True)])
def test_without_steps_a_thousand_are_many(count, fires):
    assert (check(count, step_count=0) is not None) is fires


def test_they_must_be_most_of_the_products():
    assert check(4_000, products=8_001) is None


def test_out_of_graphs_they_cost_no_launches():
    assert check(6_000, launches=a_launch_profile(graph_kernel_ratio=0.9)) is None


def test_generation_has_a_rule_of_its_own():
    assert check(6_000, decode=a_decode(mark="step[DECODE bs=1]")) is None
