"""A tenth of the loop's time or more goes neither into the batch nor into the model.

## What it means

What a loop does besides (logging, printing, drawing samples, moving numbers, sleeping) stops the training while it lasts.

## How it is recognized

attach() measures waiting for data, forward, backward, optimizer, evaluation, generation and checkpoints at their calls. What is left of the
steps' time, and what was named as logging, is the rest. The rule fires where it is at least a tenth, and more than two milliseconds a step.

## What to do

Log every so many steps; hand numbers over without waiting for the device; move what draws or uploads out of the loop.

## What it is confused with

Evaluation, generation and checkpoints, which have phases of their own. Preparing a batch by hand, behind the optimizer's step and without a
DataLoader, counts as forward here. Gradient clipping stands between backward and optimizer and belongs to this rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Severity
from advisor.rules.loop_evidence import loop_impact, loop_without, loss_of, measured
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.samples_loop import a_loop
from advisor.rules.wording import ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.run import LoopTimes

LEAST_RATIO = 0.10
"""Of the steps' time; the catalogue's."""

LEAST_SECONDS = 2e-3
"""A step: zeroing gradients and the loop's own Python take up to a millisecond or so."""


@rule("HST109", "logging-or-validation-stall")
def logging_or_validation_stall(loop: LoopTimes) -> Finding | None:
    """Fire where the rest of the step matters."""
    lost = loop.phase_seconds.get("other", 0.0) + loop.phase_seconds.get("logging", 0.0)
    a_step, ratio = loss_of(loop, lost)
    if ratio < LEAST_RATIO or a_step < LEAST_SECONDS:
        return None
    often = f"; it comes every {loop.slow_every} steps" if loop.slow_every and loop.slow_phase in {"other", "logging"} else ""
    settles = Action(
        title="Name the parts of the rest",
        change="with attachment.phase('logging'): ... around what the loop does besides training",
    )
    return Finding(
        statement=f"{seconds_text(a_step)} of each step ({ratio_text(ratio)}) is neither data, model nor optimizer{often}.",
        severity=Severity.WARNING,
        confidence=0.8,
        observations=(measured(loop, lost, "outside of data, forward, backward, optimizer, evaluation and checkpoints"),),
        actions=(
            Action(
                title="Do it less often",
                change="log, print and draw every 50 steps; keep running sums as tensors and read them then",
                cost="coarser curves",
                predicted=loop_without(loop, lost),
            ),
            settles,
        ),
        impact=loop_impact(loop, lost),
        settles=settles,
    )


def fires() -> Case:
    """Each step prints for 30 ms."""
    return a_case(a_loop(phases={"other": 30.0}))


def clean() -> Case:
    """A small model whose loop takes a millisecond of Python."""
    return a_case(a_loop(phases={"data_wait": 0.2, "forward": 2.0, "backward": 3.0, "optimizer": 1.0, "other": 1.0}))
