"""Columns of the "[memory]" marks that `profile_memory` leaves."""

from operator import attrgetter
from typing import TypeAlias

import numpy as np

from advisor.ingest.kineto_columns import LONGEST_NS, Column
from advisor.ingest.kineto_events import Event, Mark

ALLOCATION = "[memory]"
OUT_OF_MEMORY = "[OutOfMemory]"

NAMES = (
    "memory_device",
    "memory_delta_bytes",
    "memory_allocated_bytes",
    "memory_reserved_bytes",
)
"""Columns besides the time, named as in `KinetoTrace`."""

FIELDS = ("device", "delta_bytes", "allocated_bytes", "reserved_bytes")
"""The same as fields of a mark's arguments."""

_LARGEST_DEVICE = 4095

Slice: TypeAlias = tuple[Column, ...]
"""Times in microseconds, then NAMES."""


class Marks:
    """Grows by slices.

    Attributes:
        out_of_memory_count: "[OutOfMemory]" marks.
    """

    def __init__(self) -> None:
        self.out_of_memory_count = 0
        self._slices: list[Slice] = []

    def append(self, marks: list[Mark]) -> None:
        """Take over the marks of a slice.

        Raises:
            OverflowError: a number does not fit into 64 bits; nothing has been taken over.
        """
        allocations = [mark for mark in marks if mark.name == ALLOCATION]
        count = len(allocations)
        arguments = [mark.args for mark in allocations]
        self._slices.append(
            (
                np.fromiter(map(attrgetter("ts"), allocations), np.float64, count),
                *(np.fromiter(map(attrgetter(name), arguments), np.int64, count) for name in FIELDS),
            )
        )
        self.out_of_memory_count += sum(mark.name == OUT_OF_MEMORY for mark in marks)

    def joined(self, base_microseconds: int) -> dict[str, Column]:
        """All columns, whole, by their names in `KinetoTrace`; times from the base on."""
        empty: Slice = (np.empty(0), *(np.empty(0, np.int64) for _ in NAMES))
        times, *others = (np.concatenate(parts) for parts in zip(empty, *self._slices, strict=True))
        time_ns = (times - base_microseconds) * 1000
        sound = (np.abs(time_ns) <= LONGEST_NS) & (np.abs(others[0]) <= _LARGEST_DEVICE)
        columns = {name: other[sound] for name, other in zip(NAMES, others, strict=True)}
        columns["memory_device"] = columns["memory_device"].astype(np.int16)
        return {"memory_time_ns": np.rint(time_ns[sound]).astype(np.int64), **columns}


def marks_of(events: list[Event]) -> list[Mark]:
    """The instants among a slice's events."""
    return [event for event in events if event.__class__ is Mark]
