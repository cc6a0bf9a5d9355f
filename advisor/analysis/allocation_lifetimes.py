"""Pair the allocations of a record with their frees, and with the blocks that are live at the dump."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from advisor.model.dataclass import dataclass
from advisor.model.snapshot import NOT_RECORDED, Action, BlockState, DeviceSnapshot

Rows = NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class Lifetimes:
    """Every use of a block that some moment of the record or the dump saw.

    Moments are numbered by events: moment m is the state just after event m, -1 the state before the first, and `event_count` (n) the
    dump. A use is live at m if start <= m < end.

    Attributes:
        event_count: n.
        address: of its first byte.
        requested_bytes: as asked for; NOT_RECORDED where unknown.
        block_bytes: exact, from the dump; 0 where it has to be computed.
        start: event that made it; -1 before the record, n after it.
        freed: event that gave it back; -1 where that happened before the record, n between record and dump, n + 1 where it has not.
        end: event from which its memory could be used again, the same way; later than `freed` while another stream holds it.
        stack / category / text: of its allocation.
        free_stack: of the event that gave it back.
        problems: what did not fit together, counted.
    """

    event_count: int
    address: Rows
    requested_bytes: Rows
    block_bytes: Rows
    start: Rows
    freed: Rows
    end: Rows
    stack: Rows
    category: Rows
    text: Rows
    free_stack: Rows
    problems: Counter[str]


def lifetimes(device: DeviceSnapshot) -> Lifetimes:
    """The lifetimes on one device, by address and then by time; uses seen only in the dump stand at the end."""
    uses, is_last, skips_requests = _recorded(device)
    _match_blocks(device, uses, is_last, skips_requests=skips_requests)
    return uses


def _recorded(device: DeviceSnapshot) -> tuple[Lifetimes, NDArray[np.bool_], bool]:
    """The uses that events tell of; which are the last at their address; and whether the history leaves `free_requested` out."""
    events = device.events
    n = len(events)
    never = n + 1
    rows = np.flatnonzero((events.action <= Action.FREE_COMPLETED) & (events.address >= 0))
    rows = rows[np.argsort(events.address[rows], kind="stable")]
    action, address = events.action[rows], events.address[rows]
    opens = (action == Action.ALLOC) | np.append(True, address[1:] != address[:-1])[: len(rows)]
    heads = np.flatnonzero(opens)
    first = rows[heads]
    is_alloc = action[heads] == Action.ALLOC
    if len(heads):
        requested = np.minimum.reduceat(np.where(action == Action.FREE_REQUESTED, rows, never), heads)
        completed = np.minimum.reduceat(np.where(action == Action.FREE_COMPLETED, rows, never), heads)
    else:
        requested = completed = np.zeros(0, np.int64)
    problems: Counter[str] = Counter()
    is_last = np.append(address[heads][1:] != address[heads][:-1], True)[: len(heads)]
    if not (action == Action.FREE_COMPLETED).any():
        # The history was told to skip them; only what the dump shows to be waiting still waits.
        waiting = device.blocks.address[device.blocks.state == BlockState.PENDING_FREE]
        completed = np.where(is_last & np.isin(address[heads], waiting), never, requested)
    freed, end = np.minimum(requested, completed), completed
    following = np.where(is_last, never, np.append(first[1:], never)[: len(heads)])
    problems["allocations at an address that was not seen freed"] = int(((freed == never) & (following < never)).sum())
    freed, end = np.minimum(freed, following), np.minimum(end, following)
    skips_requests = bool((is_alloc & (requested == never) & (completed < never)).any())
    if not skips_requests:
        freed[~is_alloc & (action[heads] == Action.FREE_COMPLETED)] = -1  # it waited for another stream when the record began
    gave_back = np.where((freed >= 0) & (freed < n), freed, 0)
    if n:
        sees_free = (freed >= 0) & (freed < n) & np.isin(events.action[gave_back], (Action.FREE_REQUESTED, Action.FREE_COMPLETED))
        free_stack = np.where(sees_free, events.stack[gave_back], NOT_RECORDED)
    else:
        free_stack = np.zeros(0, np.int64)
    uses = Lifetimes(
        event_count=n,
        address=address[heads],
        requested_bytes=events.size_bytes[first],
        block_bytes=np.zeros(len(heads), np.int64),
        start=np.where(is_alloc, first, -1),
        freed=freed,
        end=end,
        stack=np.where(is_alloc, events.stack[first], NOT_RECORDED).astype(np.int64),
        category=events.category[first].astype(np.int64),
        text=np.where(is_alloc, events.text[first], NOT_RECORDED).astype(np.int64),
        free_stack=free_stack.astype(np.int64),
        problems=problems,
    )
    return uses, is_last, skips_requests


def _match_blocks(device: DeviceSnapshot, uses: Lifetimes, is_last: NDArray[np.bool_], *, skips_requests: bool) -> None:
    """Give the exact size to uses that are live at the dump, end the others, and add the uses that only the dump knows."""
    n = uses.event_count
    blocks = device.blocks
    live = np.flatnonzero(blocks.state != BlockState.INACTIVE)
    live = live[np.argsort(blocks.address[live], kind="stable")]
    live = live[np.append(True, np.diff(blocks.address[live]) != 0)[: len(live)]]
    is_allocated = blocks.state[live] == BlockState.ALLOCATED
    open_uses = np.flatnonzero(is_last & (uses.end == n + 1))
    at = np.searchsorted(blocks.address[live], uses.address[open_uses])
    at_safe = np.minimum(at, max(0, len(live) - 1))
    found = (at < len(live)) & (blocks.address[live][at_safe] == uses.address[open_uses]) if len(live) else np.zeros(len(at), np.bool_)
    if len(live):
        # Given back within the record, yet allocated at the dump: that is a later use which was not recorded.
        found &= ~((uses.freed[open_uses] < n) & is_allocated[at_safe])
    lost = open_uses[~found]
    uses.end[lost] = n
    uses.freed[lost] = np.minimum(uses.freed[lost], n)
    uses.problems["blocks freed after the record ended"] = len(lost)
    matched, block = open_uses[found], at[found]
    uses.block_bytes[matched] = blocks.size_bytes[live][block]
    pending = matched[~is_allocated[block]]
    uses.freed[pending] = np.minimum(uses.freed[pending], n)
    known = blocks.requested_bytes[live][block]
    uses.requested_bytes[matched] = np.where(known >= 0, known, uses.requested_bytes[matched])
    rest = np.ones(len(live), np.bool_)
    rest[block] = False
    _append_unrecorded(device, uses, live[rest], skips_requests=skips_requests)


def _append_unrecorded(device: DeviceSnapshot, uses: Lifetimes, rows: Rows, *, skips_requests: bool) -> None:
    n = uses.event_count
    blocks = device.blocks
    address, size = blocks.address[rows], blocks.size_bytes[rows]
    # A block whose bytes the record saw in another use cannot be older than the record.
    is_younger = _overlaps(uses, address, size)
    uses.problems["blocks allocated after the record ended"] = int(is_younger.sum())
    is_pending = blocks.state[rows] == BlockState.PENDING_FREE
    # The record would have seen it given back, unless it was told to skip that.
    given_back = np.where(is_younger | skips_requests, n, -1)
    missing = np.full(len(rows), NOT_RECORDED, np.int64)
    added = {
        "address": address,
        "requested_bytes": blocks.requested_bytes[rows],
        "block_bytes": size,
        "start": np.where(is_younger, n, -1),
        "freed": np.where(is_pending, given_back, n + 1),
        "end": np.full(len(rows), n + 1, np.int64),
        "stack": blocks.stack[rows].astype(np.int64),
        "category": missing,
        "text": missing,
        "free_stack": missing,
    }
    for name, column in added.items():
        setattr(uses, name, np.concatenate([getattr(uses, name), column]))


def _overlaps(uses: Lifetimes, address: Rows, size: Rows) -> NDArray[np.bool_]:
    if not len(uses.address):
        return np.zeros(len(address), np.bool_)
    begins = uses.address  # sorted
    reach = np.maximum.accumulate(begins + np.maximum(uses.requested_bytes, 1))
    before = np.searchsorted(begins, address + size, "left")
    return (before > 0) & (reach[np.maximum(before - 1, 0)] > address)
