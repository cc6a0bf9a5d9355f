import pytest

from advisor.model.finding import Severity
from advisor.rules.device.power_cap import power_cap
from advisor.rules.samples_node import a_gpu, a_node_reading, an_idle_gpu

CAPPED = ("sw_power_cap",)


def check(*gpus):
    return power_cap.check(a_node_reading(*gpus), None)


def test_a_card_at_its_default_limit_is_healthy():
    assert check(a_gpu(power_watts=700.0, sm_clock_mhz=1400.0, clock_event_reasons=CAPPED)) is None


def test_an_idle_card_that_reports_the_cap_is_healthy():
    gpu = an_idle_gpu(clock_event_reasons=CAPPED, performance_state="P8", power_limit_watts=400.0)
    assert check(gpu) is None


@pytest.mark.parametrize(("limit", "fires"), [(686.0, False), (685.0, True), (400.0, True)])
def test_a_limit_below_the_default_fires_where_it_binds(limit, fires):
    gpu = a_gpu(power_limit_watts=limit, power_watts=limit, clock_event_reasons=CAPPED)
    finding = check(gpu)
    assert (finding is not None) is fires
    assert not fires or (finding.severity is Severity.WARNING and "-pl 700" in finding.actions[0].change)


def test_a_lowered_limit_that_does_not_bind_costs_nothing():
    assert check(a_gpu(power_limit_watts=400.0, power_watts=200.0, clock_event_reasons=())) is None


@pytest.mark.parametrize(("watts", "fires"), [(379.0, False), (380.0, True)])
def test_without_reasons_a_lowered_limit_binds_where_the_card_draws_it(watts, fires):
    gpu = a_gpu(power_limit_watts=400.0, power_watts=watts, clock_event_reasons=None)
    assert (check(gpu) is not None) is fires


@pytest.mark.parametrize(("watts", "fires"), [(525.0, True), (526.0, False)])
def test_a_cap_far_below_the_cards_own_limit_fires(watts, fires):
    gpu = a_gpu(power_watts=watts, sm_clock_mhz=1500.0, clock_event_reasons=CAPPED)
    finding = check(gpu)
    assert (finding is not None) is fires
    assert not fires or "something other" in finding.statement


@pytest.mark.parametrize(("clock", "fires"), [(1683.0, True), (1684.0, False)])
def test_a_cap_far_below_the_limit_fires_only_where_the_clock_is_held(clock, fires):
    gpu = a_gpu(power_watts=400.0, sm_clock_mhz=clock, clock_event_reasons=CAPPED)
    assert (check(gpu) is not None) is fires


@pytest.mark.parametrize(("clock", "fires"), [(1188.0, True), (1189.0, False)])
def test_a_clock_far_down_at_the_default_limit_is_a_note(clock, fires):
    gpu = a_gpu(power_watts=699.0, sm_clock_mhz=clock, clock_event_reasons=CAPPED)
    finding = check(gpu)
    assert (finding is not None) is fires
    assert not fires or finding.severity is Severity.INFO


@pytest.mark.parametrize(("gpu", "confidence"), [(a_gpu, 0.9), (an_idle_gpu, 0.55)])
def test_the_brake_of_the_supply_fires_whatever_the_load(gpu, confidence):
    finding = check(gpu(clock_event_reasons=("hw_slowdown", "hw_power_brake")))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, confidence)
    assert finding.supersedes == ("DEV103",)
