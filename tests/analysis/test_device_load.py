import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.device_load import (
    LOADED_POWER_RATIO,
    LOADED_RATIO,
    Load,
    clock_ratio,
    limit_ratio,
    link_bandwidth,
    link_ratio,
    load_of,
    power_ratio,
)
from advisor.rules.samples_node import a_gpu, an_idle_gpu


@pytest.mark.parametrize(
    ("fields", "load"),
    [
        ({"gpu_utilization_ratio": LOADED_RATIO}, Load.LOADED),
        ({"gpu_utilization_ratio": LOADED_RATIO - 0.01}, Load.IDLE),
        ({"gpu_utilization_ratio": 1.0, "clock_event_reasons": ("gpu_idle",)}, Load.IDLE),
        ({"gpu_utilization_ratio": 1.0, "performance_state": "P8"}, Load.IDLE),
        ({"gpu_utilization_ratio": 1.0, "performance_state": "P2"}, Load.LOADED),
        ({"gpu_utilization_ratio": None, "power_watts": 700 * LOADED_POWER_RATIO}, Load.LOADED),
        (
            {"gpu_utilization_ratio": None, "power_watts": 700 * LOADED_POWER_RATIO - 1},
            Load.UNKNOWN,
        ),
        ({"gpu_utilization_ratio": None, "power_watts": None}, Load.UNKNOWN),
        ({"is_lost": True}, Load.UNKNOWN),
    ],
)
def test_load_is_told_by_utilization_and_by_power_where_that_is_hidden(fields, load):
    assert load_of(a_gpu(**fields)) is load


def test_an_idle_card_is_idle():
    assert load_of(an_idle_gpu()) is Load.IDLE


def test_ratios_of_unknown_figures_are_unknown():
    gpu = a_gpu(
        max_sm_clock_mhz=None,
        power_limit_watts=None,
        default_power_limit_watts=None,
        pcie_width=None,
    )
    assert (clock_ratio(gpu), power_ratio(gpu), limit_ratio(gpu), link_ratio(gpu)) == (
        None,
        None,
        None,
        None,
    )


def test_a_maximum_of_nothing_is_unknown_too():
    gpu = a_gpu(max_sm_clock_mhz=0.0, power_limit_watts=0.0, default_power_limit_watts=0.0)
    assert (clock_ratio(gpu), power_ratio(gpu), limit_ratio(gpu)) == (None, None, None)


def test_half_the_lanes_are_half_the_bandwidth():
    assert link_ratio(a_gpu(pcie_width=8)) == pytest.approx(0.5)


def test_a_generation_less_is_about_half_the_bandwidth():
    assert link_ratio(a_gpu(pcie_generation=4)) == pytest.approx(0.5, abs=0.01)


@given(
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([1, 2, 4, 8, 16]),
)
def test_a_link_is_never_better_than_its_best(generation, best_generation, width, best_width):
    gpu = a_gpu(
        pcie_generation=generation,
        max_pcie_generation=best_generation,
        pcie_width=width,
        max_pcie_width=best_width,
    )
    ratio = link_ratio(gpu)
    assert 0.0 < ratio <= 1.0


def test_an_unknown_generation_has_no_bandwidth():
    assert link_bandwidth(9, 16) is None
    assert link_bandwidth(None, 16) is None
