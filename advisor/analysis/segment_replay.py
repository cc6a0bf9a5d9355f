"""Replay a device's segments back from the dump to a moment, and find what is free inside them."""

from bisect import bisect_left

import numpy as np

from advisor.analysis.allocation_timeline import GROWS, SHRINKS, Timeline
from advisor.model.dataclass import dataclass
from advisor.model.snapshot import DeviceSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentState:
    """What the allocator had reserved at a moment.

    Attributes:
        reserved_bytes: in all.
        private_inactive_bytes: of it, free inside segments of private pools, where other allocations cannot use it.
        largest_free_bytes: the largest run of free bytes inside one segment of the default pool.
    """

    reserved_bytes: int
    private_inactive_bytes: int
    largest_free_bytes: int


class _Runs:
    """Disjoint runs of reserved addresses with the pool that each belongs to, sorted."""

    def __init__(self, runs: list[tuple[int, int, int]]) -> None:
        runs.sort()
        self.begins = [begin for begin, _, _ in runs]
        self.rest = [(end, pool) for _, end, pool in runs]

    def remove(self, begin: int, end: int) -> None:
        at = max(0, bisect_left(self.begins, begin) - 1)
        while at < len(self.begins) and self.begins[at] < end:
            low, (high, pool) = self.begins[at], self.rest[at]
            if high <= begin:
                at += 1
                continue
            pieces = [(low, begin), (end, high)]
            kept = [(left, right) for left, right in pieces if left < right]
            self.begins[at : at + 1] = [left for left, _ in kept]
            self.rest[at : at + 1] = [(right, pool) for _, right in kept]
            at += len(kept)

    def add(self, begin: int, end: int) -> None:
        at = bisect_left(self.begins, begin)
        self.begins.insert(at, begin)
        # A segment that was freed within the record is of a pool that the dump no longer tells.
        self.rest.insert(at, (end, 0))


def segments_at(device: DeviceSnapshot, replay: Timeline, moment: int) -> SegmentState | None:
    """The segments at a moment; None where they do not even hold the blocks that were live then."""
    events = device.events
    segments = device.segments
    runs = _Runs(
        list(
            zip(
                segments.address.tolist(),
                (segments.address + segments.size_bytes).tolist(),
                segments.pool.tolist(),
                strict=True,
            )
        )
    )
    later = np.flatnonzero(np.isin(events.action, (*GROWS, *SHRINKS)))
    for row in later[later > moment][::-1].tolist():
        begin = int(events.address[row])
        end = begin + int(events.size_bytes[row])
        if events.action[row] in GROWS:
            runs.remove(begin, end)
        else:
            runs.add(begin, end)
    n = replay.event_count
    reserved = int(replay.reserved_bytes[min(moment, n - 1) + 1]) if n else int(segments.size_bytes.sum())
    live = replay.live(moment)
    active = int(replay.size_bytes[live].sum())
    if reserved < active:
        return None
    starts = np.array(runs.begins, np.int64)
    address = replay.uses.address[live]
    inside = np.searchsorted(starts, address, "right") - 1
    held = np.bincount(inside[inside >= 0], replay.size_bytes[live][inside >= 0], minlength=len(starts)).astype(np.int64)
    ends = np.array([end for end, _ in runs.rest], np.int64)
    pools = np.array([pool for _, pool in runs.rest], np.int64)
    private = int(np.maximum(ends - starts - held, 0)[pools != 0].sum()) if len(starts) else 0
    return SegmentState(
        reserved_bytes=reserved,
        private_inactive_bytes=min(private, reserved - active),
        largest_free_bytes=_largest_gap(starts[pools == 0], ends[pools == 0], address, address + replay.size_bytes[live]),
    )


def _largest_gap(begins: np.ndarray, ends: np.ndarray, low: np.ndarray, high: np.ndarray) -> int:
    """The largest run of addresses inside one segment that no block covers."""
    if not len(begins):
        return 0
    order = np.argsort(low)
    low, high = low[order], high[order]
    inside = np.searchsorted(begins, low, "right") - 1
    keep = (inside >= 0) & (high <= ends[np.maximum(inside, 0)])
    low, high = low[keep], high[keep]
    # Every gap ends at a block or at its segment's end, and begins at its segment or where the block before it ends.
    edges = np.sort(np.concatenate([low, ends]))
    starts = np.sort(np.concatenate([begins, high]))
    return int(np.maximum(edges - starts, 0).max())
