"""What a ledger's blocks say: which is the largest, whether it matters, and what is left once it shrinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from advisor.model.finding import Observation, Severity
from advisor.model.memory import AllocationSite, AllocatorRecord, Basis, MemoryLedger, Moment
from advisor.rules.capacity import is_capacity_failure, severity_of
from advisor.rules.facts import bytes_fact
from advisor.rules.wording import bytes_text, count_text, ratio_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from advisor.model.evidence import Source
    from advisor.model.failure import Failure

NEAR_CAPACITY_RATIO = 0.92
"""Share of the device above which the next larger batch fails: a context, cuBLAS and NCCL buffers
take the rest."""

SITES_NAMED = 3
"""Places that a finding names; the ledger lists the others."""

LARGEST_SHARE = 0.4
"""Share of the live bytes from which the largest block decides: halving a smaller one gives back less
than a fifth."""


def is_attributed(ledger: MemoryLedger | None) -> TypeGuard[MemoryLedger]:
    """Whether a ledger says what the memory is: made from stacks or the registry, not a message."""
    return ledger is not None and ledger.basis is not Basis.TEXT


def held_bytes(ledger: MemoryLedger) -> int:
    """Bytes of live blocks at the ledger's moment."""
    if ledger.allocated_bytes:
        return ledger.allocated_bytes
    outside = {"free", "allocator_cached", "non_pytorch", "other_processes"}
    return sum(size for name, size in ledger.entries.items() if size and name not in outside) - ledger.unsplit_bytes


def ledger_severity(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Severity | None:
    """How much the largest block matters: it failed, it is close to failing, capacity is unknown, or (None) there is room."""
    if ledger.at is Moment.OOM or (record is not None and record.oom_count):
        return Severity.ERROR
    if is_capacity_failure(failure):
        return severity_of(failure)
    if ledger.device_bytes is None:
        return Severity.INFO
    reserved = ledger.reserved_bytes if ledger.reserved_bytes is not None else held_bytes(ledger)
    return Severity.WARNING if reserved >= NEAR_CAPACITY_RATIO * ledger.device_bytes else None


def block_fact(ledger: MemoryLedger, block: str) -> Observation:
    """One block of a ledger as a fact: its bytes and its share of what is live."""
    size, held = ledger.entry(block), held_bytes(ledger)
    share = f", {ratio_text(size / held)} of the {bytes_text(held)} live" if held else ""
    moment = {Moment.OOM: "when the request was refused", Moment.PEAK: "at the peak"}
    return bytes_fact(
        f"{block.replace('_', ' ')} held {bytes_text(size)}{share} " + moment.get(ledger.at, "when the snapshot was taken"),
        size,
        ledger.source,
    )


def fits_after(ledger: MemoryLedger, record: AllocatorRecord | None, saved_bytes: int) -> bool | None:
    """Whether the peak, with the refused request, fits once `saved_bytes` are gone; None where the device's size is unknown."""
    if ledger.device_bytes is None:
        return None
    # At a moment when what is free is not known, the rest of the device counts as free.
    outside = ledger.outside_bytes or ledger.entry("non_pytorch") + ledger.entry("other_processes")
    request = (record.oom_requested_bytes or 0) if record is not None else 0
    return held_bytes(ledger) - saved_bytes + request + outside <= ledger.device_bytes


def dominates(ledger: MemoryLedger, block: str) -> bool:
    """Whether a block is the largest of what PyTorch holds, and a good part of it."""
    largest = ledger.largest()
    if largest is None or largest[0] != block:
        return False
    return largest[1] >= LARGEST_SHARE * held_bytes(ledger)


def site_facts(sites: Iterable[AllocationSite], source: Source) -> tuple[Observation, ...]:
    """The three largest of some sites as facts: bytes, tensors, and the line that allocated them."""
    ordered = sorted(sites, key=lambda site: -site.live_bytes)[:SITES_NAMED]
    return tuple(
        bytes_fact(
            f"{bytes_text(site.live_bytes)} in {count_text(site.count, 'tensor')} from {site.label}",
            site.live_bytes,
            source,
        )
        for site in ordered
    )
