"""torch.compile compiles again and again, long after the first steps.

## What it means

A compiled graph holds for the shapes, types and Python values that it was made with. Where one of them changes, the region is compiled
anew, for seconds up to minutes; after a number of tries (8 by default) it runs uncompiled without a word.

## How it is recognized

attach() reads torch.compile's own counter of graphs. The rule fires where it still rises behind the first steps. Distinct shapes of the
batches are counted beside it: where they are many, they are the likely reason.

## What to do

Pad to a few lengths, or mark the dimension as dynamic; keep Python numbers that change out of compiled code. `TORCH_LOGS=recompiles`
names the guard that failed.

## What it is confused with

The first compilation, which belongs to the start. A new phase (evaluation) that compiles once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.loop_evidence import loop_impact
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.samples_loop import a_loop
from advisor.rules.wording import count_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.run import LoopTimes

LEAST_COUNT = 3
"""Compilations behind the warm-up: a last short batch and an evaluation make two."""

MANY_SHAPES = 3
"""Distinct shapes of batches from which they are taken for the reason."""


@rule("HST104", "graph-recompilation")
def graph_recompilation(loop: LoopTimes) -> Finding | None:
    """Fire where graphs are still compiled behind the warm-up."""
    if loop.recompilation_count < LEAST_COUNT:
        return None
    by_shape = loop.shape_count >= MANY_SHAPES
    lost = loop.slow_excess_seconds
    slow = f"; slow steps took {seconds_text(lost)} more than the median together" if lost else ""
    reason = f", with batches of {count_text(loop.shape_count, 'shape')}" if by_shape else ""
    dynamic = Action(
        title="Compile once for all lengths",
        change="torch._dynamo.mark_dynamic(batch, 1), or torch.compile(model, dynamic=True); or pad to a few lengths",
        cost="kernels for any length are a little slower than for one",
    )
    name = Action(
        title="Find the guard that fails",
        change="TORCH_LOGS=recompiles python train.py, and take the named value out of the compiled code",
        cost="one run with more output",
    )
    return Finding(
        statement=f"torch.compile compiled {count_text(loop.recompilation_count, 'more graph')} in "
        f"{count_text(loop.step_count, 'step')} behind the first ones{reason}{slow}.",
        severity=Severity.WARNING,
        confidence=0.9,
        observations=(
            Observation(
                statement=f"graphs compiled behind the warm-up: {loop.recompilation_count}",
                value=loop.recompilation_count,
                unit="compilations",
                source=loop.source,
            ),
            Observation(
                statement=f"distinct shapes of batches: {loop.shape_count}", value=loop.shape_count, unit="shapes", source=loop.source
            ),
        ),
        actions=(dynamic, name) if by_shape else (name, dynamic),
        impact=loop_impact(loop, lost),
        settles=name,
    )


def fires() -> Case:
    """Every new length of a batch compiles again."""
    return a_case(a_loop(recompilation_count=7, shape_count=24, slow_count=7, slow_excess_seconds=21.0, slow_phase="forward"))


def clean() -> Case:
    """One more graph for the last, shorter batch."""
    return a_case(a_loop(recompilation_count=1, shape_count=2))
