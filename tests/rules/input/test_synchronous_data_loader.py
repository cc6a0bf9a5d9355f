import pytest

from advisor.rules.input.synchronous_data_loader import synchronous_data_loader
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import an_input_wait

SINGLE = {"loader": "_SingleProcessDataLoaderIter", "is_single_process": True}


def check(ratio, **wait):
    return synchronous_data_loader.check(a_breakdown(input_wait=ratio), an_input_wait(**wait), None)


@pytest.mark.parametrize(("ratio", "fires"), [(0.099, False), (0.101, True)])
def test_it_fires_from_a_tenth_of_the_window_on(ratio, fires):
    assert (check(ratio, **SINGLE) is not None) is fires


def test_a_loader_with_workers_is_never_called_synchronous_however_long_it_takes():
    assert check(0.6) is None


def test_a_loader_of_unknown_kind_is_not_called_synchronous():
    assert check(0.6, loader="MyLoader", is_single_process=None) is None


def test_it_explains_the_finding_that_the_job_is_input_bound():
    assert check(0.4, **SINGLE).supersedes == ("INP101",)


WARMED_UP = {"step_count": 10, "steady_step_count": 9, "steady_window_seconds": 0.2}


@pytest.mark.parametrize(("lost", "fires"), [(0.0199, False), (0.0201, True)])
def test_behind_a_slow_first_step_the_share_of_the_later_steps_decides(lost, fires):
    found = check(0.02, **SINGLE, **WARMED_UP, steady_lost_seconds=lost)
    assert (found is not None) is fires
    if found is not None:
        assert found.impact.step_ratio == pytest.approx(lost / 0.2)
        assert any("the slow first step left out" in each.statement for each in found.observations)


def test_a_loader_that_is_slow_in_the_first_step_only_costs_nothing_later():
    assert check(0.6, **SINGLE, **WARMED_UP, steady_lost_seconds=0.0) is None
