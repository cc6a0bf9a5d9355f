"""Device memory is obtained from the driver again in steps that should find it in PyTorch's cache.

## What it means

PyTorch keeps freed memory and hands it out again, because asking the driver is slow: `cudaMalloc`
takes up to milliseconds, `cudaFree` waits for everything that runs. In steady steps neither
should occur. They do where the cache is emptied in the loop, where memory is so short that it
must be given back before more can be had, or where a library allocates for itself.

## How it is recognized

`cudaMalloc`, `cudaFree` or their HIP twins in steps after the first, in at least half of them,
which keep the device idle for at least 1% of the time (the host busy, where no device is recorded).
In a log, by `empty_cache()` in the loop, or by the allocator's own count of retries.

## What to do

Remove `empty_cache()` from the loop; leave headroom; let segments grow.

## What it is confused with

A host that runs far ahead: it can afford such calls while the device works. The first step, which
fills the cache (HST111). `cudaFree(0)`, by which programs initialize CUDA once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.analysis.table_shares import cpu_share
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.clues import mentioned_beside
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.tables import MemorySummary, OperatorTable
    from advisor.model.waits import DriverAllocations

LEAST_RATIO = 0.01
"""Of the steady steps' time: a single driver allocation in a long step is noise."""

LEAST_STEPS_RATIO = 0.5
"""Of the steady steps: a stall is a habit, not an event."""

FEWEST_CALLS = 4
"""Calls in steady steps; fewer may be one tensor of a new size."""

LEAST_TABLE_RATIO = 0.10
"""Of a table's CPU time in cudaMalloc and cudaFree: warm-up alone shows several percent."""

ACTIONS = (
    Action(
        title="Do not empty the cache in the loop",
        change="remove torch.cuda.empty_cache() and gc.collect() from the step",
    ),
    Action(
        title="Let segments grow instead of being given back",
        change="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        cost="none known for training; not on Windows",
    ),
    Action(
        title="Leave headroom, so that the cache need not be given back",
        change="a smaller micro-batch, or activation checkpointing",
        cost="a smaller batch a step, or a third more forward compute",
    ),
)

_DRIVER = re.compile(r"^(?:cuda|hip)(?:Malloc|Free)(?:Async)?$").search

_COUNTED = re.compile(r"OOMs: ?(\d{1,15})\b.{1,80}retries: ?(\d{1,15})\b").search
"""The line of `memory_summary()` that counts both, where it stands without its table."""


@rule("CMP116", "allocator-stalls")
def allocator_stalls(  # noqa: PLR0913, PLR0917 - a rule's needs are its parameters
    breakdown: StepBreakdown | None,
    allocations: DriverAllocations | None,
    mix: KernelMix | None,
    table: OperatorTable | None,
    log: LogText | None,
    failure: Failure | None,
    summary: MemorySummary | None,
) -> Finding | None:
    """Fire on driver allocations in steady steps, else on a table's share, else on a log's words."""
    if breakdown is not None:
        return _by_trace(breakdown, allocations, mix) if allocations is not None else None
    if table is not None and (found := _by_table(table)) is not None:
        return found
    return _by_log(log, table, summary) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown, allocations: DriverAllocations, mix: KernelMix | None) -> Finding | None:
    steady, taken = allocations.steady_step_count, allocations.steady_seconds
    count = (allocations.steady_alloc_count or 0) + (allocations.steady_free_count or 0)
    if not steady or taken is None or count < FEWEST_CALLS:
        return None
    if allocations.steady_steps_hit < LEAST_STEPS_RATIO * steady:
        return None
    steady_window = breakdown.window_seconds * steady / max(breakdown.step_count, steady)
    exposed = allocations.steady_exposed_seconds
    lost = min(taken if exposed is None else exposed, breakdown.window_seconds)
    if lost < LEAST_RATIO * steady_window:
        return None
    return Finding(
        statement=(
            f"In {allocations.steady_steps_hit} of {count_text(steady, 'steady step')} memory is "
            f"obtained from the driver or given back: {count / steady:,.0f} calls a step, in which "
            f"the {'host stands' if exposed is None else 'device idles'} {per_step_text(breakdown, lost)}."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.85, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"after the first step: {allocations.steady_alloc_count or 0:,} allocations and "
                    f"{allocations.steady_free_count or 0:,} frees by the driver, "
                    f"{seconds_text(taken)} of the host"
                ),
                value=taken,
                unit="seconds",
                source=allocations.source,
            ),
        ),
        actions=(
            *ACTIONS[:2],
            Action(
                title=ACTIONS[2].title,
                change=ACTIONS[2].change,
                cost=ACTIONS[2].cost,
                predicted=step_without(breakdown, lost),
            ),
        ),
        settles=Action(
            title="See whether the allocator gives memory back for want of room",
            change='torch.cuda.memory_stats()["num_alloc_retries"], before and after a step',
        ),
        impact=step_impact(breakdown, lost),
    )


def _by_table(table: OperatorTable) -> Finding | None:
    share = cpu_share(table, _DRIVER)
    if share is None or share.ratio < LEAST_TABLE_RATIO:
        return None
    calls = f" in {count_text(share.calls, 'call')}" if share.calls else ""
    return Finding(
        statement=(
            f"Driver allocations take {seconds_text(share.seconds)}{calls}, "
            f"{ratio_text(share.ratio)} of the host's time; a table does not show whether they "
            "belong to the first steps only."
        ),
        severity=Severity.WARNING,
        confidence=0.4,
        observations=(
            Observation(
                statement=f"{', '.join(share.names)}: {seconds_text(share.seconds)} of CPU time",
                value=share.ratio,
                unit="ratio",
                source=table.source,
            ),
        ),
        actions=ACTIONS,
        settles=Action(
            title="Profile later steps only",
            change="torch.profiler.schedule(wait=5, warmup=2, active=5), prof.step() each step",
        ),
    )


def _by_log(log: LogText, table: OperatorTable | None, summary: MemorySummary | None) -> Finding | None:
    # The counters of a summary are MEM403's: it knows that each failed request is one of the retries.
    topics = ("empty-cache",) if summary is not None else ("alloc-retries", "empty-cache")
    mention = mentioned_beside(table, log, *topics)
    counted = _COUNTED(mention.text) if mention is not None else None
    if mention is None or (counted is not None and int(counted[2]) <= int(counted[1])):
        return None
    is_sure = mention.topic == "alloc-retries"
    return Finding(
        statement=(
            "The log counts retries of the allocator: each gives the cache back and waits for the device."
            if is_sure
            else "The log speaks of emptying the allocator's cache, which waits for the device and "
            "makes the next steps obtain memory from the driver again."
        ),
        severity=Severity.WARNING if is_sure else Severity.INFO,
        confidence=0.7 if is_sure else 0.45,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=ACTIONS,
        settles=Action(
            title="Record a trace of steady steps and look for cudaMalloc and cudaFree in them",
            change="torch.profiler.schedule(wait=5, warmup=2, active=5)",
        ),
    )


def fires() -> Case:
    """`empty_cache()` in each step: twenty segments given back and obtained again."""
    from advisor.rules.samples_time import a_driver_allocations

    return a_case(
        a_breakdown(other_idle=0.09),
        a_driver_allocations(
            alloc_count=210,
            free_count=190,
            seconds=0.12,
            steady_alloc_count=180,
            steady_free_count=180,
            steady_seconds=0.1,
            steady_exposed_seconds=0.09,
            steady_steps_hit=9,
        ),
    )


def clean() -> Case:
    """The same calls, all of them in the first step."""
    from advisor.rules.samples_time import a_driver_allocations

    return a_case(
        a_breakdown(),
        a_driver_allocations(alloc_count=210, free_count=190, seconds=0.12),
    )
