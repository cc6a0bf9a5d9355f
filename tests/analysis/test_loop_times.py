"""A loop's steps: where their time goes, which are slow, what grows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.loop_breakdown import loop_breakdown
from advisor.analysis.loop_times import loop_times
from advisor.client.layout import PHASES, STEP_FLAGS
from advisor.ingest.run_steps import FIGURES
from advisor.model.evidence import Source
from advisor.model.run import RunSteps
from advisor.model.step_time import Bound
from advisor.rules.samples_loop import a_loop

MIB = 1024**2


def a_run(seconds, *, phase="forward", flags=None, **figures):
    """Steps of these lengths, all of it in one phase; figures and flags are columns or constants."""
    count = len(seconds)

    def column(value):
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (count,))

    return RunSteps(
        source=Source(path="run"),
        step=np.arange(1, count + 1),
        end_nanoseconds=(np.cumsum(seconds) * 1e9).astype(np.int64),
        seconds=np.asarray(seconds, dtype=np.float64),
        phases={name: np.asarray(seconds) if name == phase else np.zeros(count) for name in PHASES},
        figures={name: column(figures.get(name, 0)) for name in FIGURES},
        flags={name: np.broadcast_to(np.asarray((flags or {}).get(name, False)), (count,)) for name in STEP_FLAGS.values()},
    )


def test_the_first_steps_are_left_out_and_said():
    loop = loop_times(a_run([5.0, 3.0, 1.0] + [0.1] * 20))
    assert loop.step_count == 20
    assert loop.warm_up_seconds == 9.0
    assert loop.step_seconds == pytest.approx(0.1)


def test_too_few_steps_say_nothing():
    assert loop_times(a_run([0.1] * 7)) is None
    assert loop_times(a_run([0.1] * 8)) is not None


def test_periodic_slow_steps_are_told_with_their_phase():
    seconds = [0.1] * 3 + ([0.1] * 9 + [0.6]) * 6
    run = a_run(seconds, phase="checkpoint")
    loop = loop_times(run)
    assert (loop.slow_count, loop.slow_every, loop.slow_phase) == (6, 10, "checkpoint")
    assert loop.slow_excess_seconds == pytest.approx(3.0)


def test_slow_steps_without_a_period_have_none():
    seconds = [0.1] * 60
    for place in (10, 12, 30, 57):
        seconds[place] = 1.0
    assert loop_times(a_run(seconds)).slow_every is None


def test_what_was_left_of_a_step_at_the_end_is_no_step():
    run = a_run([0.1] * 20 + [90.0], flags={"unfinished": [False] * 20 + [True]})
    assert loop_times(run).window_seconds == pytest.approx(1.7)


def test_growth_is_told_by_the_step_and_steady_memory_has_none():
    steps = np.arange(400)
    growing = loop_times(a_run([0.1] * 400, rss_bytes=300 * MIB + steps // 16 * 16 * 2 * MIB))
    assert growing.rss_slope_bytes == pytest.approx(2 * MIB, rel=0.02)
    assert loop_times(a_run([0.1] * 400, rss_bytes=300 * MIB)).rss_slope_bytes is None


def test_compilations_of_the_first_steps_do_not_count():
    counts = [1, 2, 2] + [2] * 20 + [5]
    assert loop_times(a_run([0.1] * 24, recompilation_count=counts)).recompilation_count == 3


@given(seconds=st.lists(st.floats(1e-4, 10), min_size=8, max_size=60), phase=st.sampled_from(PHASES))
def test_phases_sum_to_the_window_and_the_breakdown_to_one(seconds, phase):
    loop = loop_times(a_run(seconds, phase=phase))
    assert sum(loop.phase_seconds.values()) == pytest.approx(loop.window_seconds)
    breakdown = loop_breakdown(loop)
    assert sum(breakdown.parts.values()) == pytest.approx(1)
    assert min(breakdown.parts.values()) >= 0


def test_a_loop_on_a_gpu_has_no_breakdown_by_the_hosts_phases():
    assert loop_breakdown(a_loop(on_gpu=True)) is None
    assert loop_breakdown(a_loop()).bound is Bound.COMPUTE
    assert loop_breakdown(a_loop(phases={"data_wait": 200.0})).bound is Bound.INPUT
