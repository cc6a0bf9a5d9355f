"""Read a torch.profiler (Kineto) trace: plain or compressed, object or bare list, any age."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from advisor.ingest.decompress import decompressed
from advisor.ingest.kineto_columns import Column, Columns
from advisor.ingest.kineto_events import MARKS, Begin, Event, decoder, struct_for
from advisor.ingest.kineto_header import (
    RECORD,
    log_lines,
    open_trace,
    options,
    outside_events,
    traced_devices,
    whole,
)
from advisor.ingest.kineto_lines import lines_of
from advisor.ingest.kineto_marks import Marks, marks_of
from advisor.ingest.kineto_repair import Repair
from advisor.ingest.kineto_slices import DEFAULT_LIMITS, Slices, TraceLimits
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Source
from advisor.model.trace import Category, KinetoTrace, Thread

EPOCH_NS = 10**18
"""Times from here on (2001) count from 1970; smaller ones from a zero of the trace's own."""


@np.errstate(over="ignore", invalid="ignore")  # times beyond any float are found by their bounds, and not by a warning on the terminal
def read_kineto(stream: BinaryIO, path: str, *, limits: TraceLimits = DEFAULT_LIMITS) -> KinetoTrace:
    """Read a trace, whatever its age, layout and compression, in memory that its columns bound.

    Args:
        stream: at its start; read once, front to back.
        path: as the user named it, for the source.
        limits: how much is read before it is refused.

    Returns:
        The trace; what of it is missing, torn or not understood stands in its `gaps`.

    Raises:
        UnreadableInput: it is no trace, or holds no event that can be read, or is hostile.
    """
    inflated = decompressed(stream, path)
    opening = open_trace(inflated, limits)
    kind = struct_for(opening.first)
    reading = _Reading(kind, Repair(decode=decoder(kind).decode, kind=kind))
    slices = Slices(inflated, opening.first, reading.repair, limits)
    with _without_collection():
        slices.read(reading.take, reading.take_lines)
    keys, is_whole = outside_events(opening.header, slices.trailer)
    is_truncated = slices.is_truncated or inflated.is_truncated
    gaps = [
        *(["the file ends early; its last event is torn and left out"] if is_truncated else []),
        *(["its end is too damaged to be read"] if slices.is_abandoned else []),
        *([] if is_whole else ["what stands outside its events could be read in part only"]),
        *reading.gaps(),
    ]
    return _trace(reading, keys, Source(path=path), gaps, is_truncated=is_truncated)


class _Reading:
    """The columns while they grow."""

    def __init__(self, kind: type, repair: Repair) -> None:
        self.columns = Columns(kind)
        self.marks = Marks()
        self.repair = repair
        self.paired_count = 0

    def take(self, events: list[Event]) -> None:
        """Take over a slice, whole or not at all."""
        before = self.columns.row_count
        rows = self.columns.prepared(events)
        self.marks.append(marks_of(events))
        self.columns.append(rows)
        if self.columns.row_count == before:
            self.paired_count += sum(isinstance(event, Begin) for event in events)
        self.repair.row_count = self.columns.row_count

    def take_lines(self, text: memoryview) -> int:
        """Take over the first events of a text as far as they are laid out as Kineto prints them, and return where they have ended.

        Raises:
            ValueError: the layout is Kineto's, and what it holds is not; nothing has been taken.
            OverflowError: a number does not fit into 64 bits; nothing has been taken.
        """
        lines = lines_of(text)
        rows = self.columns.prepared_lines(lines) if lines else None
        if not lines or not rows:
            return 0
        if lines.marks:
            self.marks.append(MARKS.decode(b"[" + b",".join(lines.marks) + b"]"))
        self.columns.append(rows)
        self.repair.row_count = self.columns.row_count
        return lines.end

    def gaps(self) -> Iterator[str]:
        """What could not be read, a sentence each."""
        skipped = self.columns.skipped_count + self.repair.skipped_count
        if skipped:
            yield f"events that were not understood and are left out: {skipped}"
        if self.repair.unknown_count:
            yield f"values of a wrong type or size, taken as unknown: {self.repair.unknown_count}"
        if self.paired_count:
            yield f"events told by a beginning and an end, which are not read: {self.paired_count}"
        if self.columns.unnamed_device_count:
            yield f"device events that do not say on which device, taken for device 0's: {self.columns.unnamed_device_count}"


@contextmanager
def _without_collection() -> Iterator[None]:
    """Decoding makes millions of objects and no cycle: the collector would look at each often."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _trace(reading: _Reading, keys: dict[str, Any], source: Source, gaps: list[str], *, is_truncated: bool) -> KinetoTrace:
    columns = reading.columns
    if not columns.row_count:
        raise UnreadableInput("it holds no event with a duration", RECORD)
    whole_columns = columns.joined()
    memory = reading.marks.joined(columns.base_microseconds or 0)
    first_ns = int(whole_columns["start_ns"].min())
    whole_columns["start_ns"] -= first_ns
    memory["memory_time_ns"] -= first_ns
    for column in (*whole_columns.values(), *memory.values()):
        column.setflags(write=False)
    origin_ns = (columns.base_microseconds or 0) * 1000 + first_ns
    base_ns = whole(keys.get("baseTimeNanoseconds")) or 0
    distributed = keys.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    backend = distributed.get("backend")
    return KinetoTrace(
        source=source,
        rank=whole(distributed.get("rank")),
        gaps=(*gaps, *_missing(whole_columns["category"])),
        **whole_columns,
        **memory,
        names=tuple(columns.labels.names),
        shape_texts=tuple(columns.texts.shapes),
        type_texts=tuple(columns.texts.types),
        input_texts=tuple(columns.texts.inputs),
        threads=tuple(Thread(pid=pid, tid=tid) for pid, tid in columns.labels.threads),
        origin_ns=base_ns + origin_ns,
        is_epoch=base_ns + origin_ns >= EPOCH_NS,
        devices=traced_devices(keys),
        world_size=whole(distributed.get("world_size")),
        backend=backend if isinstance(backend, str) else "",
        options=options(keys),
        profiler_log=log_lines(keys),
        out_of_memory_count=reading.marks.out_of_memory_count,
        is_truncated=is_truncated,
        skipped_count=columns.skipped_count + reading.repair.skipped_count,
    )


def _missing(category: Column) -> Iterator[str]:
    """What the trace never held, a sentence each."""
    counts = np.bincount(category, minlength=256)
    own = [Category.OTHER, Category.SPAN, Category.OVERHEAD, Category.ANNOTATION]
    if not np.delete(counts, own).any():
        yield "it holds no PyTorch events: neither operators, nor launches, nor device activity"
        return
    if not counts[[Category.KERNEL, Category.COPY, Category.FILL]].any():
        if counts[Category.CONTROL]:
            yield "it holds an accelerator's control events, and none of its compute"
        elif counts[[Category.RUNTIME, Category.DRIVER]].any():
            yield "it holds launches and no device activity: the profiler could not read the device"
        else:
            yield "it holds no device activity"
    elif not counts[[Category.RUNTIME, Category.DRIVER]].any():
        yield "it holds no launches"
    if not counts[Category.OPERATOR]:
        yield "it holds no operators"
