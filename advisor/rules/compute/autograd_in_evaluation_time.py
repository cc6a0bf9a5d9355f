"""An evaluation runs with gradients enabled: time and memory for a backward pass that never comes.

## What it means

With gradients enabled each operator records what its backward would need, and keeps its inputs. `model.eval()` does not change that: it
switches dropout and batch norm, and nothing of autograd.

## How it is recognized

attach() sees the model switched to evaluation and asks torch at each batch whether gradients are enabled. The rule fires where they were
in at least one step in which the evaluation took a share of the time.

## What to do

`with torch.inference_mode():` (or `torch.no_grad()`) around the evaluation.

## What it is confused with

An evaluation that needs gradients: adversarial examples, gradient penalties, test-time training. A frozen part of the model in evaluation
mode while the rest trains: there backward follows, and it is not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.loop_evidence import loss_of, measured
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.samples_loop import a_loop
from advisor.rules.wording import ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.run import LoopTimes

LEAST_RATIO = 0.01
"""Of the steps' time; a shorter evaluation wastes nothing that is worth a change."""


@rule("CMP120", "autograd-in-evaluation-time")
def autograd_in_evaluation_time(loop: LoopTimes) -> Finding | None:
    """Fire where batches were evaluated with gradients enabled."""
    share = (loop.flags or {}).get("grad_enabled_in_evaluation", 0.0)
    spent = loop.phase_seconds.get("evaluation", 0.0)
    ratio = loss_of(loop, spent)[1]
    if not share or ratio < LEAST_RATIO:
        return None
    return Finding(
        statement=f"The evaluation ({ratio_text(ratio)} of the time, {seconds_text(spent)} in all) runs with gradients enabled.",
        severity=Severity.WARNING,
        confidence=0.9,
        observations=(
            Observation(
                statement=f"gradients were enabled at an evaluation's batches in {ratio_text(share)} of the steps",
                value=share,
                unit="ratio",
                source=loop.source,
            ),
            measured(loop, spent, "evaluation"),
        ),
        actions=(
            Action(
                title="Evaluate without autograd",
                change="with torch.inference_mode(): ... around the evaluation loop",
                cost="none; its results cannot be used in a later backward pass",
            ),
        ),
    )


def fires() -> Case:
    """model.eval() without no_grad, every 50 steps."""
    return a_case(a_loop(phases={"evaluation": 12.0}, flags={"grad_enabled_in_evaluation": 0.02}))


def clean() -> Case:
    """The same evaluation under no_grad."""
    return a_case(a_loop(phases={"evaluation": 12.0}))
