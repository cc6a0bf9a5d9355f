"""Collect a device's events row by row or in runs of rows, in columns of blocks, so that nothing is held twice."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.ingest.pickle_values import NotStreamableError
from advisor.ingest.snapshot_columns import ACTIONS, INTERNAL, LARGEST_ADDRESS, LARGEST_BYTES, Names, frozen
from advisor.ingest.snapshot_stacks import StackTable
from advisor.model.dataclass import dataclass
from advisor.model.snapshot import NOT_RECORDED, Action, EventTable

BLOCK_ROWS = 1 << 16
"""Rows that are allocated at a time: 3 MB."""

DTYPES = {
    "action": np.int8,
    "address": np.int64,
    "size_bytes": np.int64,
    "stream": np.int64,
    "stack": np.int32,
    "time_us": np.int64,
    "category": np.int8,
    "text": np.int32,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event; the fields are those of `EventTable`."""

    action: int
    address: int
    size_bytes: int
    stream: int
    stack: int
    time_us: int
    category: int
    text: int
    device_free_bytes: int

    def values(self) -> tuple[int, ...]:
        """In the order of the columns."""
        return (self.action, self.address, self.size_bytes, self.stream, self.stack, self.time_us, self.category, self.text)


def event_row(event: dict[object, object], stacks: StackTable, categories: Names, texts: Names) -> EventRow:
    """An event as a row of the table, as `snapshot_columns.event_table` reads it.

    Raises:
        NotStreamableError: something is wrong with it, and would have to be left out and counted.
    """
    action = event.get("action")
    if type(action) is not str:
        raise NotStreamableError("an event without an action")
    code = Action.OTHER if event.get(INTERNAL) else ACTIONS.get(action, Action.OTHER)
    size_bytes = _number(event, "size", LARGEST_BYTES)
    if size_bytes == NOT_RECORDED:
        if code is not Action.ANNOTATE:
            raise NotStreamableError("an event without a size")
        size_bytes = 0  # a tag has none of its own
    return EventRow(
        action=int(code),
        address=_number(event, "addr", LARGEST_ADDRESS),
        size_bytes=size_bytes,
        stream=max(0, _number(event, "stream", LARGEST_ADDRESS)),
        stack=stacks.index(event.get("frames")),
        time_us=_number(event, "time_us", LARGEST_ADDRESS),
        category=categories.index(event.get("category")),
        text=texts.index(event.get("user_metadata")),
        device_free_bytes=_number(event, "device_free", LARGEST_BYTES) if code is Action.OOM else NOT_RECORDED,
    )


def _number(event: dict[object, object], key: str, most: int) -> int:
    value = event.get(key)
    if value is None:
        return NOT_RECORDED
    if type(value) is not int or not 0 <= value <= most:
        raise NotStreamableError(f"a value of `{key}` that cannot be")
    return value


class EventRows:
    """The events of one device in their order.

    Attributes:
        count: rows so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._blocks: dict[str, list[NDArray[Any]]] = {name: [] for name in DTYPES}
        self._used = BLOCK_ROWS  # rows of the last block
        self._free: dict[int, int] = {}

    def add(self, row: EventRow) -> None:
        """Append an event."""
        self._grow()
        for blocks, value in zip(self._blocks.values(), row.values(), strict=True):
            blocks[-1][self._used] = value
        if row.device_free_bytes != NOT_RECORDED:
            self._free[self.count] = row.device_free_bytes
        self._used += 1
        self.count += 1

    def extend(self, columns: Sequence[NDArray[Any]]) -> None:
        """Append a run of events, given by its columns in the order of `DTYPES`."""
        length, done = len(columns[0]), 0
        while done < length:
            self._grow()
            taken = min(length - done, BLOCK_ROWS - self._used)
            for blocks, values in zip(self._blocks.values(), columns, strict=True):
                blocks[-1][self._used : self._used + taken] = values[done : done + taken]
            self._used += taken
            self.count += taken
            done += taken

    def table(self) -> EventTable:
        """All events as columns; the rows are given away."""
        columns: dict[str, NDArray[Any]] = {}
        for name, dtype in DTYPES.items():
            blocks = self._blocks.pop(name)
            whole = np.empty(self.count, dtype)
            for number in range(len(blocks)):
                begin = number * BLOCK_ROWS
                whole[begin : begin + BLOCK_ROWS] = blocks[number][: self.count - begin]
            columns[name] = frozen(whole)
        return EventTable(**columns, device_free_bytes=self._free)

    def _grow(self) -> None:
        if self._used == BLOCK_ROWS:
            for name, blocks in self._blocks.items():
                blocks.append(np.empty(BLOCK_ROWS, DTYPES[name]))
            self._used = 0
