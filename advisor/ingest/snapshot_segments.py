"""Turn the segments and blocks of an untrusted snapshot into columns, one pair of tables a device."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from advisor.ingest.snapshot_columns import (
    LARGEST_ADDRESS,
    LARGEST_BYTES,
    entries_of,
    frozen,
    whole,
)
from advisor.ingest.snapshot_stacks import StackTable
from advisor.model.dataclass import dataclass, field
from advisor.model.snapshot import NOT_RECORDED, BlockState, BlockTable, SegmentTable

LARGEST_DEVICE_INDEX = 1023
"""No machine has as many devices; a larger ordinal is damage."""

STATES = {
    "active_allocated": BlockState.ALLOCATED,
    "active_pending_free": BlockState.PENDING_FREE,
    "active_awaiting_free": BlockState.PENDING_FREE,
    "inactive": BlockState.INACTIVE,
}
"""The documentation says `active_awaiting_free`; the code writes `active_pending_free`."""

Row = tuple[int, ...]


@dataclass(slots=True)
class DeviceRows:
    """Segments and blocks of one device as they are read."""

    segments: list[Row] = field(default_factory=list)
    blocks: list[Row] = field(default_factory=list)
    pools: dict[tuple[int, int], int] = field(default_factory=lambda: {(0, 0): 0})

    def segment_table(self) -> SegmentTable:
        """The segments as columns."""
        address, size, stream, pool, is_small, is_expandable = _columns(self.segments, 6)
        return SegmentTable(
            address=frozen(address),
            size_bytes=frozen(size),
            stream=frozen(stream),
            pool=frozen(pool.astype(np.int32)),
            is_small=frozen(is_small.astype(np.bool_)),
            is_expandable=frozen(is_expandable.astype(np.bool_)),
        )

    def block_table(self) -> BlockTable:
        """The blocks as columns."""
        segment, address, size, requested, state, stack = _columns(self.blocks, 6)
        return BlockTable(
            segment=frozen(segment.astype(np.int32)),
            address=frozen(address),
            size_bytes=frozen(size),
            requested_bytes=frozen(requested),
            state=frozen(state.astype(np.int8)),
            stack=frozen(stack.astype(np.int32)),
        )


def device_rows(values: object, stacks: StackTable, problems: Counter[str]) -> dict[int, DeviceRows]:
    """The rows of every device that has a segment; what cannot be is left out and counted."""
    devices: dict[int, DeviceRows] = {}
    for segment in entries_of(values, "segments", problems):
        index = whole(segment.get("device", 0), LARGEST_DEVICE_INDEX)
        address = whole(segment.get("address"), LARGEST_ADDRESS)
        size = whole(segment.get("total_size"), LARGEST_BYTES)
        if NOT_RECORDED in (index, address, size):
            problems["segments without a device, an address or a size"] += 1
            continue
        rows = devices.setdefault(index, DeviceRows())
        blocks = _block_rows(segment, len(rows.segments), address, stacks, problems)
        covered = sum(row[2] for row in blocks)
        if covered > size:
            problems["segments smaller than their blocks"] += 1
            size = covered
        pool = rows.pools.setdefault(_pool_id(segment.get("segment_pool_id")), len(rows.pools))
        rows.segments.append(
            (
                address,
                size,
                max(0, whole(segment.get("stream"), LARGEST_ADDRESS)),
                pool,
                segment.get("segment_type") == "small",
                segment.get("is_expandable") is True,
            )
        )
        rows.blocks.extend(blocks)
    return devices


def _block_rows(segment: dict[str, object], number: int, start: int, stacks: StackTable, problems: Counter[str]) -> list[Row]:
    rows: list[Row] = []
    address = start
    blocks = segment.get("blocks")
    stacks.budget.spend(len(blocks) if type(blocks) is list else 0)
    for block in entries_of(blocks, "lists of blocks", problems):
        size = whole(block.get("size"), LARGEST_BYTES)
        state = block.get("state")
        code = STATES.get(state) if type(state) is str else None
        if size == NOT_RECORDED or code is None or address > LARGEST_ADDRESS - LARGEST_BYTES:
            problems["blocks without a size or a known state"] += 1
            continue
        own = whole(block.get("address"), LARGEST_ADDRESS - LARGEST_BYTES)
        address = own if own != NOT_RECORDED else address
        requested, stack = whole(block.get("requested_size"), LARGEST_BYTES), NOT_RECORDED
        if code is not BlockState.INACTIVE:
            stack, requested = _live_use(block, requested, stacks, problems)
        if requested > size or code is BlockState.INACTIVE:
            requested = NOT_RECORDED
        rows.append((number, address, size, requested, int(code), stack))
        address += size
    return rows


def _live_use(block: dict[str, object], requested: int, stacks: StackTable, problems: Counter[str]) -> tuple[int, int]:
    """The stack and requested size of a live block: its own, or those of the newest entry of its `history` (torch 2.0)."""
    if "frames" in block or "history" not in block:
        frames = block.get("frames")
        # An empty list is also what a block from before the recording has, so it says nothing of the thread.
        return (stacks.index(frames) if frames else NOT_RECORDED), requested
    history = block.get("history")
    stacks.budget.spend(len(history) if type(history) is list else 0)
    history = entries_of(history, "histories of blocks", problems)
    if not history:
        return NOT_RECORDED, requested
    newest = history[0]
    real = whole(newest.get("real_size"), LARGEST_BYTES)
    frames = newest.get("frames")
    return (stacks.index(frames) if frames else NOT_RECORDED), (real if real != NOT_RECORDED else requested)


def _pool_id(value: object) -> tuple[int, int]:
    if type(value) in (tuple, list):
        parts = list(value)  # type: ignore[call-overload] # checked in the line above
        if len(parts) == 2 and all(type(part) is int and 0 <= part < 1 << 63 for part in parts):  # noqa: PLR2004 - a pair
            return (parts[0], parts[1])
    return (0, 0)


def _columns(rows: list[Row], width: int) -> NDArray[np.int64]:
    columns: NDArray[np.int64] = np.array(rows, np.int64).reshape(len(rows), width).T.copy()
    return columns
