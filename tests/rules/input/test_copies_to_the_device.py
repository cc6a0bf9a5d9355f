import pytest

from advisor.model.finding import Severity
from advisor.rules.input.host_to_device_bound import host_to_device_bound
from advisor.rules.input.pageable_host_copies import pageable_host_copies
from advisor.rules.samples import a_breakdown, a_failure
from advisor.rules.samples_time import a_copy_group, a_copy_profile, a_log_that_mentions

PAGEABLE = {"name": "Memcpy HtoD (Pageable -> Device)", "is_pageable": True}


def pageable(*groups):
    return pageable_host_copies.check(a_breakdown(), a_copy_profile(*groups), None, None, None)


def bound(*groups):
    return host_to_device_bound.check(a_breakdown(), a_copy_profile(*groups), None)


@pytest.mark.parametrize(
    ("exposed", "severity"),
    [(0.009, None), (0.011, Severity.INFO), (0.029, Severity.INFO), (0.031, Severity.WARNING)],
)
def test_pageable_copies_matter_by_their_exposed_time(exposed, severity):
    finding = pageable(a_copy_group(exposed_seconds=exposed, **PAGEABLE))
    assert (finding.severity if finding else None) == severity


def test_idle_time_inside_the_call_that_copies_counts_too():
    group = a_copy_group(exposed_seconds=0.005, stalled_seconds=0.05, **PAGEABLE)
    assert pageable(group).impact.step_ratio == pytest.approx(0.055)


def test_where_the_runtime_does_not_say_which_memory_it_was_the_rule_is_silent():
    assert pageable(a_copy_group(exposed_seconds=0.5, is_pageable=None)) is None


def test_pinned_copies_are_not_pageable():
    assert pageable(a_copy_group(exposed_seconds=0.5)) is None


@pytest.mark.parametrize(("exposed", "fires"), [(0.099, False), (0.101, True)])
def test_copies_bound_the_step_from_a_tenth_on(exposed, fires):
    assert (bound(a_copy_group(exposed_seconds=exposed)) is not None) is fires


def test_copies_to_the_host_are_not_input():
    assert bound(a_copy_group(direction="DtoH", exposed_seconds=0.5)) is None


def test_pageable_copies_explain_a_step_that_is_bound_by_copies():
    assert pageable(a_copy_group(exposed_seconds=0.2, **PAGEABLE)).supersedes == ("INP104",)
    mostly_pinned = pageable(a_copy_group(exposed_seconds=0.05, **PAGEABLE), a_copy_group(exposed_seconds=0.2))
    assert mostly_pinned.supersedes == ()


def test_a_log_is_taken_at_its_word_unless_the_job_failed():
    log = a_log_that_mentions("pageable-memory", "Async Memcpy with Pageable Memory: 139 us")
    assert pageable_host_copies.check(None, None, None, log, None).confidence == 0.8
    assert pageable_host_copies.check(None, None, None, log, a_failure()) is None


def test_non_blocking_alone_says_nothing_about_pageable_memory():
    log = a_log_that_mentions("pageable-memory", "x = x.to(device, non_blocking=True)")
    assert pageable_host_copies.check(None, None, None, log, None) is None
