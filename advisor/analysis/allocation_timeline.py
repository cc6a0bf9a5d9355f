"""Replay a device's record: what was live, allocated and reserved after any event, to the byte."""

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from advisor.analysis.allocation_lifetimes import Lifetimes, lifetimes
from advisor.analysis.allocator_rounding import SMALL_REQUEST_BYTES, Rounding
from advisor.model.dataclass import dataclass
from advisor.model.snapshot import Action, DeviceSnapshot

Bytes = NDArray[np.int64]

GROWS = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
SHRINKS = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """A device's record as lifetimes of blocks; see `Lifetimes` for how moments are numbered.

    Attributes:
        uses: the lifetimes.
        size_bytes: each block's size, rounded and with the remainder that was not split off.
        allocated_bytes: after event m at index m + 1 (index 0: before the first event); n + 1 values.
        reserved_bytes: the same of the segments.
    """

    uses: Lifetimes
    size_bytes: Bytes
    allocated_bytes: Bytes
    reserved_bytes: Bytes

    @property
    def event_count(self) -> int:
        """Events of the record."""
        return self.uses.event_count

    def live(self, moment: int) -> NDArray[np.int64]:
        """Rows of the uses whose memory was taken at a moment (allocated, or waiting for another stream)."""
        return np.flatnonzero((self.uses.start <= moment) & (moment < self.uses.end))

    def allocated_at(self, moment: int) -> int:
        """Bytes in use by tensors at a moment."""
        if moment < self.event_count:
            return int(self.allocated_bytes[moment + 1])
        uses = self.uses
        return int(self.size_bytes[(uses.start <= moment) & (moment < uses.freed)].sum())

    def peak(self) -> int:
        """The first moment of the record with the most allocated bytes; the dump if it has more."""
        moment = int(np.argmax(self.allocated_bytes)) - 1
        return self.event_count if self.allocated_at(self.event_count) > self.allocated_bytes[moment + 1] else moment


def timeline(device: DeviceSnapshot, rounding: Rounding) -> Timeline:
    """Replay one device.

    Sizes of blocks that are live at the dump are the dump's. Those of others are computed as the allocator computes them, which is
    exact except for blocks that are older than the record and freed within it: up to 1 MiB that was not split off them can be missed.
    """
    uses = lifetimes(device)
    size = np.where(
        uses.block_bytes > 0,
        uses.block_bytes,
        rounding.rounded(np.maximum(uses.requested_bytes, 0)),
    )
    if rounding.rounds and not rounding.splits_all:
        size = with_remainders(device, uses, size, rounding.max_split_bytes)
    n = uses.event_count
    change = np.zeros(n, np.int64)
    for rows, sign in ((uses.start, 1), (uses.freed, -1)):
        inside = (rows >= 0) & (rows < n)
        change[rows[inside]] += sign * size[inside]
    before = int(size[(uses.start == -1) & (uses.freed > -1)].sum())
    return Timeline(
        uses=uses,
        size_bytes=size,
        allocated_bytes=before + np.append(0, np.cumsum(change)),
        reserved_bytes=_reserved(device),
    )


def _reserved(device: DeviceSnapshot) -> Bytes:
    events = device.events
    grown = np.where(np.isin(events.action, GROWS), events.size_bytes, 0)
    shrunk = np.where(np.isin(events.action, SHRINKS), events.size_bytes, 0)
    change = np.append(0, np.cumsum(grown - shrunk))
    reserved: Bytes = int(device.segments.size_bytes.sum()) - change[-1] + change
    return reserved


def with_remainders(device: DeviceSnapshot, uses: Lifetimes, size: Bytes, max_split_bytes: int) -> Bytes:
    """Add to each block of the large pool the remainder that the allocator did not split off.

    It takes the smallest free run that fits and splits it only if more than 1 MiB would be left (or never, from `max_split_bytes`
    on), so a block reaches to the next live block, or to its segment's end, whenever that is no further than 1 MiB away.

    Returns:
        Sizes in bytes; those that the dump told stay as they are.
    """
    events = device.events
    large = np.flatnonzero(size > SMALL_REQUEST_BYTES)
    changes = np.flatnonzero(np.isin(events.action, (*GROWS, *SHRINKS)))
    ends = events.address[changes] + events.size_bytes[changes]
    before = _segment_ends_before(device)
    asking, is_edge, low, high = _border_cases(uses, size, large, np.append(ends, np.array(before, np.int64)), max_split_bytes)
    if not len(asking):
        return size
    old = uses.start[large] == -1
    edges = sorted(
        [
            *_between(np.array(before, np.int64), low, high).tolist(),
            *uses.address[large[old & is_edge]].tolist(),
        ]
    )
    addresses = uses.address
    sizes: Bytes = size.copy()
    for use in asking[uses.start[asking] == -1].tolist():
        sizes[use] = _reach(edges, int(addresses[use]), int(size[use]), max_split_bytes)
    n = uses.event_count
    asked = asking[(uses.start[asking] >= 0) & (uses.start[asking] < n)]
    born = large[is_edge & (uses.start[large] >= 0) & (uses.start[large] < n)]
    died = large[is_edge & (uses.end[large] < n)]
    near = np.isin(ends, _between(np.unique(ends), low, high))
    changes, ends = changes[near], ends[near]
    grows = np.isin(events.action[changes], GROWS)
    # At one event a block can end only because the next one begins at its address: ends come first, and what is asked is asked
    # before the new block itself becomes an edge.
    when = np.concatenate([uses.end[died], changes, uses.start[asked], uses.start[born]])
    kind = np.repeat([0, 1, 2, 3], [len(died), len(changes), len(asked), len(born)])
    subject = np.concatenate([addresses[died], np.where(grows, ends, -ends), asked, addresses[born]])
    order = np.lexsort((kind, when))
    for code, value in zip(kind[order].tolist(), subject[order].tolist(), strict=True):
        if code == 0:
            _remove(edges, value)
        elif code == 1:
            _add(edges, value) if value > 0 else _remove(edges, -value)
        elif code == 2:  # noqa: PLR2004 - the third kind
            sizes[value] = _reach(edges, int(addresses[value]), int(size[value]), max_split_bytes)
        else:
            _add(edges, value)
    return sizes


def _border_cases(
    uses: Lifetimes, size: Bytes, large: Bytes, segment_ends: Bytes, max_split_bytes: int
) -> tuple[Bytes, NDArray[np.bool_], Bytes, Bytes]:
    """The few blocks of the large pool that ever had an edge (a block or a segment's end) at most 1 MiB behind them.

    Returns:
        Those blocks; for each of `large`, whether it begins at such an edge; and the ranges of addresses in which edges matter.
    """
    asking = large[uses.block_bytes[large] == 0]
    ever = np.unique(np.concatenate([uses.address[large], segment_ends]))
    stop = uses.address[asking] + size[asking]
    following = np.append(ever, np.iinfo(np.int64).max)[np.searchsorted(ever, stop, "right")]
    reach = np.where(size[asking] >= max_split_bytes, np.iinfo(np.int64).max - stop, SMALL_REQUEST_BYTES)
    is_near = (following - stop <= reach) & (following < np.iinfo(np.int64).max)
    asking, stop, reach = asking[is_near], stop[is_near], reach[is_near]
    low, first = np.unique(stop, return_index=True)
    high = np.maximum.accumulate(low + reach[first]) if len(low) else low
    return asking, np.isin(uses.address[large], _between(ever, low, high)), low, high


def _between(values: Bytes, low: Bytes, high: Bytes) -> Bytes:
    """The values that lie in any range; ranges are sorted by `low`, and `high` never falls."""
    if not len(low):
        return values[:0]
    at = np.searchsorted(low, values, "right") - 1
    kept: Bytes = values[(at >= 0) & (values <= high[np.maximum(at, 0)])]
    return kept


def _reach(edges: list[int], address: int, size: int, max_split_bytes: int) -> int:
    at = bisect_right(edges, address)
    if at == len(edges):
        return size
    left = edges[at] - address - size
    return size + left if 0 < left <= SMALL_REQUEST_BYTES or (left > 0 and size >= max_split_bytes) else size


def _add(edges: list[int], edge: int) -> None:
    edges.insert(bisect_right(edges, edge), edge)


def _remove(edges: list[int], edge: int) -> None:
    at = bisect_left(edges, edge)
    if at < len(edges) and edges[at] == edge:
        del edges[at]


def _segment_ends_before(device: DeviceSnapshot) -> list[int]:
    """Ends of the segments that existed before the first event: those of the dump, with the record's changes undone."""
    ends = sorted((device.segments.address + device.segments.size_bytes).tolist())
    events = device.events
    for row in np.flatnonzero(np.isin(events.action, (*GROWS, *SHRINKS)))[::-1].tolist():
        edge = int(events.address[row]) + int(events.size_bytes[row])
        _remove(ends, edge) if events.action[row] in GROWS else _add(ends, edge)
    return ends
