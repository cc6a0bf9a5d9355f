"""Turn decoded events into columns, a slice of the file at a time."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import compress, repeat
from operator import attrgetter, is_
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from advisor.ingest.exact_times import exact_microseconds
from advisor.ingest.kineto_categories import ELEMENT_BYTES
from advisor.ingest.kineto_events import NO_TEXT, UNKNOWN, Event, ExactComplete, part_of_arguments
from advisor.ingest.kineto_labels import (
    IS_CALL,
    IS_COLLECTIVE,
    IS_ON_DEVICE,
    IS_OPERATOR,
    Labels,
    Texts,
    looked_up,
)
from advisor.ingest.kineto_line_labels import LineLabels
from advisor.ingest.kineto_lines import Lines
from advisor.ingest.kineto_templates import Matched, Templates

Column: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = Sequence[Any]
Group: TypeAlias = tuple[Column, dict[str, Column]]
"""Where some rows are, and their values by column."""

Times: TypeAlias = tuple[Column, Column, Column]
Decoder: TypeAlias = "msgspec.json.Decoder[list[Any]]"

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

OPERATOR_TEXTS = ("shapes", "old_shapes", "types", "inputs")

OPERATOR_ARGUMENTS = part_of_arguments("external_id", "inputs", "types", "shapes", "old_shapes", "forward_thread", "sequence")
CALL_ARGUMENTS = part_of_arguments("external_id", "correlation", "old_external_id")
DEVICE_ARGUMENTS = part_of_arguments("external_id", "device", "stream", "correlation", "bytes", "old_external_id")
COLLECTIVE_ARGUMENTS = part_of_arguments("sent_count", "dtype")

_DIGITS = re.compile(r"\d{1,10}\Z", re.ASCII)


Choose: TypeAlias = Callable[[int, Decoder], "_Chosen"]
"""The arguments of the rows whose labels have a flag."""


class Prepared(NamedTuple):
    """The columns of one slice."""

    dense: dict[str, Column]
    sparse: list[Group]
    skipped_count: int


class _Chosen:
    """The arguments of some rows of a slice, and where they are."""

    def __init__(self, where: Column, arguments: list[Any], label: Column, labels: Labels) -> None:
        self.where = where
        self.arguments = arguments
        self._label, self._labels = label, labels

    def column(self, field: str) -> Column:
        """A field that is a whole number."""
        return _column(list(map(attrgetter(field), self.arguments)))

    def numbers(self, field: str, fallback: str, largest: int) -> Column:
        """A field; where it is no number within 0 and `largest`, the digits that it ends in, or else "pid" or "tid" as `fallback` says."""
        values = list(map(attrgetter(field), self.arguments))
        with suppress(TypeError, ValueError):
            column = _column(values)
            if not fallback or (column.min() >= 0 and column.max() <= largest):
                return column
        threads = list(self._labels.threads)
        of_rows = [threads[self._labels.thread[code]] for code in self._label[self.where].tolist()] if fallback else []
        others = [thread[fallback == "tid"] for thread in of_rows] or repeat(UNKNOWN)
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
        self.line_labels = LineLabels(self.labels)
        self.texts = Texts()
        self.operator_templates = Templates(OPERATOR_ARGUMENTS)
        self.call_templates = Templates(CALL_ARGUMENTS)
        self._middle_texts: list[int] = []
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

        def chosen(flag: int, _: object) -> _Chosen:
            where = np.flatnonzero(self._flags(label) & flag)
            return _Chosen(where, list(map(arguments.__getitem__, where.tolist())), label, self.labels)

        return self._prepared(start, duration, label, chosen, len(sound) - count)

    def prepared_lines(self, lines: Lines) -> Prepared | None:
        """The same for a slice in Kineto's own layout; None where a time makes no sense.

        Raises:
            ValueError: what should be JSON is none, or a value has not the type that it should have.
            OverflowError: a number does not fit into 64 bits.
        """
        start, duration, sound = self._nanoseconds(
            lines.starts.whole.astype(np.float64), lines.starts.thousandths, lines.durations.as_floats()
        )
        if not sound.all():
            return None
        label = self.line_labels.codes(lines.text, lines.label_starts, lines.label_ends)

        flags = self._flags(label)
        groups = []
        for flag, templates, columns_of in (
            (IS_OPERATOR, self.operator_templates, self._operator_columns),
            (IS_CALL, self.call_templates, _call_columns),
        ):
            where = np.flatnonzero(flags & flag)
            found, left = templates.matched(lines.text, lines.argument_starts[where], lines.argument_ends[where])
            groups += [(where[matched.rows], columns_of(matched)) for matched in found]
            flags[where] &= ~np.uint8(flag)
            flags[where[left]] |= np.uint8(flag)

        def chosen(flag: int, decoder: Decoder) -> _Chosen:
            where = np.flatnonzero(flags & flag)
            arguments = decoder.decode(lines.arguments_of(where)) if len(where) else []
            if len(arguments) != len(where):
                raise ValueError(lines.arguments_of(where))
            return _Chosen(where, arguments, label, self.labels)

        prepared = self._prepared(start, duration, label, chosen, 0)
        return prepared._replace(sparse=groups + prepared.sparse)

    def _operator_columns(self, matched: Matched) -> dict[str, Column]:
        columns = dict(matched.numbers)
        decoded = self.operator_templates.middles.decoded
        for item in decoded[len(self._middle_texts) :]:
            shapes = item.old_shapes if item.shapes is NO_TEXT else item.shapes
            self._middle_texts.append(self.texts[Texts.SEPARATOR.join((shapes, item.types, item.inputs))])
        if (matched.middles >= 0).any():
            columns["texts"] = np.array([*self._middle_texts, UNKNOWN], np.int32)[matched.middles]
        return columns

    def _flags(self, label: Column) -> Column:
        flags: Column = np.frombuffer(bytes(self.labels.flags), np.uint8)[label]
        return flags

    def _prepared(self, start: Column, duration: Column, label: Column, chosen: Choose, skipped_count: int) -> Prepared:
        groups = [
            self._operators(chosen(IS_OPERATOR, OPERATOR_ARGUMENTS)),
            self._calls(chosen(IS_CALL, CALL_ARGUMENTS)),
            self._devices(chosen(IS_ON_DEVICE, DEVICE_ARGUMENTS)),
            self._collectives(chosen(IS_COLLECTIVE, COLLECTIVE_ARGUMENTS)),
        ]
        dense = {"start_ns": start, "duration_ns": duration, "label": label}
        return Prepared(dense, [group for group in groups if group], skipped_count)

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

    def _times(self, starts: Values, durations: Values) -> Times:
        if self.kind is ExactComplete:
            whole, fraction_ns = exact_microseconds(starts)
        else:
            whole, fraction_ns = np.fromiter(starts, np.float64, len(starts)), np.zeros(1)
        return self._nanoseconds(whole, fraction_ns, np.fromiter(durations, np.float64, len(durations)))

    def _nanoseconds(self, starts: Column, fractions_ns: Column, durations: Column) -> Times:
        """Starts and durations in nanoseconds, and which rows have sensible ones."""
        if self.base_microseconds is None:
            finite = starts[np.isfinite(starts)]
            self.base_microseconds = int(finite[0]) if len(finite) else 0
        start_ns = (starts - self.base_microseconds) * 1000 + fractions_ns
        duration_ns = durations * 1000
        sound = (np.abs(start_ns) <= LONGEST_NS) & (duration_ns >= 0) & (duration_ns <= LONGEST_NS)
        start_ns[~sound] = duration_ns[~sound] = 0
        return np.rint(start_ns).astype(np.int64), np.rint(duration_ns).astype(np.int64), sound

    def _operators(self, chosen: _Chosen) -> Group | None:
        if not chosen.arguments:
            return None
        columns = {name: chosen.column(name) for name in ("external_id", "sequence", "forward_thread")}
        shapes, old_shapes, types, inputs = (list(map(attrgetter(name), chosen.arguments)) for name in OPERATOR_TEXTS)
        if not _are_none(old_shapes):
            shapes = [old if new is NO_TEXT else new for new, old in zip(shapes, old_shapes, strict=True)]
        if not (_are_none(shapes) and _are_none(types) and _are_none(inputs)):
            joined = map(Texts.SEPARATOR.join, zip(shapes, types, inputs, strict=True))
            columns["texts"] = np.fromiter(map(self.texts.__getitem__, joined), np.int32, len(shapes))
        return chosen.where, columns

    def _calls(self, chosen: _Chosen) -> Group | None:
        return (chosen.where, _joins(chosen)) if chosen.arguments else None

    def _devices(self, chosen: _Chosen) -> Group | None:
        if not chosen.arguments:
            return None
        device = chosen.numbers("device", "pid", LARGEST_DEVICE)
        self.unnamed_device_count += int((device == UNKNOWN).sum())
        return chosen.where, {
            **_joins(chosen),
            "device": np.maximum(device, 0).astype(np.int16),
            "stream": chosen.numbers("stream", "tid", LARGEST_STREAM).astype(np.int32),
            "moved_bytes": chosen.numbers("bytes", "", LONGEST_NS),
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


def _call_columns(matched: Matched) -> dict[str, Column]:
    columns = dict(matched.numbers)
    old = columns.pop("old_external_id", None)
    return columns if old is None else {"external_id": old, **columns}


def _joins(chosen: _Chosen) -> dict[str, Column]:
    """What joins device activity with its launch, and both with operators."""
    external = chosen.column("external_id")
    if (external == UNKNOWN).any():
        external = np.maximum(external, chosen.column("old_external_id"))
    return {"correlation": chosen.column("correlation"), "external_id": external}


def _are_none(texts: list[Any]) -> bool:
    return all(map(is_, texts, repeat(NO_TEXT)))


def _column(values: Values) -> Column:
    return np.fromiter(values, np.int64, len(values))


def _concatenated(parts: list[Column], dtype: npt.DTypeLike) -> Column:
    whole = np.empty(sum(map(len, parts)), dtype)
    at = 0
    for part in parts:
        whole[at : at + len(part)] = part
        at += len(part)
    return whole
