"""Turn decoded events into columns, a slice of the file at a time."""

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, repeat
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from advisor.ingest.exact_times import exact_microseconds
from advisor.ingest.kineto_categories import ELEMENT_BYTES
from advisor.ingest.kineto_events import UNKNOWN, Arguments, Event, ExactComplete
from advisor.ingest.kineto_labels import (
    IS_COLLECTIVE,
    IS_JOINED,
    IS_ON_DEVICE,
    IS_OPERATOR,
    Labels,
    Texts,
    looked_up,
)

Column: TypeAlias = npt.NDArray[Any]
Group: TypeAlias = tuple[Column, dict[str, Column]]
"""Where some rows are, and their values by column."""

LONGEST_NS = 4 * 10**18
"""Times beyond this (127 years) are damage; two of them still add up within 64 bits."""

DENSE = {"start_ns": np.int64, "duration_ns": np.int64, "label": np.int32}
"""Columns that every row has."""

SPARSE = {
    "correlation": np.int64,
    "external_id": np.int64,
    "device": np.int16,
    "stream": np.int32,
    "moved_bytes": np.int64,
    "texts": np.int32,
    "sequence": np.int64,
    "forward_thread": np.int64,
}
"""Columns that rows of some categories have; UNKNOWN elsewhere."""

_LARGEST_DEVICE = 4095
_LARGEST_STREAM = 2**31 - 1
_LARGEST_COUNT = 2**50
_DIGITS = re.compile(r"\d{1,10}\Z", re.ASCII)

_LABEL = attrgetter("cat", "name", "pid", "tid")
_TEXTS = attrgetter("shapes", "old_shapes", "types", "inputs")


@dataclass(frozen=True, slots=True)
class Prepared:
    """The columns of one slice."""

    dense: dict[str, Column]
    sparse: list[Group]
    skipped_count: int


class Columns:
    """Grows by slices; every column of a slice is an array, and they are joined once at the end.

    Attributes:
        kind: the struct of the rows, `Complete` or `ExactComplete`.
        row_count: rows so far.
        skipped_count: events left out because their times make no sense.
        unnamed_device_count: rows of device activity that do not say on which device.
        base_microseconds: the start of the first event, whole; all times are stored from there.
        labels / texts: what the codes mean.
    """

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.row_count = 0
        self.skipped_count = 0
        self.unnamed_device_count = 0
        self.base_microseconds: int | None = None
        self.labels = Labels()
        self.texts = Texts()
        self._dense: dict[str, list[Column]] = {name: [] for name in DENSE}
        self._sparse: list[Group] = []

    def prepared(self, events: list[Event]) -> Prepared:
        """The columns of the events with a duration of a slice.

        Raises:
            OverflowError: a number does not fit into 64 bits.
        """
        kind = self.kind
        rows = [event for event in events if event.__class__ is kind]
        start, duration, sound = self._times(rows)
        if not sound.all():
            rows = list(compress(rows, sound.tolist()))
            start, duration = start[sound], duration[sound]
        codes = map(self.labels.__getitem__, map(_LABEL, rows))
        label = np.fromiter(codes, np.int32, len(rows))
        flags = np.frombuffer(bytes(self.labels.flags), np.uint8)[label]
        sparse = [
            self._operators(*_chosen(rows, flags & IS_OPERATOR)),
            self._calls(*_chosen(rows, flags & IS_JOINED)),
            self._devices(*_chosen(rows, flags & IS_ON_DEVICE)),
            self._collectives(*_chosen(rows, flags & IS_COLLECTIVE)),
        ]
        dense = {"start_ns": start, "duration_ns": duration, "label": label}
        return Prepared(dense, sparse, len(sound) - len(rows))

    def append(self, prepared: Prepared) -> None:
        """Take over a slice."""
        for name, values in prepared.dense.items():
            self._dense[name].append(values)
        for where, columns in prepared.sparse:
            self._sparse.append((where + self.row_count, columns))
        self.row_count += len(prepared.dense["start_ns"])
        self.skipped_count += prepared.skipped_count

    def joined(self) -> dict[str, Column]:
        """All columns, whole, by their names in `KinetoTrace`; the slices are given up."""
        whole = {name: _concatenated(self._dense.pop(name), dtype) for name, dtype in DENSE.items()}
        for name, dtype in SPARSE.items():
            whole[name] = column = np.full(self.row_count, UNKNOWN, dtype)
            for where, columns in self._sparse:
                if name in columns:
                    column[where] = columns.pop(name)
        label, texts = whole.pop("label"), whole.pop("texts")
        return {
            **whole,
            "name": looked_up(self.labels.name, label),
            "thread": looked_up(self.labels.thread, label),
            "category": np.frombuffer(bytes(self.labels.category), np.uint8)[label],
            "shapes": looked_up(self.texts.shape, texts),
            "types": looked_up(self.texts.type, texts),
            "inputs": looked_up(self.texts.input, texts),
        }

    def _times(self, rows: list[Event]) -> tuple[Column, Column, Column]:
        """Starts and durations in nanoseconds, and which rows have sensible ones."""
        if not rows:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool)
        fraction_ns: Column | int = 0
        if self.kind is ExactComplete:
            whole, fraction_ns = exact_microseconds([row.ts for row in rows])
        else:
            whole = np.array([row.ts for row in rows], np.float64)
        if self.base_microseconds is None:
            finite = whole[np.isfinite(whole)]
            self.base_microseconds = int(finite[0]) if len(finite) else 0
        start_ns = (whole - self.base_microseconds) * 1000 + fraction_ns
        duration_ns = np.array([row.dur for row in rows]) * 1000
        sound = (np.abs(start_ns) <= LONGEST_NS) & (duration_ns >= 0) & (duration_ns <= LONGEST_NS)
        start_ns[~sound] = duration_ns[~sound] = 0
        return np.rint(start_ns).astype(np.int64), np.rint(duration_ns).astype(np.int64), sound

    def _operators(self, where: Column, rows: list[Event]) -> Group:
        arguments = [row.args for row in rows]
        keys = map(Texts.SEPARATOR.join, map(_TEXTS, arguments))
        codes = map(self.texts.__getitem__, keys)
        columns = {name: _column(arguments, name) for name in ("external_id", "sequence", "forward_thread")}
        return where, {**columns, "texts": np.fromiter(codes, np.int32, len(arguments))}

    def _calls(self, where: Column, rows: list[Event]) -> Group:
        arguments = [row.args for row in rows]
        external = _column(arguments, "external_id")
        if (external == UNKNOWN).any():
            external = np.maximum(external, _column(arguments, "old_external_id"))
        return where, {
            "correlation": _column(arguments, "correlation"),
            "external_id": external,
        }

    def _devices(self, where: Column, rows: list[Event]) -> Group:
        arguments = [row.args for row in rows]
        device = _numbers(_LARGEST_DEVICE, arguments, "device", rows, "pid")
        self.unnamed_device_count += int((device == UNKNOWN).sum())
        stream = _numbers(_LARGEST_STREAM, arguments, "stream", rows, "tid")
        return where, {
            "device": np.maximum(device, 0).astype(np.int16),
            "stream": stream.astype(np.int32),
            "moved_bytes": _numbers(LONGEST_NS, arguments, "bytes", [], ""),
        }

    def _collectives(self, where: Column, rows: list[Event]) -> Group:
        """What this rank sends: elements times their size, where both are recorded."""
        sent = [
            item.sent_count * ELEMENT_BYTES[item.dtype]
            if item.dtype in ELEMENT_BYTES and 0 <= item.sent_count <= _LARGEST_COUNT
            else UNKNOWN
            for item in (row.args for row in rows)
        ]
        return where, {"moved_bytes": np.array(sent, np.int64)}


def _chosen(rows: list[Event], flags: Column) -> tuple[Column, list[Event]]:
    return np.flatnonzero(flags), list(compress(rows, flags.tolist()))


def _column(arguments: list[Arguments], field: str) -> Column:
    return np.fromiter(map(attrgetter(field), arguments), np.int64, len(arguments))


def _numbers(largest: int, arguments: list[Arguments], field: str, rows: list[Event], fallback: str) -> Column:
    """A field; where it is no number, the digits that it or the fallback ends in."""
    values = list(map(attrgetter(field), arguments))
    with suppress(TypeError, ValueError):
        column = np.fromiter(values, np.int64, len(values))
        if not rows or (column.min() >= 0 and column.max() <= largest):
            return column
    others = map(attrgetter(fallback), rows) if rows else repeat(UNKNOWN)
    found = (_first_number(largest, *pair) for pair in zip(values, others, strict=False))
    return np.fromiter(found, np.int64, len(values))


def _first_number(largest: int, *candidates: object) -> int:
    """The first that is, or ends in, a number within 0 and `largest`; UNKNOWN without one."""
    for candidate in candidates:
        digits = _DIGITS.search(candidate) if isinstance(candidate, str) else None
        number = int(digits.group()) if digits else candidate
        if isinstance(number, int) and 0 <= number <= largest:
            return number
    return UNKNOWN


def _concatenated(parts: list[Column], dtype: npt.DTypeLike) -> Column:
    whole = np.empty(sum(map(len, parts)), dtype)
    at = 0
    for part in parts:
        whole[at : at + len(part)] = part
        at += len(part)
    return whole
