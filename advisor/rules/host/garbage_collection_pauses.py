"""Python's garbage collector takes a noticeable part of the training loop.

## What it means

Python frees nearly everything by counting references; its collector looks for cycles besides, by walking over all objects there are. In a
process with torch, transformers and a dataset those are a million or more, and a full collection takes tens to hundreds of milliseconds
in which no kernel is launched. In a distributed job every rank waits for the one that collects.

## How it is recognized

attach() times every collection through `gc.callbacks`. The rule fires where they take at least 3% of the steps' time.

## What to do

Remove `gc.collect()` from the loop. Where Python collects by itself: `gc.freeze()` once the model and the loaders exist, or `gc.disable()`
and a collection every so many steps, on all ranks in the same step.

## What it is confused with

Memory that only a collection frees, because exceptions, hooks or closures hold it in cycles: break the cycle instead of collecting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.loop_evidence import is_worth, loop_impact, loop_without, loss_of, measured
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.samples_loop import a_loop
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.run import LoopTimes

LEAST_RATIO = 0.03
"""Of the steps' time: automatic collections of a usual training take well below 1%."""

FULL_SECONDS = 2e-3
"""A collection that takes longer walks over most objects; Python itself starts such ones rarely, seldom more than one in ten steps."""

OFTEN = 0.3
"""Full collections a step from which the program itself must be asking for them."""


@rule("HST103", "garbage-collection-pauses")
def garbage_collection_pauses(loop: LoopTimes) -> Finding | None:
    """Fire where collections take a share of the steps that matters."""
    if not loop.gc_count or not is_worth(loop, loop.gc_seconds, LEAST_RATIO):
        return None
    a_step, ratio = loss_of(loop, loop.gc_seconds)
    mean = loop.gc_seconds / loop.gc_count
    is_asked_for = mean >= FULL_SECONDS and loop.gc_count >= OFTEN * loop.step_count
    remove = Action(
        title="Remove gc.collect() from the training loop",
        change="search the loop and its callbacks for gc.collect(), also beside torch.cuda.empty_cache()",
        cost="none where nothing is held in cycles",
        predicted=loop_without(loop, loop.gc_seconds),
    )
    freeze = Action(
        title="Let the collector skip what lives for ever",
        change="gc.collect(); gc.freeze() once, after the model and the loaders are made",
        cost="cycles among those objects are never freed",
        predicted=loop_without(loop, loop.gc_seconds),
    )
    why = "; so many full ones are asked for by the program itself" if is_asked_for else ""
    return Finding(
        statement=f"Garbage collection takes {seconds_text(a_step)} of each step, {ratio_text(ratio)} of its time{why}.",
        severity=Severity.WARNING,
        confidence=0.9,
        observations=(
            measured(loop, loop.gc_seconds, count_text(loop.gc_count, "collection")),
            Observation(statement=f"{seconds_text(mean)} each on average", value=mean, unit="seconds", source=loop.source),
        ),
        actions=(remove, freeze) if is_asked_for else (freeze, remove),
        impact=loop_impact(loop, loop.gc_seconds),
    )


def fires() -> Case:
    """A full collection in every step."""
    return a_case(a_loop(gc_seconds=3.0, gc_count=200))


def clean() -> Case:
    """Python's own collections, most of them of young objects."""
    return a_case(a_loop(gc_seconds=0.04, gc_count=300))
