"""Freed memory waits for another stream before it can be used again.

## What it means

A tensor that a second stream uses (prefetching, FSDP's all-gather, a copy stream) is marked with
record_stream. When it is freed, its block may only be reused once that stream has passed the point.
If the host runs far ahead of the device, many blocks wait, and the allocator takes new memory instead.

## How it is recognized

Active less allocated: blocks that are free for Python and not for the allocator. At least 10% of what
is active and 512 MiB.

## What to do

Limit how far ahead the host may run: FSDP's limit_all_gathers=True (or fully_shard, which needs no
record_stream), fewer prefetched batches. In own code wait for the stream instead of record_stream.

## What it is confused with

A few waiting blocks are normal wherever communication overlaps with computing. Cached memory
(MEM402) waits for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import Action, Finding, Impact, Severity
from advisor.rules.facts import bytes_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_record
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source
    from advisor.model.memory import AllocatorRecord
    from advisor.model.tables import MemorySummary

WAITING_RATIO = 0.1
"""Share of the active bytes that waits; below it the overlap costs less memory than it saves time."""

LEAST_WAITING_BYTES = 512 * MIB
"""Below it no device fails for what waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    waiting: int
    active: int
    source: Source


@rule("MEM404", "cross-stream-hold")
def cross_stream_hold(record: AllocatorRecord | None, summary: MemorySummary | None) -> Finding | None:
    """Blocks awaiting another stream are a good part of what is active."""
    found = _waiting(record, summary)
    if found is None or found.waiting < max(LEAST_WAITING_BYTES, WAITING_RATIO * found.active):
        return None
    return Finding(
        statement=f"{bytes_text(found.waiting)} of freed memory waits for another stream and cannot be reused yet, "
        f"{ratio_text(found.waiting / found.active)} of what is active.",
        severity=Severity.WARNING,
        confidence=0.75,
        observations=(
            bytes_fact(f"{bytes_text(found.waiting)} awaits another stream", found.waiting, found.source),
            bytes_fact(f"{bytes_text(found.active)} is active in all", found.active, found.source),
        ),
        actions=(
            Action(
                title="Limit how far ahead the host runs",
                change="FullyShardedDataParallel(..., limit_all_gathers=True)  # or fully_shard; prefetch one batch instead of several",
                cost="less overlap where the limit is reached",
            ),
            Action(
                title="Wait for the stream instead of marking the tensor",
                change="torch.cuda.current_stream().wait_stream(side)  # then drop tensor.record_stream(side)",
                cost="the current stream waits for the other one at that point",
            ),
        ),
        settles=Action(
            title="See whether it holds over a step",
            change='s = torch.cuda.memory_stats(); s["active_bytes.all.current"] - s["allocated_bytes.all.current"]',
        ),
        impact=Impact(recoverable_bytes=found.waiting),
    )


def _waiting(record: AllocatorRecord | None, summary: MemorySummary | None) -> _Waiting | None:
    if record is not None:
        waiting = record.pending_free_bytes
        return _Waiting(waiting=waiting, active=record.dump_allocated_bytes + waiting, source=record.source)
    if summary is None:
        return None
    active, allocated = summary.current.get("active"), summary.current.get("allocated")
    if not active or allocated is None:
        return None
    surely = active - allocated - 2 * summary.resolution_bytes
    return _Waiting(waiting=surely, active=active, source=summary.source)


def fires() -> Case:
    """6 GiB of prefetched shards wait for the communication stream."""
    return a_case(a_record(dump_allocated_bytes=20 * GIB, pending_free_bytes=6 * GIB))


def clean() -> Case:
    """One prefetched layer waits: 400 MiB."""
    return a_case(a_record(dump_allocated_bytes=20 * GIB, pending_free_bytes=400 * MIB))
