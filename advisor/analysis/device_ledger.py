"""Close a snapshot's ledgers to their devices: what the driver said of free memory, the capacity, and what lies outside PyTorch.

A snapshot tells what the allocator held. Its `oom` event tells what the driver had free when it refused, and other evidence of the case
the capacity; the rest of the device lies outside this process's allocator. Whose that is only a message of the same moment can tell.
"""

from advisor.analysis.allocator_rounding import MINIMUM_BLOCK_BYTES
from advisor.analysis.device_capacity import closed, device_capacity, of_device
from advisor.analysis.driver_requests import asked_of_driver
from advisor.analysis.memory_ledger import DeviceAccount, device_accounts, memory_ledger
from advisor.analysis.text_ledger import text_ledger
from advisor.model.ceilings import DeviceCeilings
from advisor.model.dataclass import dataclass, replace
from advisor.model.failure import Failure
from advisor.model.memory import MemoryLedger, Moment
from advisor.model.node import NodeReading
from advisor.model.snapshot import AllocatorSnapshot
from advisor.model.trace import KinetoTrace

OUTSIDE = ("non_pytorch", "other_processes")
"""The entries of what is not PyTorch's and not free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """The request that the last `oom` event of a device is about, and what the driver had free then; bytes."""

    requested_bytes: int
    free_bytes: int


def device_ledger(
    snapshot: AllocatorSnapshot,
    failures: tuple[Failure, ...],
    trace: KinetoTrace | None,
    reading: NodeReading | None,
    ceilings: tuple[DeviceCeilings, ...],
) -> tuple[MemoryLedger, ...]:
    """The ledger of every device of a snapshot, in the order of `memory_ledger`, closed to the device where its capacity is known.

    `free` is the driver's figure of the `oom` event. What is neither free nor the allocator's stands in `non_pytorch` and
    `other_processes` where a message of the same refusal tells them apart, and in `unattributed` otherwise
    (`MemoryLedger.unsplit_bytes`). Without a capacity the entries sum to what is known.
    """
    ledgers = []
    for ledger, account in zip(memory_ledger(snapshot), device_accounts(snapshot), strict=True):
        own = of_device(failures, ledger.device_index, is_only_device=len(snapshot.devices) == 1)
        refusal = _refusal(account)
        same = next((failure for failure in own if refusal is not None and _is_same(failure, refusal)), None)
        capacity = device_capacity(
            ledger.device_index,
            failures=own if same is None else (same,),
            trace=trace,
            reading=reading,
            ceilings=ceilings,
        )
        if refusal is not None:
            ledger = _with_free(ledger, refusal, is_whole=capacity is not None)  # noqa: PLW2901 - the same ledger, told more
        outside = _outside(ledger, same) if same is not None else {}
        ledgers.append(closed(ledger, capacity, outside))
    return tuple(ledgers)


def _refusal(account: DeviceAccount) -> _Refusal | None:
    if account.at is not Moment.OOM:
        return None
    events = account.record.device.events
    free = events.device_free_bytes.get(account.moment)
    return None if free is None else _Refusal(requested_bytes=int(events.size_bytes[account.moment]), free_bytes=free)


def _is_same(failure: Failure, refusal: _Refusal) -> bool:
    """Whether a message is about the refusal that the event recorded: it prints the same request and the same free memory.

    Messages print the segment that was asked of the driver, or the tensor's own size; events the size rounded to a block.
    """
    if failure.requested_bytes is None or failure.free_bytes is None:
        return False
    slack = failure.resolution_bytes or 0
    asked = (refusal.requested_bytes, asked_of_driver(refusal.requested_bytes))
    is_request = min(abs(failure.requested_bytes - size) for size in asked) <= slack + MINIMUM_BLOCK_BYTES
    return is_request and abs(failure.free_bytes - refusal.free_bytes) <= slack


def _with_free(ledger: MemoryLedger, refusal: _Refusal, *, is_whole: bool) -> MemoryLedger:
    unknown = "the device's capacity is not in a snapshot, so how much lies outside PyTorch is not known: name the device (--device)"
    return replace(
        ledger,
        entries={**ledger.entries, "free": refusal.free_bytes},
        notes=ledger.notes if is_whole else (*ledger.notes, unknown),
    )


def _outside(ledger: MemoryLedger, same: Failure) -> dict[str, int]:
    """What a message of the same refusal says of the memory outside the allocator."""
    if ledger.reserved_bytes is None or ledger.allocated_bytes is None:
        return {}
    exact = replace(
        same,
        free_bytes=ledger.entry("free"),
        allocated_bytes=ledger.allocated_bytes,
        reserved_bytes=ledger.reserved_bytes,
        reserved_unallocated_bytes=ledger.reserved_bytes - ledger.allocated_bytes,
        private_pool_bytes=None,
    )
    told = text_ledger(exact)
    entries = told.entries if told is not None else {}
    return {block: size for block in OUTSIDE if (size := entries.get(block)) is not None}
