import pytest

from advisor.model.finding import Severity
from advisor.rules.device.thermal_throttle import NEAR_CELSIUS, thermal_throttle
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_node import a_gpu, a_node_reading, an_idle_gpu


def check(*gpus, breakdown=None):
    return thermal_throttle.check(a_node_reading(*gpus), breakdown)


@pytest.mark.parametrize("reason", ["hw_thermal_slowdown", "sw_thermal_slowdown"])
def test_a_thermal_reason_under_load_fires(reason):
    finding = check(a_gpu(clock_event_reasons=("hw_slowdown", reason), sm_clock_mhz=900.0))
    assert finding.severity is Severity.WARNING
    assert finding.confidence >= 0.9
    assert "900 of at most 1,980 MHz" in finding.statement


@pytest.mark.parametrize("reasons", [(), ("gpu_idle",), ("sw_power_cap",), ("hw_slowdown",)])
def test_other_reasons_do_not_fire(reasons):
    assert check(a_gpu(clock_event_reasons=reasons)) is None


@pytest.mark.parametrize(("margin", "fires"), [(NEAR_CELSIUS, True), (NEAR_CELSIUS + 1, False)])
def test_an_idle_gpus_reason_is_believed_near_its_threshold_only(margin, fires):
    gpu = an_idle_gpu(
        clock_event_reasons=("gpu_idle", "sw_thermal_slowdown"),
        slowdown_celsius=89.0,
        temperature_celsius=89.0 - margin,
    )
    assert (check(gpu) is not None) is fires


@pytest.mark.parametrize(("temperature", "fires"), [(88.9, False), (89.0, True)])
def test_without_reasons_the_threshold_itself_counts(temperature, fires):
    finding = check(a_gpu(clock_event_reasons=None, slowdown_celsius=89.0, temperature_celsius=temperature))
    assert (finding is not None) is fires
    assert not fires or finding.confidence < 0.7


def test_a_temperature_above_the_threshold_with_reasons_read_and_none_set_is_no_throttling():
    assert check(a_gpu(clock_event_reasons=(), temperature_celsius=90.0)) is None


def test_the_slowest_gpu_is_named_first_and_the_others_beside_it():
    reasons = ("sw_thermal_slowdown",)
    finding = check(
        a_gpu(clock_event_reasons=reasons, sm_clock_mhz=1800.0),
        a_gpu(index=1),
        a_gpu(index=2, clock_event_reasons=reasons, sm_clock_mhz=1000.0),
    )
    assert finding.statement.startswith("GPU 2 (NVIDIA H100 80GB HBM3) and GPU 0:")
    assert "sudo nvidia-smi -i 2 -pl 595" in {action.change for action in finding.actions}


def test_what_could_be_won_is_computing_time_times_the_missing_clock():
    finding = check(
        a_gpu(clock_event_reasons=("hw_thermal_slowdown",), sm_clock_mhz=990.0),
        breakdown=a_breakdown(input_wait=0.2),
    )
    assert finding.impact.step_ratio == pytest.approx(0.8 * 0.5)
    assert finding.impact.recoverable_seconds_per_step == pytest.approx(0.04)


def test_without_a_trace_what_could_be_won_is_unknown():
    finding = check(a_gpu(clock_event_reasons=("hw_thermal_slowdown",)))
    assert finding.impact.step_ratio is None
