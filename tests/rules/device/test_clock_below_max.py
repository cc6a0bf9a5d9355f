import pytest

from advisor.model.finding import Severity
from advisor.rules.device.clock_below_max import clock_below_max
from advisor.rules.samples_node import a_gpu, a_node_reading, an_idle_gpu


def check(*gpus):
    return clock_below_max.check(a_node_reading(*gpus), None)


SET = ("applications_clocks",)


@pytest.mark.parametrize(("clock", "fires"), [(1881.0, True), (1882.0, False)])
def test_a_setting_that_the_driver_names_fires_from_a_twentieth_on(clock, fires):
    gpu = a_gpu(sm_clock_mhz=clock, applications_sm_clock_mhz=clock, clock_event_reasons=SET)
    finding = check(gpu)
    assert (finding is not None) is fires
    assert not fires or finding.severity is Severity.WARNING


def test_a_factory_setting_is_a_note():
    gpu = a_gpu(
        sm_clock_mhz=1275.0,
        max_sm_clock_mhz=1410.0,
        applications_sm_clock_mhz=1275.0,
        default_applications_sm_clock_mhz=1275.0,
        clock_event_reasons=SET,
    )
    assert check(gpu).severity is Severity.INFO


def test_an_application_clock_that_holds_nothing_does_not_fire():
    assert check(a_gpu(applications_sm_clock_mhz=1275.0, sm_clock_mhz=1980.0)) is None


def test_a_group_in_sync_boost_holds_the_clock():
    assert "sync_boost" in check(a_gpu(sm_clock_mhz=1500.0, clock_event_reasons=("sync_boost",))).statement


@pytest.mark.parametrize(("clock", "fires"), [(990.0, True), (991.0, False)])
def test_half_the_clock_without_a_reason_looks_locked(clock, fires):
    finding = check(a_gpu(sm_clock_mhz=clock))
    assert (finding is not None) is fires
    assert not fires or (finding.confidence <= 0.5 and finding.settles is not None)


@pytest.mark.parametrize(("busy", "fires"), [(0.90, True), (0.89, False)])
def test_a_card_that_is_not_busy_all_the_time_saves_power(busy, fires):
    assert (check(a_gpu(sm_clock_mhz=900.0, gpu_utilization_ratio=busy)) is not None) is fires


@pytest.mark.parametrize(("clock", "fires"), [(2095.0, True), (2096.0, False)])
def test_a_memory_clock_a_fifth_down_looks_locked(clock, fires):
    assert (check(a_gpu(memory_clock_mhz=clock)) is not None) is fires


@pytest.mark.parametrize("reason", ["sw_power_cap", "sw_thermal_slowdown", "hw_slowdown", "hw_power_brake"])
def test_another_cause_explains_the_clock(reason):
    assert check(a_gpu(sm_clock_mhz=900.0, clock_event_reasons=(reason, "applications_clocks"))) is None


def test_without_reasons_nothing_is_said_of_a_low_clock():
    assert check(a_gpu(sm_clock_mhz=900.0, clock_event_reasons=None)) is None


def test_an_idle_card_does_not_fire():
    assert check(an_idle_gpu(), an_idle_gpu(clock_event_reasons=SET)) is None
