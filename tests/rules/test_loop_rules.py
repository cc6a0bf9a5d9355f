"""Rules on a watched loop, just either side of their thresholds, and silent on a healthy one."""

import pytest

from advisor.engine.advise import advise
from advisor.model.case import Case
from advisor.model.finding import Severity
from advisor.rules.samples_loop import a_loop


def codes(loop):
    return {item.code for item in advise(Case(evidence=(loop,))).diagnoses}


def test_a_healthy_loop_has_no_diagnosis():
    assert not codes(a_loop())


def test_a_tiny_loop_whose_python_shows_has_none_either():
    assert not codes(
        a_loop(phases={"data_wait": 0.3, "forward": 0.5, "backward": 0.4, "optimizer": 0.6, "other": 0.3}, gc_seconds=0.01, gc_count=200)
    )


@pytest.mark.parametrize(
    ("code", "over", "under"),
    [
        ("INP101", a_loop(phases={"data_wait": 11.0}), a_loop(phases={"data_wait": 10.7})),
        ("INP102", a_loop(phases={"data_wait": 11.0}, worker_count=0), a_loop(phases={"data_wait": 11.0}, worker_count=1)),
        ("HST103", a_loop(gc_seconds=0.61, gc_count=200), a_loop(gc_seconds=0.59, gc_count=200)),
        ("HST104", a_loop(recompilation_count=3), a_loop(recompilation_count=2)),
        ("HST107", a_loop(flags={"anomaly_mode": 0.5}), a_loop(flags={"anomaly_mode": 0.49})),
        ("HST108", a_loop(phases={"checkpoint": 5.3}), a_loop(phases={"checkpoint": 5.2})),
        ("HST109", a_loop(phases={"other": 11.0}), a_loop(phases={"other": 10.8})),
        (
            "CMP120",
            a_loop(phases={"evaluation": 2.0}, flags={"grad_enabled_in_evaluation": 0.01}),
            a_loop(phases={"evaluation": 0.9}, flags={"grad_enabled_in_evaluation": 0.01}),
        ),
    ],
)
def test_each_threshold_is_where_the_page_says(code, over, under):
    assert code in codes(over)
    assert code not in codes(under)


def test_a_collector_that_the_program_calls_is_told_from_pythons_own():
    (asked,) = advise(Case(evidence=(a_loop(gc_seconds=3.0, gc_count=200),))).diagnoses
    (own,) = advise(Case(evidence=(a_loop(gc_seconds=3.0, gc_count=20),))).diagnoses
    assert asked.finding.actions[0].title.startswith("Remove gc.collect()")
    assert own.finding.actions[0].title.startswith("Let the collector skip")


def test_the_period_of_slow_steps_is_said():
    loop = a_loop(phases={"checkpoint": 40.0}, slow_count=40, slow_every=5, slow_phase="checkpoint")
    assert "every 5 steps" in advise(Case(evidence=(loop,))).diagnoses[0].finding.statement


def test_gains_are_capped_by_the_step():
    for loop in (a_loop(gc_seconds=50.0, gc_count=10), a_loop(recompilation_count=9, slow_excess_seconds=500.0)):
        for item in advise(Case(evidence=(loop,))).diagnoses:
            assert item.finding.impact.step_ratio <= 1
            assert item.finding.severity is Severity.WARNING
