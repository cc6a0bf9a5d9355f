import pytest

from advisor.rules.compute.elementwise_memory_bound import elementwise_memory_bound
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_mix, an_optimizer


def check(elementwise, optimizer=None, **breakdown):
    mix = a_mix(seconds=(("matmul", 1.0 - elementwise), ("elementwise", elementwise)), device_seconds=1.0)
    return elementwise_memory_bound.check(a_breakdown(**breakdown), mix, optimizer)


@pytest.mark.parametrize(("share", "fires"), [(0.199, False), (0.201, True)])
def test_it_fires_from_a_fifth_of_the_window_on(share, fires):
    assert (check(share) is not None) is fires


def test_time_in_which_the_device_idles_is_not_theirs():
    assert check(0.25, launch=0.3) is None


def test_no_more_than_half_of_their_time_is_said_to_be_recoverable():
    assert check(0.4).impact.step_ratio == pytest.approx(0.2)


def test_the_optimizers_kernels_are_left_to_the_rule_about_the_optimizer():
    loop = an_optimizer(device_seconds=0.2, multi_tensor_count=0, fused_count=0)
    assert check(0.3, loop) is None
    fused = an_optimizer(device_seconds=0.2)
    assert check(0.3, fused) is not None


def test_kernels_that_a_compiler_fused_are_not_counted():
    mix = a_mix(seconds=(("matmul", 0.5), ("generated", 0.5)), device_seconds=1.0)
    assert elementwise_memory_bound.check(a_breakdown(), mix, None) is None


def test_collectives_are_no_part_of_the_computing_time_that_is_shared_out():
    mix = a_mix(seconds=(("matmul", 0.6), ("elementwise", 0.4), ("communication", 3.0)), device_seconds=4.0)
    found = elementwise_memory_bound.check(a_breakdown(exposed_communication=0.4), mix, None)
    assert found.impact.step_ratio == pytest.approx(0.5 * 0.4 * 0.6)
