"""What the rules about a watched training loop share: the least time that counts, and a loss as an impact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Impact, Observation, Prediction
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.run import LoopTimes

LEAST_LOSS_SECONDS = 1e-3
"""Seconds a step; less is the loop's own Python, which no advice removes."""


def loss_of(loop: LoopTimes, seconds: float) -> tuple[float, float]:
    """Seconds a step, and the share of the window (0 to 1), of a loss over the window."""
    if not loop.window_seconds or not loop.step_count:
        return 0.0, 0.0
    return seconds / loop.step_count, min(1.0, seconds / loop.window_seconds)


def is_worth(loop: LoopTimes, seconds: float, least_ratio: float) -> bool:
    """Whether a loss reaches a share of the window, and more than the loop's own Python takes."""
    a_step, ratio = loss_of(loop, seconds)
    return ratio >= least_ratio and a_step >= LEAST_LOSS_SECONDS


def loop_impact(loop: LoopTimes, seconds: float) -> Impact:
    """The most that could be won: all of the loss."""
    a_step, ratio = loss_of(loop, seconds)
    return Impact(recoverable_seconds_per_step=a_step, step_ratio=ratio)


def loop_without(loop: LoopTimes, seconds: float) -> Prediction:
    """The mean step without the loss, at best."""
    return Prediction(step_seconds=max(0.0, (loop.window_seconds - seconds) / loop.step_count))


def measured(loop: LoopTimes, seconds: float, what: str) -> Observation:
    """A loss as a fact: its sum, its share, and over how many steps."""
    ratio = ratio_text(loss_of(loop, seconds)[1])
    return Observation(
        statement=f"{what}: {seconds_text(seconds)} in {count_text(loop.step_count, 'step')} ({ratio} of their time)",
        value=seconds,
        unit="seconds",
        source=loop.source,
    )
