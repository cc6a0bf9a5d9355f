"""The memory was dumped after the failure had been cleaned up, so its final state is not what failed.

## What it means

When a request is refused, Python unwinds the failing frames and frees their tensors. A snapshot or summary that is
taken afterwards shows a device that is nearly empty of live memory and full of cache. The truth is in the record's
events, at the failure.

## How it is recognized

A request failed, and at the dump reserved is at least twice what is live.

## What to do

Read the failure's own event (this report does, where the record has it). Next time dump at the failure, before
the frames are gone.

## What it is confused with

Fragmentation (MEM401) has unused memory at the failure, not only after it. A dump between two steps of a job that
did not fail looks alike and is healthy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.capacity import is_capacity_failure
from advisor.rules.facts import bytes_fact, count_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_record
from advisor.rules.wording import bytes_text, count_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure
    from advisor.model.memory import AllocatorRecord
    from advisor.model.tables import MemorySummary

UNWOUND_RATIO = 2.0
"""Reserved over live at the dump from which most of what was live at the failure is gone."""

LEAST_RESERVED_BYTES = 1 * GIB
"""Below it the process held nothing that matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dump:
    live: int
    reserved: int
    peak: int
    failures: int
    has_events: bool
    source: Source


@rule("MEM902", "snapshot-after-unwind")
def snapshot_after_unwind(record: AllocatorRecord | None, summary: MemorySummary | None, failure: Failure | None) -> Finding | None:
    """Reserved is far above live at the dump, after a failure."""
    dump = _dump(record, summary)
    if dump is None or not (dump.failures or is_capacity_failure(failure)):
        return None
    if dump.reserved < max(LEAST_RESERVED_BYTES, UNWOUND_RATIO * dump.live):
        return None
    facts: list[Observation] = [
        bytes_fact(f"{bytes_text(dump.live)} was live at the dump", dump.live, dump.source),
        bytes_fact(f"{bytes_text(dump.reserved)} was reserved", dump.reserved, dump.source),
    ]
    if dump.peak > dump.live:
        facts.append(bytes_fact(f"{bytes_text(dump.peak)} was live at the peak", dump.peak, dump.source))
    if dump.failures:
        facts.append(
            count_fact(
                f"{count_text(dump.failures, 'request')} had been refused",
                dump.failures,
                dump.source,
            )
        )
    return Finding(
        statement=f"The dump shows {bytes_text(dump.live)} live of {bytes_text(dump.reserved)} reserved: the failing frames were gone "
        "by then. "
        + (
            "The figures of this report are those of the record's events." if dump.has_events else "What filled the device, it cannot show."
        ),
        severity=Severity.INFO,
        confidence=0.85 if dump.failures else 0.6,
        observations=tuple(facts),
        actions=(
            Action(
                title="Dump at the failure",
                change="torch._C._cuda_attach_out_of_memory_observer(lambda device, size, total, free: "
                "torch.cuda.memory._dump_snapshot(f'oom-{device}.pickle'))  # once, after CUDA is initialized",
                cost="a few seconds when it fails; the observer must not raise",
            ),
        ),
    )


def _dump(record: AllocatorRecord | None, summary: MemorySummary | None) -> _Dump | None:
    if record is not None:
        return _Dump(
            live=record.dump_allocated_bytes,
            reserved=record.dump_reserved_bytes,
            peak=record.peak_allocated_bytes,
            failures=record.oom_count,
            has_events=record.event_count > 1,
            source=record.source,
        )
    if summary is None:
        return None
    live, reserved = summary.current.get("allocated"), summary.current.get("reserved")
    if live is None or reserved is None:
        return None
    return _Dump(
        live=live,
        reserved=reserved,
        peak=summary.peak.get("allocated", 0),
        failures=summary.ooms or 0,
        has_events=False,
        source=summary.source,
    )


def fires() -> Case:
    """76 GiB were live at the failure, 18 at the dump."""
    return a_case(
        a_record(
            oom_count=1,
            dump_allocated_bytes=18 * GIB,
            dump_reserved_bytes=78 * GIB,
            peak_allocated_bytes=76 * GIB,
            peak_reserved_bytes=78 * GIB,
        )
    )


def clean() -> Case:
    """A dump between two steps of a job that did not fail."""
    return a_case(
        a_record(
            dump_allocated_bytes=6 * GIB,
            dump_reserved_bytes=23 * GIB,
            peak_allocated_bytes=22 * GIB,
        )
    )
