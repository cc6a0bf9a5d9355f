"""Say what an allocator's record tells of a device besides the ledger: completeness, peaks, failures, fragments, growth."""

import numpy as np

from advisor.analysis.memory_growth import Growth, growth
from advisor.analysis.memory_ledger import DeviceAccount, device_accounts, grouped_sites
from advisor.analysis.training_phases import FORWARD, NAMES
from advisor.model.memory import AllocationSite, AllocatorRecord, Moment
from advisor.model.snapshot import NOT_RECORDED, Action, AllocatorSnapshot, BlockState

COMPLETE_RATIO = 0.95
"""A record is called complete if at least this share of the bytes that are live at the dump has its allocation event in it."""

LARGE_REQUEST_BYTES = 1024**2
"""Requests from here on count for `distinct_large_sizes`: smaller ones share 2 MiB segments and fragment little."""


def allocator_record(snapshot: AllocatorSnapshot) -> tuple[AllocatorRecord, ...]:
    """The record of every device with segments or events, in the order of its ledgers."""
    return tuple(_record(snapshot, account) for account in device_accounts(snapshot))


def _record(snapshot: AllocatorSnapshot, account: DeviceAccount) -> AllocatorRecord:
    device, replay = account.record.device, account.timeline
    events, n = device.events, replay.event_count
    live_bytes, unrecorded_bytes = _live(account, n)
    moment_live_bytes, moment_unrecorded_bytes = _live(account, account.moment)
    failures = np.flatnonzero(events.action == Action.OOM)
    failure = int(failures[-1]) if len(failures) else None
    is_alloc = events.action == Action.ALLOC
    reserved = int(device.segments.size_bytes.sum())
    # A record without allocations is none: what its other events say of the past is no peak.
    peak = replay.peak() if is_alloc.any() else n
    grown = growth(account.record)
    return AllocatorRecord(
        source=snapshot.source.at(f"device {device.index}"),
        rank=snapshot.rank,
        gaps=snapshot.gaps,
        device_index=device.index,
        event_count=n,
        record_is_complete=bool(is_alloc.any()) and unrecorded_bytes <= (1 - COMPLETE_RATIO) * live_bytes,
        moment=account.at,
        moment_live_bytes=moment_live_bytes,
        unrecorded_live_bytes=moment_unrecorded_bytes,
        dump_allocated_bytes=replay.allocated_at(n),
        dump_reserved_bytes=reserved,
        peak_allocated_bytes=replay.allocated_at(peak),
        peak_reserved_bytes=max(reserved, int(replay.reserved_bytes.max())) if is_alloc.any() else reserved,
        peak_phase=_phase(account, peak),
        oom_requested_bytes=None if failure is None else int(events.size_bytes[failure]),
        oom_free_bytes=None if failure is None else events.device_free_bytes.get(failure),
        oom_count=len(failures),
        largest_free_block_bytes=account.segments.largest_free_bytes if account.segments else 0,
        pending_free_bytes=int(device.blocks.size_bytes[device.blocks.state == BlockState.PENDING_FREE].sum()),
        private_pool_bytes=int(device.segments.size_bytes[device.segments.pool != 0].sum()),
        expandable_segment_bytes=int(device.segments.size_bytes[device.segments.is_expandable].sum()),
        segment_alloc_count=int(np.isin(events.action, (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)).sum()),
        segment_free_count=int(np.isin(events.action, (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)).sum()),
        distinct_large_sizes=len(np.unique(events.size_bytes[is_alloc & (events.size_bytes >= LARGE_REQUEST_BYTES)])),
        allocator_settings=snapshot.settings,
        growth_bytes_per_step=grown.bytes_per_step if grown else None,
        growth_sites=_growth_sites(account, grown) if grown else (),
    )


def _live(account: DeviceAccount, moment: int) -> tuple[int, int]:
    """Bytes taken at a moment, and those of them without an allocation event."""
    replay = account.timeline
    rows = replay.live(moment)
    start = replay.uses.start[rows]
    sizes = replay.size_bytes[rows]
    return int(sizes.sum()), int(sizes[(start < 0) | (start == replay.event_count)].sum())


def _phase(account: DeviceAccount, peak: int) -> str:
    """The phase of the allocation that made the peak; of a moment that is no allocation, of the last one before it."""
    record = account.record
    events = record.device.events
    allocations = np.flatnonzero(events.action[: max(0, peak + 1)] == Action.ALLOC)
    if not len(allocations) or (account.at is Moment.DUMP):
        return "unknown"
    row = allocations[-1]
    stack = int(events.stack[row])
    if stack == NOT_RECORDED:
        return "unknown"
    name = NAMES.get(record.readings[stack].role)
    if name:
        return name
    # A loss written outside of modules follows the forward pass and belongs to it.
    return "forward" if int(record.phases.at(np.array([row]))[0]) == FORWARD else "unknown"


def _growth_sites(account: DeviceAccount, grown: Growth) -> tuple[AllocationSite, ...]:
    rows = grown.rows.tolist()
    block_of = dict(zip(account.attribution.rows.tolist(), account.attribution.block, strict=True))
    blocks = [block_of.get(row, "unattributed") for row in rows]
    whys = ["still live although the steps that made it are over"] * len(rows)
    return grouped_sites(account, rows, blocks, whys, account.timeline.size_bytes[grown.rows].tolist())
