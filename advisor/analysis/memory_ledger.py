"""Make a closed ledger of each device's memory at the moment that matters: the failure, else the peak, else the dump."""

from collections import Counter
from functools import lru_cache

import numpy as np

from advisor.analysis.allocation_timeline import Timeline, timeline
from advisor.analysis.allocator_rounding import rounding_of
from advisor.analysis.device_record import Attribution, Record, record_of
from advisor.analysis.memory_attribution import attribute
from advisor.analysis.segment_replay import SegmentState, segments_at
from advisor.analysis.stack_reading import UNRECORDED, read_stacks
from advisor.model.dataclass import dataclass
from advisor.model.memory import BLOCKS, AllocationSite, Basis, MemoryLedger, Moment
from advisor.model.snapshot import Action, AllocatorSnapshot

MOST_SITES = 40

ATTRIBUTED = BLOCKS[: BLOCKS.index("allocator_rounding")]
"""The entries that blocks are attributed to."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceAccount:
    """Everything that is worked out for one device, for the ledger and for the record's figures.

    Attributes:
        record: the device's record.
        at / moment: the moment that the ledger describes, and its number.
        attribution: what is live then.
        segments: what is reserved then; None where the record contradicts the dump's segments.
    """

    record: Record
    at: Moment
    moment: int
    attribution: Attribution
    segments: SegmentState | None

    @property
    def timeline(self) -> Timeline:
        """The device's record as lifetimes."""
        return self.record.timeline

    @property
    def where(self) -> str:
        """The place in the file, for sources."""
        moments = {
            Moment.OOM: "oom event",
            Moment.PEAK: "peak of the record",
            Moment.DUMP: "at the dump",
        }
        return f"device {self.record.device.index}, {moments[self.at]}"


def memory_ledger(snapshot: AllocatorSnapshot) -> tuple[MemoryLedger, ...]:
    """The ledger of every device with segments or events: one that ran out of memory first, then by reserved bytes.

    The entries sum to `reserved_bytes`, to the byte; where the record contradicts the segments, so that these are unknown at the
    moment, to the live blocks. The device's capacity is not in a snapshot.
    """
    return tuple(_ledger(snapshot, account) for account in device_accounts(snapshot))


@lru_cache(maxsize=1)
def device_accounts(snapshot: AllocatorSnapshot) -> tuple[DeviceAccount, ...]:
    """The accounts of a snapshot's devices, in the order of its ledgers (kept for the snapshot that was asked for last)."""
    rounding = rounding_of(snapshot)
    readings = read_stacks(snapshot)
    accounts = []
    for device in snapshot.devices:
        replay = timeline(device, rounding)
        record = record_of(snapshot, device, replay, readings)
        at, moment = _moment(record)
        accounts.append(
            DeviceAccount(
                record=record,
                at=at,
                moment=moment,
                attribution=attribute(record, moment),
                segments=None if snapshot.is_from_profiler else segments_at(device, replay, moment),
            )
        )
    accounts.sort(
        key=lambda account: (
            account.at is not Moment.OOM,
            -int(account.record.device.segments.size_bytes.sum()),
            account.record.device.index,
        )
    )
    return tuple(accounts)


def _moment(record: Record) -> tuple[Moment, int]:
    action = record.device.events.action
    failures = np.flatnonzero(action == Action.OOM)
    if len(failures):
        return Moment.OOM, int(failures[-1])
    if (action == Action.ALLOC).any():
        return Moment.PEAK, record.timeline.peak()
    return Moment.DUMP, record.timeline.event_count


def _ledger(snapshot: AllocatorSnapshot, account: DeviceAccount) -> MemoryLedger:
    replay, found = account.timeline, account.attribution
    uses, rows = replay.uses, found.rows
    size = replay.size_bytes[rows]
    requested = np.where(uses.requested_bytes[rows] >= 0, np.minimum(uses.requested_bytes[rows], size), size)
    held: Counter[str] = Counter()
    for block, bytes_ in zip(found.block, requested.tolist(), strict=True):
        held[block] += bytes_
    explained = any(held[block] for block in ATTRIBUTED)
    entries: dict[str, int | None] = dict.fromkeys(BLOCKS)
    if explained:
        entries |= {block: held[block] for block in ATTRIBUTED}
    entries["allocator_rounding"] = int((size - requested).sum())
    entries["unattributed"] = held["unattributed"]
    reserved = None
    if account.segments is not None:
        reserved = account.segments.reserved_bytes
        entries["private_pools"] = account.segments.private_inactive_bytes
        entries["allocator_cached"] = reserved - int(size.sum()) - account.segments.private_inactive_bytes
    return MemoryLedger(
        source=snapshot.source.at(account.where),
        rank=snapshot.rank,
        gaps=snapshot.gaps,
        device_index=account.record.device.index,
        at=account.at,
        device_bytes=None,
        entries=entries,
        basis=Basis.STACKS,
        allocated_bytes=replay.allocated_at(account.moment),
        reserved_bytes=reserved,
        sites=_sites(account),
        notes=_notes(account),
    )


def _sites(account: DeviceAccount) -> tuple[AllocationSite, ...]:
    found, replay = account.attribution, account.timeline
    return grouped_sites(account, found.rows.tolist(), found.block, found.why, replay.size_bytes[found.rows].tolist())


def grouped_sites(
    account: DeviceAccount, rows: list[int], blocks: list[str], whys: list[str], sizes: list[int]
) -> tuple[AllocationSite, ...]:
    """Live uses by place, entry and reason, largest first, at most 40; stacks that differ in plumbing only are one place."""
    groups: dict[tuple[str, tuple[str, ...], str, str], list[int]] = {}
    readings = (*account.record.readings, UNRECORDED)
    for stack, block, why, size in zip(account.timeline.uses.stack[rows].tolist(), blocks, whys, sizes, strict=True):
        reading = readings[stack]
        total = groups.setdefault((reading.label, reading.frames, block, why), [0, 0, 0])
        total[0] += size
        total[1] += 1
        total[2] = max(total[2], size)
    largest = sorted(groups.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_SITES]
    return tuple(
        AllocationSite(
            label=label,
            block=block,
            live_bytes=live,
            count=count,
            largest_bytes=most,
            why=why,
            stack=frames,
        )
        for (label, frames, block, why), (live, count, most) in largest
    )


def _notes(account: DeviceAccount) -> tuple[str, ...]:
    record, replay = account.record, account.timeline
    uses, rows = replay.uses, account.attribution.rows
    events = record.device.events
    notes = list(account.attribution.notes)
    has_history = bool((events.action == Action.ALLOC).any())
    if not has_history:
        notes.append("the snapshot holds no history of allocations, so this is the state at the dump and nothing is known of lifetimes")
    elif not (events.stack >= 0).any():
        notes.append("the history holds no stacks, so nothing tells what the memory is for")
    old = int(replay.size_bytes[rows[uses.start[rows] == -1]].sum())
    if has_history and old:
        notes.append(f"{_in_words(old)} of it had been allocated before the record began; what it is was inferred from sizes and lifetimes")
    pending = int(replay.size_bytes[rows[uses.freed[rows] <= account.moment]].sum())
    if pending:
        notes.append(f"{_in_words(pending)} of it was freed and waits for another stream")
    if account.segments is None and not record.snapshot.is_from_profiler:
        notes.append("the record contradicts the segments of the dump, so reserved memory at that moment is unknown")
    notes.extend(f"{count} {problem}" for problem, count in uses.problems.items() if count)
    return tuple(notes)


def _in_words(size: int) -> str:
    return f"{size / 1024**3:.2f} GiB" if size >= 1024**3 else f"{size / 1024**2:.1f} MiB"
