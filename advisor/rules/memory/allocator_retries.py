"""The allocator ran dry, threw its cache away and asked the driver again: slow, and close to failing.

## What it means

When the driver refuses memory, PyTorch waits for the device, gives all unused cached segments back
and asks once more. If that succeeds, the job goes on, but the device has stood still and the cache
has to be built again. Each such retry is a step that almost failed.

## How it is recognized

num_alloc_retries (in memory_summary: "cudaMalloc retries") exceeds the failures, each of which has
one retry of its own, by at least 2; or it rises between two readings; or the log has DeepSpeed's
warning of cache flushes.

## What to do

Leave headroom: a slightly smaller micro-batch costs less than the stalls. Expandable segments keep
the cache usable for other sizes, so that fewer retries are needed.

## What it is confused with

One retry before one failure is part of that failure. A search for the largest batch, or
cudnn.benchmark trying out algorithms, causes a few retries at the start and none later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.evidence import Evidence, Source
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.allocator_advice import expandable_segments
from advisor.rules.clues import in_words, words
from advisor.rules.facts import count_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case
from advisor.rules.wording import count_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import LogText
    from advisor.model.tables import MemorySummary

LEAST_RETRIES = 2
"""Retries beyond those of the failures from which chance is excluded: one can come from a single odd batch."""

MANY_RETRIES = 10
"""Retries from which the job runs at the limit of the device rather than touching it."""

FLUSHES = words(
    "cache flushes",
    r"pytorch allocator cache flushes since last step",
)
"""DeepSpeed's warning, printed for each step in which the cache was thrown away."""


@rule("MEM403", "allocator-retries")
def allocator_retries(summaries: tuple[MemorySummary, ...], log: LogText | None) -> Finding | None:
    """Retries beyond those that ended in a failure."""
    rise = _rise(summaries)
    facts: tuple[Observation, ...] = ()
    score = 0.0
    if rise is not None:
        facts, score = (rise,), 0.9
    elif summaries:
        beyond = max(summaries, key=_beyond_failures)
        retries = _beyond_failures(beyond)
        if retries >= LEAST_RETRIES:
            facts = (
                count_fact(
                    f"{count_text(retries, 'retry', 'retries')} that no failure explains",
                    retries,
                    beyond.source,
                ),
            )
            score = 0.85 if retries >= MANY_RETRIES else 0.65
    flushed = in_words(FLUSHES, None, log)
    if flushed is not None:
        facts, score = (*facts, flushed.observation("the log warns of flushes")), max(score, 0.9)
    if not facts:
        return None
    return Finding(
        statement="The allocator ran out of cached memory, waited for the device, gave its cache back and asked the driver again: "
        f"{facts[0].statement}. Such steps stall, and the next one may fail.",
        severity=Severity.WARNING,
        confidence=score,
        observations=facts,
        actions=(
            Action(
                title="Leave headroom",
                change="per_device_train_batch_size one smaller (or a shorter longest sequence), until num_alloc_retries stays at 0",
                cost="a slightly smaller micro-batch",
            ),
            expandable_segments(),
        ),
        settles=Action(
            title="See whether retries still rise",
            change='torch.cuda.memory_stats()["num_alloc_retries"]  # every 100 steps; only a rise costs time',
        ),
    )


def _beyond_failures(summary: MemorySummary) -> int:
    return (summary.retries or 0) - (summary.ooms or 0)


def _rise(summaries: tuple[MemorySummary, ...]) -> Observation | None:
    """A rise between two readings of one device, beyond that of the failures."""
    last: dict[int | None, MemorySummary] = {}
    for summary in summaries:
        before = last.get(summary.device_index)
        if before is not None and before.retries is not None and summary.retries is not None:
            risen = _beyond_failures(summary) - _beyond_failures(before)
            if risen > 0:
                return count_fact(
                    f"{count_text(risen, 'retry', 'retries')} between two readings ({before.retries} to {summary.retries})",
                    risen,
                    summary.source,
                )
        last[summary.device_index] = summary
    return None


def fires() -> Case:
    """One failure, and five retries that saved the job before."""
    return a_case(_summary(retries=6, ooms=1))


def clean() -> Case:
    """One failure with the one retry that belongs to it."""
    return a_case(_summary(retries=1, ooms=1))


def _summary(*, retries: int, ooms: int) -> Evidence:
    from advisor.model.tables import MemorySummary

    return MemorySummary(
        source=Source(path="train.log", where="line 80"),
        device_index=0,
        retries=retries,
        ooms=ooms,
        current={"allocated": 25 * GIB, "reserved": 27 * GIB},
        peak={"allocated": 26 * GIB, "reserved": 28 * GIB},
        counts={},
    )
