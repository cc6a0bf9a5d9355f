"""The recorded window holds the program's first, slow steps: what it shows is not how the job runs.

## What it means

The first steps of a program do work that later ones do not: libraries load kernels and try
algorithms, memory is obtained from the driver, code is compiled. Averages over a window that
holds them are about the start, and so are the other findings.

## How it is recognized

The leading steps take more than one and a half times the median of the rest, and what they took
beyond it is at least a tenth of the window. What happened in them and not later (driver
allocations, loading of modules, compilation) is named where the trace shows it.

## What to do

Measure later: let the profiler skip steps.

## What it is confused with

A job whose steps differ in length all the time (unequal sequences, evaluation in between): then
slow steps also occur later, and the rule is silent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import FEWEST_KERNELS, FRAGMENT_CONFIDENCE
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.waits import StepTimes

LEAST_RATIO = 0.10
"""Of the time of all steps, beyond the median: less does not change what the averages say."""

MISLEADING_RATIO = 0.30
"""Of the time of all steps: from here on every average is mostly about the start."""

FEWEST_STEPS = 3
"""Steps; with fewer there is no median to compare the first with."""


@rule("HST111", "warm-up-in-window")
def warm_up_in_window(steps: StepTimes, breakdown: StepBreakdown | None, mix: KernelMix | None) -> Finding | None:
    """Fire where the leading steps are slow and the rest is not."""
    whole = sum(steps.durations_seconds)
    if len(steps.durations_seconds) < FEWEST_STEPS or not steps.slow_first_count or not whole:
        return None
    ratio = steps.first_excess_seconds / whole
    if ratio < LEAST_RATIO:
        return None
    slow = steps.durations_seconds[: steps.slow_first_count]
    marks = ", ".join(f"{name} {count} times" for name, count in steps.warm_up_marks[:4])
    is_fragment = mix is not None and mix.kernel_count < FEWEST_KERNELS
    return Finding(
        statement=(
            f"The first {count_text(len(slow), 'step')} took {seconds_text(sum(slow))}, where a step "
            f"takes {seconds_text(steps.median_seconds)}: {ratio_text(ratio)} of the recorded steps' "
            "time is warm-up, and the averages are about it."
        ),
        severity=Severity.WARNING if ratio >= MISLEADING_RATIO else Severity.INFO,
        confidence=FRAGMENT_CONFIDENCE if is_fragment else 0.9 if marks else 0.75,
        observations=(
            Observation(
                statement=f"beyond the median step: {seconds_text(steps.first_excess_seconds)}",
                value=steps.first_excess_seconds,
                unit="seconds",
                source=breakdown.source if breakdown else steps.source,
            ),
            Observation(
                statement=(
                    f"by {steps.marked_by} marks, the steps took " + ", ".join(seconds_text(each) for each in steps.durations_seconds[:6])
                ),
                source=steps.source,
            ),
            *([Observation(statement=f"in the slow steps only: {marks}", source=steps.source)] if marks else []),
        ),
        actions=(
            Action(
                title="Let the profiler skip the first steps",
                change="torch.profiler.schedule(wait=5, warmup=2, active=5), prof.step() each step",
            ),
            Action(
                title="In timings of your own, leave out the first steps",
                change="start the clock after ten steps, with torch.cuda.synchronize() before it",
            ),
        ),
    )


def fires() -> Case:
    """The first step compiles for 2.4 s; the others take 0.1 s."""
    from advisor.rules.samples_time import a_step_times

    return a_case(
        a_breakdown(window_seconds=2.9, step_count=6, other_idle=0.8),
        a_step_times(
            2.4,
            0.1,
            0.1,
            0.1,
            0.1,
            0.1,
            median_seconds=0.1,
            first_excess_seconds=2.3,
            slow_first_count=1,
            warm_up_marks=(("cudaMalloc", 30), ("cuModuleLoadData", 12)),
        ),
    )


def clean() -> Case:
    """Steps of varying length, the first among the longer ones."""
    from advisor.rules.samples_time import a_step_times

    return a_case(
        a_breakdown(window_seconds=0.75, step_count=6),
        a_step_times(0.15, 0.1, 0.14, 0.1, 0.16, 0.1, median_seconds=0.12),
    )
