"""The capacity of one device of a process, from whatever else stands in the case, and a ledger closed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.memory_estimate import capacity_of
from advisor.model.dataclass import dataclass, replace
from advisor.model.failure import FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from advisor.model.ceilings import DeviceCeilings
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure
    from advisor.model.memory import MemoryLedger
    from advisor.model.node import NodeReading
    from advisor.model.trace import KinetoTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCapacity:
    """How much memory a device has.

    Attributes:
        total_bytes: the capacity.
        source: who says so.
        slack_bytes: how far a printed figure may be from the real one.
        kept_bytes: what the driver may keep of it, where it is the maker's figure and not what the runtime reports.
        remark: what else the reader must know of the figure; empty where it was reported.
    """

    total_bytes: int
    source: Source
    slack_bytes: int = 0
    kept_bytes: int = 0
    remark: str = ""


def device_capacity(
    device_index: int,
    *,
    failures: Iterable[Failure],
    trace: KinetoTrace | None,
    reading: NodeReading | None,
    ceilings: Iterable[DeviceCeilings],
) -> KnownCapacity | None:
    """What the device has: as a message of this device prints it, else a trace, else nvidia-smi, else the catalogue; None where none says.

    nvidia-smi numbers devices in its own order, so its figure is taken only where all GPUs that it lists have the same; the
    catalogue's only where all devices that the case names have the same.
    """
    for failure in failures:
        if failure.total_bytes and failure.kind is FailureKind.DEVICE_OUT_OF_MEMORY:
            return KnownCapacity(total_bytes=failure.total_bytes, source=failure.source, slack_bytes=failure.resolution_bytes or 0)
    for device in trace.devices if trace is not None else ():
        if device.index == device_index and device.total_bytes and trace is not None:
            return KnownCapacity(total_bytes=device.total_bytes, source=trace.source.at("deviceProperties"))
    listed = {gpu.total_bytes for gpu in reading.gpus} if reading is not None else set()
    if reading is not None and len(listed) == 1 and (total := next(iter(listed))):
        return KnownCapacity(total_bytes=total, source=reading.source)
    return _by_name(tuple(ceilings))


def _by_name(named: tuple[DeviceCeilings, ...]) -> KnownCapacity | None:
    """What the catalogue or the command line says, where all devices that are named have the same."""
    known = capacity_of(named[0]) if named and len({one.memory_bytes for one in named}) == 1 else None
    if known is None:
        return None
    return KnownCapacity(
        total_bytes=known.ceiling_bytes,
        source=named[0].source,
        kept_bytes=known.ceiling_bytes - known.floor_bytes,
        remark=f"the capacity: {known.basis}",
    )


def of_device(failures: Iterable[Failure], device_index: int, *, is_only_device: bool) -> tuple[Failure, ...]:
    """The failures of one device; those that name none are taken for it where it is the only one."""
    return tuple(
        failure for failure in failures if failure.device_index == device_index or (failure.device_index is None and is_only_device)
    )


def closed(ledger: MemoryLedger, capacity: KnownCapacity | None, outside: Mapping[str, int]) -> MemoryLedger:
    """The same ledger, summing to the device.

    Args:
        ledger: what the allocator holds, and what is free where that is known.
        capacity: of the device; the ledger is not changed where it is None. One that is smaller than what the ledger knows of is another
            device's: it is left out, and a gap says so.
        outside: what is known of `non_pytorch` and `other_processes`, bytes; clipped to what the device has left. The rest goes to
            `unattributed`, and a note says what it is.
    """
    if capacity is None:
        return ledger
    entries = dict(ledger.entries)
    known = sum(size for size in entries.values() if size is not None)
    if known > capacity.total_bytes + capacity.slack_bytes:
        gap = (
            f"{capacity.source} gives the device {capacity.total_bytes:,} bytes, and {known:,} were in use or free: that is another"
            " device's figure, so the capacity is left out"
        )
        return replace(ledger, gaps=(*ledger.gaps, gap))
    total = max(capacity.total_bytes, known)  # a printed figure is rounded
    rest = total - known
    for block, size in outside.items():
        entries[block] = min(size, rest)
        rest -= min(size, rest)
    entries["unattributed"] = (entries["unattributed"] or 0) + rest
    notes = (*ledger.notes, _about(rest, ledger, capacity)) if rest else ledger.notes
    return replace(ledger, device_bytes=total, entries=entries, notes=notes, kept_bytes=min(rest, capacity.kept_bytes))


def _about(rest: int, ledger: MemoryLedger, capacity: KnownCapacity) -> str:
    words = f"{rest / 1024**3:.2f} GiB of what is not attributed "
    if ledger.reserved_bytes is None:
        words += "is in PyTorch's cache, or lies outside PyTorch, or is free: nothing here tells"
    elif ledger.entries["free"] is None:
        words += "is not PyTorch's: it is free or lies outside PyTorch, which only a refused request tells"
    else:
        words += "lies outside PyTorch: other processes, libraries of this one, the driver; nothing here tells which"
    return f"{words} ({capacity.remark})" if capacity.remark else words
