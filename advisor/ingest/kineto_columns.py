"""Turn decoded events into columns, a slice of the file at a time."""

import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress, repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

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
Values: TypeAlias = Sequence[Any]
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

LARGEST_DEVICE = 4095
"""More devices than any node has: a larger number is a process, not a device."""

LARGEST_STREAM = 2**31 - 1

LARGEST_COUNT = 2**50
"""Elements of a collective whose size in bytes still fits into 64 bits."""

_DIGITS = re.compile(r"\d{1,10}\Z", re.ASCII)


class Prepared(NamedTuple):
    """The columns of one slice."""

    dense: dict[str, Column]
    sparse: list[Group]
    skipped_count: int


class _Chosen:
    """The arguments of some rows of a slice, and where they are."""

    def __init__(self, flags: Column, arguments: tuple[Arguments, ...], pids: Values, tids: Values) -> None:
        self.where = np.flatnonzero(flags)
        self.arguments = list(map(arguments.__getitem__, self.where.tolist()))
        self.pids, self.tids = pids, tids

    def column(self, field: str) -> Column:
        """A field that is a whole number."""
        return _column(list(map(attrgetter(field), self.arguments)))

    def numbers(self, field: str, fallback: Values | None, largest: int) -> Column:
        """A field; where it is no number within 0 and `largest`, the digits that it or the fallback ends in."""
        values = list(map(attrgetter(field), self.arguments))
        with suppress(TypeError, ValueError):
            column = _column(values)
            if fallback is None or (column.min() >= 0 and column.max() <= largest):
                return column
        others = repeat(UNKNOWN) if fallback is None else map(fallback.__getitem__, self.where.tolist())
        return _column([_first_number(largest, *pair) for pair in zip(values, others, strict=False)])


def _first_number(largest: int, *candidates: object) -> int:
    """The first that is, or ends in, a number within 0 and `largest`; UNKNOWN without one."""
    for candidate in candidates:
        digits = _DIGITS.search(candidate) if isinstance(candidate, str) else None
        number = int(digits.group()) if digits else candidate
        if isinstance(number, int) and 0 <= number <= largest:
            return number
    return UNKNOWN


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
        rows: list[Any] = [event for event in events if event.__class__ is kind]
        if not rows:
            return Prepared({name: np.empty(0, dtype) for name, dtype in DENSE.items()}, [], 0)
        # Turned into columns at once: a look-up of each field of each event takes twice as long.
        fields = list(zip(*map(astuple, rows), strict=True))
        start, duration, sound = self._times(fields[0], fields[5])
        if not sound.all():
            fields = [tuple(compress(column, sound.tolist())) for column in fields]
            start, duration = start[sound], duration[sound]
        _, name, category, pid, tid, _, arguments = fields
        count = len(arguments)
        label = np.fromiter(map(self.labels.__getitem__, zip(category, name, pid, tid, strict=True)), np.int32, count)
        flags = np.frombuffer(bytes(self.labels.flags), np.uint8)[label]
        groups = [
            self._operators(_Chosen(flags & IS_OPERATOR, arguments, pid, tid)),
            self._calls(_Chosen(flags & IS_JOINED, arguments, pid, tid)),
            self._devices(_Chosen(flags & IS_ON_DEVICE, arguments, pid, tid)),
            self._collectives(_Chosen(flags & IS_COLLECTIVE, arguments, pid, tid)),
        ]
        dense = {"start_ns": start, "duration_ns": duration, "label": label}
        return Prepared(dense, [group for group in groups if group], len(sound) - count)

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

    def _times(self, starts: Values, durations: Values) -> tuple[Column, Column, Column]:
        """Starts and durations in nanoseconds, and which rows have sensible ones."""
        fraction_ns: Column | int = 0
        if self.kind is ExactComplete:
            whole, fraction_ns = exact_microseconds(starts)
        else:
            whole = np.fromiter(starts, np.float64, len(starts))
        if self.base_microseconds is None:
            finite = whole[np.isfinite(whole)]
            self.base_microseconds = int(finite[0]) if len(finite) else 0
        start_ns = (whole - self.base_microseconds) * 1000 + fraction_ns
        duration_ns = np.fromiter(durations, np.float64, len(durations)) * 1000
        sound = (np.abs(start_ns) <= LONGEST_NS) & (duration_ns >= 0) & (duration_ns <= LONGEST_NS)
        start_ns[~sound] = duration_ns[~sound] = 0
        return np.rint(start_ns).astype(np.int64), np.rint(duration_ns).astype(np.int64), sound

    def _operators(self, chosen: _Chosen) -> Group | None:
        if not chosen.arguments:
            return None
        external, _, _, _, _, _, *texts, sequence, forward, _, _ = zip(*map(astuple, chosen.arguments), strict=True)
        joined = map(Texts.SEPARATOR.join, zip(*texts, strict=True))
        return chosen.where, {
            "external_id": _column(external),
            "sequence": _column(sequence),
            "forward_thread": _column(forward),
            "texts": np.fromiter(map(self.texts.__getitem__, joined), np.int32, len(external)),
        }

    def _calls(self, chosen: _Chosen) -> Group | None:
        if not chosen.arguments:
            return None
        external = chosen.column("external_id")
        if (external == UNKNOWN).any():
            external = np.maximum(external, chosen.column("old_external_id"))
        return chosen.where, {"correlation": chosen.column("correlation"), "external_id": external}

    def _devices(self, chosen: _Chosen) -> Group | None:
        if not chosen.arguments:
            return None
        device = chosen.numbers("device", chosen.pids, LARGEST_DEVICE)
        self.unnamed_device_count += int((device == UNKNOWN).sum())
        return chosen.where, {
            "device": np.maximum(device, 0).astype(np.int16),
            "stream": chosen.numbers("stream", chosen.tids, LARGEST_STREAM).astype(np.int32),
            "moved_bytes": chosen.numbers("bytes", None, LONGEST_NS),
        }

    def _collectives(self, chosen: _Chosen) -> Group | None:
        """What this rank sends: elements times their size, where both are recorded."""
        if not chosen.arguments:
            return None
        sent = [
            item.sent_count * ELEMENT_BYTES[item.dtype]
            if item.dtype in ELEMENT_BYTES and 0 <= item.sent_count <= LARGEST_COUNT
            else UNKNOWN
            for item in chosen.arguments
        ]
        return chosen.where, {"moved_bytes": _column(sent)}


def _column(values: Values) -> Column:
    return np.fromiter(values, np.int64, len(values))


def _concatenated(parts: list[Column], dtype: npt.DTypeLike) -> Column:
    whole = np.empty(sum(map(len, parts)), dtype)
    at = 0
    for part in parts:
        whole[at : at + len(part)] = part
        at += len(part)
    return whole
