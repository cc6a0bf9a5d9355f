"""What the rules about time share: how much a trace can prove, and what a part of its window is a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import replace
from advisor.model.finding import Impact, Prediction
from advisor.rules.wording import ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.waits import InputWait

FEWEST_KERNELS = 150
"""Kernels; with fewer the trace is a fixture or a fragment: one forward pass of a small model has
as many."""

SHORTEST_WINDOW_SECONDS = 5e-3
"""Seconds; a shorter window is about the profiler's own start and end as much as about the job."""

LARGEST_UNTYPICAL_RATIO = 0.25
"""Of the window: what median steps may leave unfilled or overfill; more is a warm-up or time outside of steps."""

FRAGMENT_CONFIDENCE = 0.5
"""The most that a fragment lets a rule claim: it shows the pattern, and not that the job's steps
are like it."""


def certainty(claimed: float, breakdown: StepBreakdown | None = None, mix: KernelMix | None = None) -> float:
    """A rule's confidence, limited where the trace is too small, too short or without steps.

    Args:
        claimed: what the pattern alone would justify, 0 to 1.
        breakdown: the device's; None leaves the window and the steps unjudged.
        mix: its kernels; None leaves their number unjudged.
    """
    is_fragment = (mix is not None and mix.kernel_count < FEWEST_KERNELS) or (
        breakdown is not None and (breakdown.window_seconds < SHORTEST_WINDOW_SECONDS or not breakdown.step_count)
    )
    return min(claimed, FRAGMENT_CONFIDENCE) if is_fragment else claimed


def share_of_window(breakdown: StepBreakdown, seconds: float) -> float:
    """Seconds of the window as a ratio of it, 0 to 1."""
    if breakdown.window_seconds <= 0:
        return 0.0
    return min(1.0, max(0.0, seconds / breakdown.window_seconds))


def input_loss(breakdown: StepBreakdown, wait: InputWait) -> tuple[StepBreakdown, float]:
    """What a job loses by waiting for its input, seconds, and the time that this is a part of.

    Leading slow steps are left out: in a window that is mostly warm-up the loss of every later step would look small. Without a device
    the processor that waits is the one that would compute.
    """
    if wait.steady_lost_seconds is None or wait.steady_window_seconds is None:
        return breakdown, breakdown.seconds["input_wait"] if breakdown.is_of_device else wait.wait_seconds
    steady = replace(breakdown, window_seconds=wait.steady_window_seconds, step_count=wait.steady_step_count or 0)
    return steady, wait.steady_lost_seconds


def left_out(wait: InputWait) -> str:
    """What `input_loss` does not count, for the end of a sentence; empty where it counts all."""
    if wait.steady_step_count is None or wait.step_count <= wait.steady_step_count:
        return ""
    slow = wait.step_count - wait.steady_step_count
    return f", the {'slow first step' if slow == 1 else f'{slow} slow first steps'} left out"


def seconds_while_computing(breakdown: StepBreakdown, mix: KernelMix, kernel_seconds: float) -> float:
    """Of the time in which the device computes, the part that belongs to some kernels.

    Kernels side by side count twice in a mix, so their share of it is taken, of the time that is a part of the window. 0 where nothing
    computes or no device activity is recorded.
    """
    if mix.computing_seconds <= 0 or not breakdown.is_of_device:
        return 0.0
    return breakdown.seconds["compute"] * min(1.0, kernel_seconds / mix.computing_seconds)


def typical_step_seconds(breakdown: StepBreakdown) -> float | None:
    """The median step where such steps fill the window; None where a slow first step or time outside of steps makes up much of it.

    A share of the whole window is a share of each step only in the first case.
    """
    step = breakdown.step_seconds
    if step is None or breakdown.window_seconds <= 0:
        return None
    filled = step * breakdown.step_count / breakdown.window_seconds
    return step if abs(1.0 - filled) <= LARGEST_UNTYPICAL_RATIO else None


def step_impact(breakdown: StepBreakdown, exposed_seconds: float) -> Impact:
    """The ceiling of what removing some exposed time would win, a step; never more than the step.

    Args:
        breakdown: of the device.
        exposed_seconds: over the whole window.
    """
    ratio = share_of_window(breakdown, exposed_seconds)
    step = typical_step_seconds(breakdown)
    return Impact(recoverable_seconds_per_step=None if step is None else ratio * step, step_ratio=ratio)


def step_without(breakdown: StepBreakdown, exposed_seconds: float) -> Prediction:
    """The shortest step that removing some exposed time could reach; unknown without typical steps."""
    step = typical_step_seconds(breakdown)
    if step is None:
        return Prediction()
    return Prediction(step_seconds=(1.0 - share_of_window(breakdown, exposed_seconds)) * step)


def per_step_text(breakdown: StepBreakdown, seconds: float) -> str:
    """The part of a step: "34 ms of each 152 ms step (22%)", or of the recorded time where typical steps do not fill it."""
    ratio = share_of_window(breakdown, seconds)
    step = typical_step_seconds(breakdown)
    if step is None:
        whole = f"the {seconds_text(breakdown.window_seconds)} recorded"
        return f"{seconds_text(seconds)} of {whole} ({ratio_text(ratio)})"
    return f"{seconds_text(ratio * step)} of each {seconds_text(step)} step ({ratio_text(ratio)})"
