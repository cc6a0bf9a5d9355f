"""Live memory grows from step to step and is never given back.

## What it means

A training step should end with as much live memory as the one before. Where something keeps a
reference to a tensor of every step (a running sum of losses, a list of outputs, a hook), the program
runs for a while and then fails, later with a smaller batch, but surely.

## How it is recognized

From a snapshot over at least 20 steps: the live bytes after each step rise steadily, and the places
that grew are named. From a log: the text says that memory grows or that the failure comes only after
many steps, which alone is weak.

## What to do

Keep numbers instead of tensors (`.item()`, `.detach()`), and drop references at the end of the step.

## What it is confused with

The first steps, in which optimizer states and buffers appear once. A cache that grows by
fragmentation while live memory does not (MEM401). A long sample that comes late (MEM207).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.model.memory import AllocationSite, AllocatorRecord, MemoryLedger
from advisor.rules.blocks import site_facts
from advisor.rules.capacity import failure_fact, is_capacity_failure, severity_of
from advisor.rules.clues import in_words, is_report, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_ledger, a_record
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case

LEAST_GROWTH_BYTES = MIB
"""Growth a step from which a job fails within a working day: 1 MiB × 50,000 steps is 49 GiB."""

SOON_STEPS = 10_000
"""A device that is full within so many steps is a failure to come, not a blemish."""

STATED_SCORE = 0.7
"""Score where the text says that memory grows and it ran out."""

LATE_SCORE = 0.5
"""Score where the text only says that it failed after epochs or hours."""

GROWTH_WORDS_SCORE = 0.6
"""Score where the text says that memory grows and nothing failed yet."""

_GROWS = words(
    "grow|increas|ris|climb|creep|leak|accumulat|up|released|freed|returned",
    r"(?:memory|usage|vram|allocated|gpu mem)\b.{0,40}\b(?:grow|increas|ris|climb|creep|leak|accumulat|keeps? (?:going )?up)\w*"
    r"|(?:grow|increas|ris|climb|creep)\w*\s+(?:steadily|slowly|continuously|gradually|every|each|over time|in)\b.{0,40}"
    r"(?:memory|usage|vram|step|iteration|epoch|batch)?|(?:steady|slow|continuous|linear|gradual)\s+(?:\w+\s)?"
    r"(?:growth|increase|leak)|memory leak|(?:memory|vram)\b.{0,20}\b(?:not|never)\s+(?:released|freed|returned)",
)
_LATE = words(
    "after",
    r"after\s+(?:about\s+|around\s+|~\s?)?(?:\d+(?:\.\d+)?k?|a few|several|some|many)\s+"
    r"(?:epochs?|hours?|iterations?|steps?|batches|days)",
)
_HOST = words(
    "memory|ram|rss|/dev/shm",
    r"\b(?:host|cpu|system|ram)\s+(?:memory|ram)|\bRSS\b|/dev/shm|shared memory",
)


@rule("MEM501", "memory-growth")
def memory_growth(
    record: AllocatorRecord | None,
    ledger: MemoryLedger | None,
    failure: Failure | None,
    log: LogText | None,
) -> Finding | None:
    """A steady slope of live bytes after each step, or words that say so."""
    if record is not None and record.growth_bytes_per_step is not None:
        return _from_record(record, ledger)
    grows, late = in_words(_GROWS, failure, log), in_words(_LATE, failure, log)
    if grows is not None and _HOST.search(grows.text):
        return None
    if failure is None:
        clue, score, severity = (grows if is_report(log) else None), GROWTH_WORDS_SCORE, Severity.WARNING
    elif not is_capacity_failure(failure) or failure.phase in {Phase.LOADING, Phase.ENGINE_START}:
        return None
    else:
        clue, score = (grows, STATED_SCORE) if grows is not None else (late, LATE_SCORE)
        severity = severity_of(failure)
    if clue is None:
        return None
    facts = (failure_fact(failure),) if failure is not None else ()
    return _finding(severity, score, (*facts, clue.observation("the text says")))


def _from_record(record: AllocatorRecord, ledger: MemoryLedger | None) -> Finding | None:
    growth = record.growth_bytes_per_step or 0.0
    if growth < LEAST_GROWTH_BYTES:
        return None
    device = ledger.device_bytes if ledger is not None else None
    outside = (ledger.outside_bytes or 0) if ledger is not None else 0
    left = None if device is None else max(0, device - outside - record.dump_reserved_bytes) / growth
    severity = Severity.ERROR if record.oom_count or (left or SOON_STEPS) < SOON_STEPS else Severity.WARNING
    facts = (
        Observation(
            statement=f"live memory after a step grows by {bytes_text(growth)} a step",
            source=record.source,
            value=growth,
            unit="bytes",
        ),
        *site_facts(record.growth_sites, record.source),
    )
    grown = sum(site.live_bytes for site in record.growth_sites) or None
    return _finding(severity, 0.9, facts, left, grown)


def _finding(
    severity: Severity,
    score: float,
    facts: tuple[Observation, ...],
    left_steps: float | None = None,
    grown_bytes: int | None = None,
) -> Finding:
    return Finding(
        statement="Live memory grows from step to step and is not given back"
        + (f"; the device is full in about {left_steps:,.0f} steps." if left_steps is not None else "."),
        severity=severity,
        confidence=score,
        observations=facts,
        actions=(
            Action(
                title="Keep numbers, not tensors, from one step to the next",
                change="total += loss.item()  # or loss.detach(); the same for meters, lists and dictionaries",
                cost="one synchronization a step; log every N steps to avoid it",
            ),
            Action(
                title="Drop what a step made before the next one begins",
                change="del output, loss  # hooks, closures and stored exceptions keep them too",
            ),
        ),
        settles=Action(
            title="Print the live bytes after every step, and snapshot over 20 steps",
            change="print(step, torch.cuda.memory_allocated())\n"
            "torch.cuda.memory._record_memory_history(max_entries=200_000)  # then _dump_snapshot",
        )
        if left_steps is None
        else None,
        impact=Impact(recoverable_bytes=grown_bytes),
    )


def fires() -> Case:
    """Live bytes grow by 12 MiB a step; a list of outputs is what grew."""
    return a_case(
        a_ledger(weights=10 * GIB, activations=30 * GIB),
        a_record(
            growth_bytes_per_step=12.0 * MIB,
            growth_sites=(
                AllocationSite(
                    label="train.py:88 in train",
                    block="temporaries",
                    live_bytes=480 * MIB,
                    count=40,
                    largest_bytes=12 * MIB,
                    why="live after its step",
                ),
            ),
        ),
    )


def clean() -> Case:
    """Live bytes after a step move up and down by a few KiB."""
    return a_case(a_ledger(weights=10 * GIB, activations=30 * GIB), a_record(growth_bytes_per_step=4096.0))
