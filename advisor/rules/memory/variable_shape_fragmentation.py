"""Tensor sizes change from step to step, and cached blocks of old sizes pile up unused.

## What it means

Every new sequence length asks for blocks of new sizes. Cached blocks of earlier lengths are too small,
or too large to be handed out without waste, so new ones are taken and the old ones stay.

## How it is recognized

A snapshot with at least 100 different sizes of 1 MiB or more (a model with fixed shapes has 5 to 60)
and at least 20% of the reserved memory unused at the peak or at the failure. From a message alone:
unused memory would have sufficed (MEM401) and the text speaks of varying lengths.

## What to do

Pad to a few lengths, so that sizes repeat. Expandable segments make old blocks joinable.

## What it is confused with

A single very long batch (MEM207) makes one new peak, not hundreds of sizes. Fragmentation with fixed
shapes (MEM401) has few sizes and long-lived tensors between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import Finding, Impact, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.allocator_advice import expandable_segments, padded_shapes
from advisor.rules.capacity import (
    idle_reserved_bytes,
    is_capacity_failure,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import in_words, words
from advisor.rules.device_shares import is_oversubscribed
from advisor.rules.facts import bytes_fact, count_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_ledger, a_record
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText

LEAST_SIZES = 100
"""Distinct sizes of 1 MiB and more: transformers with fixed shapes have 4 to 13 in recorded snapshots, deep
convolutional networks some 60; a dozen different lengths make a hundred."""

IDLE_RATIO = 0.2
"""Share of the reserved memory that lies unused at the moment that decides."""

VARYING = words(
    "variable|varying|dynamic |different |changing ",
    r"variable[- ](?:length|size|shape|batch)|varying (?:length|size|shape|batch|sequence)|dynamic (?:shape|batch|length)"
    r"|different (?:sequence )?(?:lengths|shapes|sizes)|changing (?:length|shape|size)s?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    idle: int
    reserved: int
    failed: bool


@rule("MEM407", "variable-shape-fragmentation")
def variable_shape_fragmentation(
    record: AllocatorRecord | None,
    ledger: MemoryLedger | None,
    failure: Failure | None,
    log: LogText | None,
) -> Finding | None:
    """Many sizes and much unused memory."""
    if record is None or not record.event_count:
        return _from_text(failure, log)
    found = _idle(record, ledger)
    if record.distinct_large_sizes < LEAST_SIZES or found.idle < IDLE_RATIO * found.reserved:
        return None
    failed = found.failed or is_capacity_failure(failure)
    return Finding(
        statement=f"{record.distinct_large_sizes:,} different sizes of 1 MiB or more were allocated, and {bytes_text(found.idle)} "
        f"({ratio_text(found.idle / found.reserved)} of what is reserved) lies unused in blocks of other sizes.",
        severity=Severity.ERROR if failed else Severity.WARNING,
        confidence=0.8 if failed else 0.7,
        observations=(
            count_fact(
                f"{record.distinct_large_sizes:,} different sizes of 1 MiB or more in the record",
                record.distinct_large_sizes,
                record.source,
            ),
            bytes_fact(
                f"{bytes_text(found.idle)} of {bytes_text(found.reserved)} reserved is unused",
                found.idle,
                record.source,
            ),
        ),
        actions=(padded_shapes(), expandable_segments()),
        impact=Impact(recoverable_bytes=found.idle),
        supersedes=("MEM401", "MEM402"),
    )


def _idle(record: AllocatorRecord, ledger: MemoryLedger | None) -> _Idle:
    """At the moment of the ledger where it is the failure or the peak, else between the two peaks."""
    if ledger is not None and ledger.allocated_bytes is not None and ledger.reserved_bytes:
        return _Idle(
            idle=ledger.reserved_bytes - ledger.allocated_bytes,
            reserved=ledger.reserved_bytes,
            failed=ledger.at is Moment.OOM,
        )
    idle = record.peak_reserved_bytes - record.peak_allocated_bytes
    return _Idle(idle=idle, reserved=record.peak_reserved_bytes, failed=record.oom_count > 0)


def _from_text(failure: Failure | None, log: LogText | None) -> Finding | None:
    if failure is None or not is_capacity_failure(failure) or is_oversubscribed(failure):
        return None
    idle, requested = idle_reserved_bytes(failure), failure.requested_bytes
    clue = in_words(VARYING, failure, log)
    if clue is None or idle is None or requested is None or idle < requested:
        return None
    return Finding(
        statement=f"{bytes_text(requested)} was refused with {bytes_text(idle)} reserved and unused, and the text speaks of varying sizes: "
        "blocks of old sizes do not serve new ones.",
        severity=severity_of(failure),
        confidence=0.6,
        observations=(
            bytes_fact(f"{bytes_text(idle)} reserved and unused", idle, failure.source),
            clue.observation("sizes vary"),
        ),
        actions=(padded_shapes(), expandable_segments()),
        settles=what_would_settle(failure),
        impact=Impact(recoverable_bytes=idle),
    )


def fires() -> Case:
    """412 sizes in ten thousand events; a third of the reserved memory is unused at the failure."""
    return a_case(
        a_record(distinct_large_sizes=412, oom_count=1, oom_requested_bytes=3 * GIB),
        a_ledger(
            at=Moment.OOM,
            weights=16 * GIB,
            activations=34 * GIB,
            allocated_bytes=50 * GIB,
            reserved_bytes=76 * GIB,
        ),
    )


def clean() -> Case:
    """Bucketed lengths: 40 sizes, and the cache is in use."""
    return a_case(
        a_record(distinct_large_sizes=40),
        a_ledger(
            weights=16 * GIB,
            activations=50 * GIB,
            allocated_bytes=66 * GIB,
            reserved_bytes=70 * GIB,
        ),
    )
