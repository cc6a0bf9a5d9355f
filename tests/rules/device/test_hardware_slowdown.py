import pytest

from advisor.rules.device.hardware_slowdown import hardware_slowdown
from advisor.rules.samples_node import a_gpu, a_node_reading, an_idle_gpu


def check(*gpus):
    return hardware_slowdown.check(a_node_reading(*gpus), None)


@pytest.mark.parametrize(("clock", "fires"), [(1188.0, True), (1189.0, False)])
def test_the_flag_counts_where_the_clock_is_cut(clock, fires):
    assert (check(a_gpu(sm_clock_mhz=clock, clock_event_reasons=("hw_slowdown",))) is not None) is fires


def test_without_clocks_the_flag_counts_for_less():
    finding = check(a_gpu(sm_clock_mhz=None, clock_event_reasons=("hw_slowdown",)))
    assert finding.confidence == 0.5


@pytest.mark.parametrize("cause", ["hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake"])
def test_a_slowdown_whose_cause_is_named_is_left_to_that_cause(cause):
    assert check(a_gpu(sm_clock_mhz=600.0, clock_event_reasons=("hw_slowdown", cause))) is None


def test_an_idle_gpu_does_not_fire():
    assert check(an_idle_gpu(clock_event_reasons=("gpu_idle", "hw_slowdown"))) is None


def test_a_gpu_of_unknown_load_does_not_fire():
    gpu = a_gpu(
        gpu_utilization_ratio=None,
        power_watts=None,
        sm_clock_mhz=345.0,
        clock_event_reasons=("hw_slowdown",),
    )
    assert check(gpu) is None
