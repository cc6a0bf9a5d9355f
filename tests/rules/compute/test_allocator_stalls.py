import pytest

from advisor.model.evidence import Source
from advisor.model.finding import Severity
from advisor.model.tables import MemorySummary, OperatorRow
from advisor.rules.compute.allocator_stalls import allocator_stalls
from advisor.rules.samples import a_breakdown, a_failure
from advisor.rules.samples_time import a_driver_allocations, a_log_that_mentions, a_table

STALLS = {
    "steady_alloc_count": 90,
    "steady_free_count": 90,
    "steady_seconds": 0.1,
    "steady_steps_hit": 9,
}


def check(breakdown=None, allocations=None, table=None, log=None, failure=None, summary=None):  # noqa: PLR0913, PLR0917 - the rule's needs
    return allocator_stalls.check(breakdown, allocations, None, table, log, failure, summary)


def with_allocations(**fields):
    return check(a_breakdown(), a_driver_allocations(**(STALLS | fields)))


@pytest.mark.parametrize(("seconds", "fires"), [(0.0089, False), (0.0091, True)])
def test_a_hundredth_of_the_steady_steps_is_enough(seconds, fires):
    assert (with_allocations(steady_seconds=seconds) is not None) is fires


@pytest.mark.parametrize(("exposed", "fires"), [(0.0089, False), (0.0091, True)])
def test_what_the_device_loses_decides_where_it_is_known(exposed, fires):
    found = with_allocations(steady_exposed_seconds=exposed)
    assert (found is not None) is fires
    assert found is None or found.impact.step_ratio == pytest.approx(exposed)


@pytest.mark.parametrize(("hit", "fires"), [(4, False), (5, True)])
def test_half_of_the_steady_steps_must_be_hit(hit, fires):
    assert (with_allocations(steady_steps_hit=hit) is not None) is fires


def test_three_calls_are_an_event_and_no_habit():
    assert with_allocations(steady_alloc_count=2, steady_free_count=1) is None


def test_without_marked_steps_it_cannot_tell_warm_up_from_steady_steps():
    assert (
        with_allocations(
            steady_step_count=0,
            steady_alloc_count=None,
            steady_free_count=None,
            steady_seconds=None,
            steady_steps_hit=0,
        )
        is None
    )


@pytest.mark.parametrize(("seconds", "fires"), [(0.099, False), (0.101, True)])
def test_a_table_fires_and_admits_that_it_may_be_warm_up(seconds, fires):
    row = OperatorRow(name="cudaMalloc", calls=33, self_cpu_seconds=seconds)
    found = check(table=a_table(row, self_cpu_total_seconds=1.0))
    assert (found is not None) is fires
    assert found is None or found.confidence < 0.5


def test_counted_retries_say_more_than_the_word_empty_cache():
    retries = check(log=a_log_that_mentions("alloc-retries", "num_alloc_retries: 12"))
    word = check(log=a_log_that_mentions("empty-cache", "torch.cuda.empty_cache()"))
    assert retries.confidence > word.confidence
    assert (retries.severity, word.severity) == (Severity.WARNING, Severity.INFO)


def test_the_log_of_a_failure_is_about_the_failure():
    log = a_log_that_mentions("empty-cache", "I tried torch.cuda.empty_cache()")
    assert check(log=log, failure=a_failure()) is None


def test_the_counters_of_a_summary_are_left_to_the_rule_that_subtracts_failures():
    log = a_log_that_mentions("alloc-retries", "num_alloc_retries: 12")
    summary = MemorySummary(source=Source(path="log"), device_index=0, ooms=1, retries=12, current={}, peak={}, counts={})
    assert check(log=log, summary=summary) is None
    assert check(log=a_log_that_mentions("empty-cache", "torch.cuda.empty_cache()"), summary=summary) is not None


@pytest.mark.parametrize(("retries", "fires"), [(1, False), (2, True)])
def test_a_line_that_counts_both_needs_more_retries_than_failures(retries, fires):
    log = a_log_that_mentions("alloc-retries", f"|   CUDA OOMs: 1   |   cudaMalloc retries: {retries}   |")
    assert (check(log=log) is not None) is fires
