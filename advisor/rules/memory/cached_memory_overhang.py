"""PyTorch keeps much more device memory than it uses, and nothing has failed.

## What it means

Freed tensors stay reserved, so that the next ones need no driver call. After a phase with a high peak
(loading, evaluation, one long batch) that cache can be most of the device. PyTorch itself loses
nothing by it: it uses the cache again. Whoever else needs the device (NCCL, a second process, an
inference engine) does not get it.

## How it is recognized

Reserved is at least twice what is live now, twice what was ever live as far as is recorded, and at
least 30% of the device, without a failed request.

## What to do

Call torch.cuda.empty_cache() once after the phase that needed the memory, never inside the loop. Or
let the allocator give back what it has not used for long, with garbage_collection_threshold.

## What it is confused with

Between two steps live memory is always far below reserved: the next step uses the cache again, which
the recorded peak shows. A cache on a nearly empty device is how PyTorch works. A snapshot taken after
a failure has the same picture (MEM902). With a refused request it means fragmentation (MEM401).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import Action, Finding, Impact, RuledOut, Severity
from advisor.rules.allocator_advice import garbage_collection
from advisor.rules.facts import bytes_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_ledger, a_record
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.ceilings import DeviceCeilings
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure
    from advisor.model.memory import AllocatorRecord, MemoryLedger
    from advisor.model.tables import MemorySummary

OVERHANG_RATIO = 2.0
"""Reserved over live from which more than half of what the process holds is cache."""

DEVICE_RATIO = 0.3
"""Share of the device that must be reserved: below it nobody else is likely to lack it."""

CROWDED_RATIO = 0.8
"""Share of the device that is reserved from which other users of it are likely to fail."""


UNSEEN_PEAK_SCORE = 0.45
"""Score where no record tells what was live before: the cache may be what every step needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the allocator holds now, and the most that was live as far as is known."""

    live: int
    reserved: int
    most_live: int | None
    source: Source


@rule("MEM402", "cached-memory-overhang")
def cached_memory_overhang(
    record: AllocatorRecord | None,
    summary: MemorySummary | None,
    ledger: MemoryLedger | None,
    ceilings: DeviceCeilings | None,
    failure: Failure | None,
) -> Finding | None:
    """Reserved is at least twice live and a good part of the device."""
    held, device = _held(record, summary), _device_bytes(ledger, ceilings)
    if held is None or device is None or failure is not None:
        return None
    most = held.live if held.most_live is None else held.most_live
    if held.reserved < OVERHANG_RATIO * most or held.reserved < DEVICE_RATIO * device:
        return None
    idle = held.reserved - held.live
    crowded = held.reserved >= CROWDED_RATIO * device
    return Finding(
        statement=f"PyTorch keeps {bytes_text(held.reserved)} of the device's {bytes_text(device)} and uses {bytes_text(held.live)}: "
        f"{bytes_text(idle)} is cache that nobody else can have.",
        severity=Severity.WARNING if crowded else Severity.INFO,
        confidence=UNSEEN_PEAK_SCORE if held.most_live is None else 0.75,
        observations=(
            bytes_fact(
                f"{bytes_text(held.reserved)} reserved, {ratio_text(held.reserved / device)} of the device",
                held.reserved,
                held.source,
            ),
            bytes_fact(f"{bytes_text(held.live)} live", held.live, held.source),
        ),
        actions=(
            Action(
                title="Give the cache back once, after the phase that needed it",
                change="torch.cuda.empty_cache()  # after loading, evaluation or generation; not inside the training loop",
                cost="the next allocations go to the driver again: some milliseconds each, once",
            ),
            garbage_collection(),
        ),
        settles=Action(
            title="See whether the cache is used again",
            change="print(torch.cuda.memory_summary())  # after a few more steps: does allocated come near reserved?",
        ),
        impact=Impact(recoverable_bytes=idle),
        ruled_out=(RuledOut(code="MEM401", because="no request was refused"),),
    )


def _held(record: AllocatorRecord | None, summary: MemorySummary | None) -> _Held | None:
    if record is not None:
        if record.oom_count:
            return None
        return _Held(
            live=record.dump_allocated_bytes,
            reserved=record.dump_reserved_bytes,
            most_live=record.peak_allocated_bytes if record.event_count else None,
            source=record.source,
        )
    if summary is None or summary.ooms:
        return None
    live, reserved = summary.current.get("allocated"), summary.current.get("reserved")
    if live is None or reserved is None:
        return None
    return _Held(live=live, reserved=reserved, most_live=summary.peak.get("allocated"), source=summary.source)


def _device_bytes(ledger: MemoryLedger | None, ceilings: DeviceCeilings | None) -> int | None:
    if ledger is not None and ledger.device_bytes is not None:
        return ledger.device_bytes
    return ceilings.memory_bytes if ceilings is not None else None


def fires() -> Case:
    """Training goes on after an evaluation: 70 of 80 GiB are reserved, and since then at most 24 were live."""
    return a_case(
        a_record(
            dump_allocated_bytes=18 * GIB,
            dump_reserved_bytes=70 * GIB,
            peak_allocated_bytes=24 * GIB,
        ),
        a_ledger(weights=18 * GIB, allocator_cached=52 * GIB),
    )


def clean() -> Case:
    """A dump between two steps: 18 GiB are live now, and every step needs 60 of the 70 that are reserved."""
    return a_case(
        a_record(
            dump_allocated_bytes=18 * GIB,
            dump_reserved_bytes=70 * GIB,
            peak_allocated_bytes=60 * GIB,
        ),
        a_ledger(weights=18 * GIB, allocator_cached=52 * GIB),
    )
