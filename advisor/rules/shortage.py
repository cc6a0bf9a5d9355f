"""What a refused request lacked, and whether what this process holds or what lies outside of it is to blame.

A snapshot shows what one process holds. That a block is the largest of it says little where the process holds little of the device:
then the request would have fitted but for what lies outside (other processes, libraries), and rules about that come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.driver_requests import asked_of_driver
from advisor.model.dataclass import dataclass, replace
from advisor.model.finding import Action
from advisor.model.memory import Moment
from advisor.rules.capacity import (
    CONTEXT_BYTES,
    CROWDED_RATIO,
    NEAR_RATIO,
    OTHER_CAUSE_FACTOR,
    OUTSIDE_BYTES,
    OUTSIDE_RATIO,
    failure_fact,
    is_capacity_failure,
    outside_bytes,
    reserved_bytes,
)
from advisor.rules.facts import bytes_fact
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure
    from advisor.model.finding import Finding, Observation
    from advisor.model.memory import AllocatorRecord, MemoryLedger


UNKNOWN_CAPACITY_FACTOR = 0.8
"""Factor where a snapshot's request was refused on a device of unknown size: in 23 of the corpus' 105 reports the cause lies outside the
process (others, libraries, a cap, a smaller device), and nothing in a snapshot tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """One refused request and the device at that moment, bytes.

    Attributes:
        requested / free: what was asked for, and what the driver had free.
        held: reserved by this process's allocator.
        outside: neither free nor the allocator's; at least, where the capacity is the maker's figure, of which the driver keeps a part.
        device: the capacity.
        source: who says so.
    """

    requested: int
    free: int
    held: int
    outside: int
    device: int
    source: Source

    @property
    def is_outside(self) -> bool:
        """Whether the request would have fitted but for what lies outside beyond a context and its libraries."""
        excess = self.outside - CONTEXT_BYTES
        if self.outside < OUTSIDE_BYTES or self.outside < OUTSIDE_RATIO * self.device:
            return False
        return self.free < self.requested <= self.free + excess

    @property
    def own_ratio(self) -> float:
        """This process's share of what is in use, 0 to 1: its share of the blame."""
        used = self.held + self.outside
        return self.held / used if used else 0.0


def shortage_of(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Shortage | None:
    """The shortage by the snapshot's own event, else by the message; None where figures are missing."""
    outside = ledger.outside_bytes
    if ledger.at is Moment.OOM and record is not None and record.oom_requested_bytes is not None:
        if outside is None or ledger.reserved_bytes is None or ledger.device_bytes is None or record.oom_free_bytes is None:
            return None
        return Shortage(
            requested=record.oom_requested_bytes,
            free=record.oom_free_bytes,
            held=ledger.reserved_bytes,
            outside=max(0, outside - ledger.kept_bytes),
            device=ledger.device_bytes,
            source=ledger.source,
        )
    if failure is None or not is_capacity_failure(failure) or failure.device_index not in {None, ledger.device_index}:
        return None
    held, beside = reserved_bytes(failure), outside_bytes(failure)
    if failure.requested_bytes is None or failure.free_bytes is None or failure.total_bytes is None or held is None or beside is None:
        return None
    return Shortage(
        requested=failure.requested_bytes,
        free=failure.free_bytes,
        held=held,
        outside=beside,
        device=failure.total_bytes,
        source=failure.source,
    )


def refusal_facts(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> tuple[Observation, ...]:
    """What was refused and what was free, by the snapshot's event, else by the message; nothing where nothing failed."""
    if record is not None and record.oom_requested_bytes is not None:
        words = f"{bytes_text(record.oom_requested_bytes)} was refused"
        if record.oom_free_bytes is not None:
            words += f" with {bytes_text(record.oom_free_bytes)} free on the device"
        if ledger.at is Moment.OOM and ledger.reserved_bytes is not None:
            words += f" and {bytes_text(ledger.reserved_bytes)} reserved by this process"
        return (bytes_fact(words, record.oom_requested_bytes, record.source.at(f"device {record.device_index}, oom event")),)
    if failure is not None and is_capacity_failure(failure) and failure.requested_bytes is not None:
        return (failure_fact(failure),)
    return ()


def was_not_full(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> bool:
    """Whether clearly more was free than was asked of the driver, on a device that was not all but full: capacity did not decide."""
    if record is not None and record.oom_requested_bytes is not None:
        requested: int | None = asked_of_driver(record.oom_requested_bytes)
        free, device = record.oom_free_bytes, ledger.device_bytes
    elif failure is not None and is_capacity_failure(failure) and failure.device_index in {None, ledger.device_index}:
        requested, free, device = failure.requested_bytes, failure.free_bytes, failure.total_bytes
    else:
        return False
    if requested is None or free is None or free <= (1 + NEAR_RATIO) * requested:
        return False
    return device is None or free >= CROWDED_RATIO * device


def told_of_refusal(finding: Finding, ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding:
    """A finding about a block of a ledger, with what was refused as evidence, and as sure as the block is to blame for it.

    Where the request would have fitted but for what lies outside this process, the score is this process's share of what is in use.
    Where more was free than was asked for (MEM708), it is halved, as that of every candidate that the figures contradict. Where the
    device's size is not known, it is a little lower, and what would settle it is the device's name.
    """
    facts = refusal_facts(ledger, failure, record)
    score = finding.confidence * (OTHER_CAUSE_FACTOR if was_not_full(ledger, failure, record) else 1.0)
    shortage = shortage_of(ledger, failure, record)
    if shortage is not None and shortage.is_outside:
        words = (
            f"{bytes_text(shortage.outside)} of the device's {bytes_text(shortage.device)} "
            f"({ratio_text(shortage.outside / shortage.device)}) lies outside this process's allocator: but for that the request would "
            "have fitted"
        )
        facts = (*facts, bytes_fact(words, shortage.outside, shortage.source))
        score *= shortage.own_ratio
    found = replace(finding, confidence=round(score, 3), observations=(*finding.observations, *facts))
    if shortage is None and ledger.at is Moment.OOM and ledger.device_bytes is None and record is not None:
        return replace(found, confidence=round(score * UNKNOWN_CAPACITY_FACTOR, 3), settles=found.settles or NAME_THE_DEVICE)
    return found


NAME_THE_DEVICE = Action(
    title="Name the device, so that what lies outside this process can be told",
    change='advisor-cli diagnose ... --device "NVIDIA H100 80GB HBM3"  # or give the log with the message, or nvidia-smi -q',
)
