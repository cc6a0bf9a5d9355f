"""Nothing has failed yet, and the peak leaves almost nothing of the device.

## What it means

A longer sample, an evaluation, a new communicator or a larger cuDNN workspace will be refused. It is cheaper to make
room now than to lose the steps since the last checkpoint.

## How it is recognized

Live memory peaked at 92% of the device or more, without a refused request.

## What to do

A slightly smaller micro-batch, checkpointing, or expandable segments. Run the longest batch first, so that it fails at
the start if it does.

## What it is confused with

Reserved memory near capacity is only cache (MEM402). Inference engines fill the device with their KV cache on purpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import Action, Finding, Severity
from advisor.rules.allocator_advice import expandable_segments
from advisor.rules.blocks import NEAR_CAPACITY_RATIO
from advisor.rules.facts import bytes_fact
from advisor.rules.remedies import halved_micro_batch
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_ledger, a_record
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.ceilings import DeviceCeilings
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure, LogText
    from advisor.model.memory import AllocatorRecord, MemoryLedger
    from advisor.model.tables import MemorySummary

ENGINES = frozenset({"vllm", "sglang", "tensorrt-llm", "tgi", "lmdeploy"})
"""Programs that size their cache to fill the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peak:
    live: int
    source: Source


@rule("MEM903", "near-capacity")
def near_capacity(  # noqa: PLR0913, PLR0917 - its needs
    record: AllocatorRecord | None,
    summary: MemorySummary | None,
    ledger: MemoryLedger | None,
    ceilings: DeviceCeilings | None,
    failure: Failure | None,
    log: LogText | None,
) -> Finding | None:
    """The peak of live memory is at least 92% of the device."""
    peak, device = _peak(record, summary), _device_bytes(ledger, ceilings)
    if failure is not None or peak is None or device is None or peak.live < NEAR_CAPACITY_RATIO * device:
        return None
    if _fills_on_purpose(ledger, log):
        return None
    rest = max(0, device - peak.live)
    return Finding(
        statement=f"Live memory peaked at {bytes_text(peak.live)}, {ratio_text(peak.live / device)} of the device; {bytes_text(rest)} "
        "is left for "
        "longer samples, evaluation and the libraries' own buffers.",
        severity=Severity.WARNING,
        confidence=0.8,
        observations=(
            bytes_fact(f"{bytes_text(peak.live)} was live at the peak", peak.live, peak.source),
            bytes_fact(
                f"the device has {bytes_text(device)}",
                device,
                ledger.source if ledger is not None else peak.source,
            ),
        ),
        actions=(
            halved_micro_batch(ledger, record),
            Action(
                title="Run the longest batch first",
                change="sort or bucket by length for one warm-up step, so that a failure comes at the start",
            ),
            expandable_segments(),
        ),
    )


def _peak(record: AllocatorRecord | None, summary: MemorySummary | None) -> _Peak | None:
    if record is not None:
        return None if record.oom_count else _Peak(live=record.peak_allocated_bytes, source=record.source)
    if summary is None or summary.ooms:
        return None
    live = summary.peak.get("allocated")
    return _Peak(live=live, source=summary.source) if live is not None else None


def _device_bytes(ledger: MemoryLedger | None, ceilings: DeviceCeilings | None) -> int | None:
    if ledger is not None and ledger.device_bytes is not None:
        return ledger.device_bytes
    return ceilings.memory_bytes if ceilings is not None else None


def _fills_on_purpose(ledger: MemoryLedger | None, log: LogText | None) -> bool:
    largest = ledger.largest() if ledger is not None else None
    if largest is not None and largest[0] == "kv_cache":
        return True
    return log is not None and bool(ENGINES & set(log.frameworks))


def fires() -> Case:
    """75 of 80 GiB at the peak of a training that runs."""
    return a_case(
        a_record(peak_allocated_bytes=75 * GIB, peak_reserved_bytes=77 * GIB),
        a_ledger(weights=16 * GIB, optimizer_states=32 * GIB, activations=27 * GIB),
    )


def clean() -> Case:
    """The cache fills 78 of 80 GiB, and at most 60 were ever live."""
    return a_case(
        a_record(
            peak_allocated_bytes=60 * GIB,
            peak_reserved_bytes=78 * GIB,
            dump_reserved_bytes=78 * GIB,
        ),
        a_ledger(weights=16 * GIB, activations=44 * GIB, allocator_cached=18 * GIB),
    )
