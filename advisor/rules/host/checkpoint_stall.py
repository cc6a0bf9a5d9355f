"""Saving checkpoints stops the training for a noticeable share of its time.

## What it means

`torch.save` copies everything to the host, serializes it and writes it, and the loop stands still until the disk has it.

## How it is recognized

attach() times the calls of torch.save, torch.distributed.checkpoint.save and safetensors. The rule fires where they take at least 5% of
the time of the steps.

## What to do

Save less often; save asynchronously (copy to pinned host memory, write from a process beside the loop); write to a local disk first.

## What it is confused with

An evaluation in the same step, which is measured apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Severity
from advisor.rules.loop_evidence import is_worth, loop_impact, loop_without, loss_of, measured
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.samples_loop import a_loop
from advisor.rules.wording import ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.run import LoopTimes

LEAST_RATIO = 0.05
"""Of the steps' time: what a checkpoint costs is an insurance premium, and a twentieth is a high one."""


@rule("HST108", "checkpoint-stall")
def checkpoint_stall(loop: LoopTimes) -> Finding | None:
    """Fire where saving takes a share of the steps that matters."""
    lost = loop.phase_seconds.get("checkpoint", 0.0)
    if not is_worth(loop, lost, LEAST_RATIO):
        return None
    often = f", every {loop.slow_every} steps" if loop.slow_every and loop.slow_phase == "checkpoint" else ""
    return Finding(
        statement=f"Saving checkpoints takes {ratio_text(loss_of(loop, lost)[1])} of the training's time{often}.",
        severity=Severity.WARNING,
        confidence=0.92,
        observations=(measured(loop, lost, f"saving, the loop standing still for {seconds_text(lost)}"),),
        actions=(
            Action(
                title="Save less often",
                change="raise the interval until saving takes about 1% of the time (save_steps in the Hugging Face Trainer)",
                cost="a failure loses the steps since the last checkpoint",
                predicted=loop_without(loop, lost),
            ),
            Action(
                title="Save beside the loop",
                change="torch.distributed.checkpoint.async_save(state, checkpoint_id=path), on a process group of gloo",
                cost="host memory for a copy of what is saved",
                predicted=loop_without(loop, lost),
            ),
        ),
        impact=loop_impact(loop, lost),
    )


def fires() -> Case:
    """Every fifth step saves for 200 ms."""
    return a_case(a_loop(phases={"checkpoint": 40.0}, slow_count=40, slow_every=5, slow_phase="checkpoint", slow_excess_seconds=8.0))


def clean() -> Case:
    """A checkpoint every thousand steps."""
    return a_case(a_loop(phases={"checkpoint": 1.5}))
