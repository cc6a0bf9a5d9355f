"""Read a ring, or the records drained from one: bytes to records, distrusting the bytes."""

import struct
from typing import NamedTuple

from advisor.client.layout import (
    CURSOR,
    CURSOR_OFFSET,
    EVENT,
    EVENT_KIND,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    METRIC,
    METRIC_KIND,
    NO_RANK,
    PHASES,
    PREFIX,
    RECORD_BYTES,
    STATE,
    STATE_OFFSET,
    STEP,
    STEP_KIND,
    SUFFIX,
    SUFFIX_OFFSET,
    VERSION,
    Event,
    Metric,
    Record,
    step_of,
)


class NotARing(ValueError):  # noqa: N818 - reads as a sentence
    """The bytes are no ring that this version can read; the text says why."""


class Trainer(NamedTuple):
    """Who wrote a ring, and the moment that joins its clocks."""

    pid: int
    start_ticks: int
    rank: int | None
    wall_nanoseconds: int
    monotonic_nanoseconds: int
    boot_id: str

    def wall_of(self, monotonic_nanoseconds: int) -> int:
        """Wall-clock nanoseconds of a monotonic moment, by the clocks at the start."""
        return self.wall_nanoseconds + monotonic_nanoseconds - self.monotonic_nanoseconds


class State(NamedTuple):
    """What the trainer was doing when it was last heard of."""

    phase: str
    flags: int
    step: int
    since_nanoseconds: int


class Ring(NamedTuple):
    """The contents of a ring.

    Attributes:
        trainer: who wrote it.
        state: what it did last; None before its first step.
        written_count: records ever written.
        records: those still there with their sequence numbers, oldest first.
        torn_count: slots that were being written.
    """

    trainer: Trainer
    state: State | None
    written_count: int
    records: tuple[tuple[int, Record], ...]
    torn_count: int


def read_ring(data: bytes, *, after: int = 0) -> Ring:
    """The ring's contents.

    Args:
        data: the whole file.
        after: a sequence number; only later records are decoded.

    Raises:
        NotARing: if the header is not one, or of another version.
    """
    trainer, slots = _header(data)
    written = CURSOR.unpack_from(data, CURSOR_OFFSET)[0]
    records, torn = [], 0
    for slot in range(min(slots, (len(data) - HEADER_BYTES) // RECORD_BYTES)):
        at = HEADER_BYTES + slot * RECORD_BYTES
        sequence = PREFIX.unpack_from(data, at)[0]
        if sequence == 0 or sequence <= after:
            continue
        record = _record(data, at)
        if record is None or sequence > written + 1:
            torn += 1
        else:
            records.append((sequence, record))
    return Ring(trainer, _state(data), written, tuple(sorted(records, key=lambda item: item[0])), torn)


def read_drained(data: bytes) -> tuple[tuple[int, Record], ...]:
    """The records of a `steps` file; a last record that was not written whole is left out."""
    found = []
    for at in range(0, len(data) - RECORD_BYTES + 1, RECORD_BYTES):
        record = _record(data, at)
        if record is not None:
            found.append((PREFIX.unpack_from(data, at)[0], record))
    return tuple(found)


def _header(data: bytes) -> tuple[Trainer, int]:
    if len(data) < HEADER_BYTES or data[: len(MAGIC)] != MAGIC:
        raise NotARing("no ring of a run: it does not begin with the ring's header")
    _, version, record_bytes, slots, pid, start_ticks, wall, monotonic, rank, boot_id = HEADER.unpack_from(data)
    if version != VERSION or record_bytes != RECORD_BYTES:
        raise NotARing(f"a ring of version {version} with records of {record_bytes} bytes; this program reads version {VERSION}")
    known_rank = None if rank == NO_RANK else rank
    return Trainer(pid, start_ticks, known_rank, wall, monotonic, boot_id.rstrip(b"\0").decode("ascii", "replace")), slots


def _state(data: bytes) -> State | None:
    phase, flags, step, since = STATE.unpack_from(data, STATE_OFFSET)
    if not since or phase >= len(PHASES):
        return None
    return State(PHASES[phase], flags, step, since)


def _record(data: bytes, at: int) -> Record | None:
    """The record at a place; None where it is torn or of a kind unknown."""
    sequence, kind, _, _ = PREFIX.unpack_from(data, at)
    if sequence == 0 or SUFFIX.unpack_from(data, at + SUFFIX_OFFSET)[0] != sequence:
        return None
    body = at + PREFIX.size
    try:
        if kind == STEP_KIND:
            return step_of(STEP.unpack_from(data, body))
        if kind == METRIC_KIND:
            step, moment, value, size, name = METRIC.unpack_from(data, body)
            return Metric(step, moment, value, name[:size].decode("utf-8", "replace"))
        if kind == EVENT_KIND:
            step, moment, kind_size, word, size, text = EVENT.unpack_from(data, body)
            return Event(step, moment, word[:kind_size].decode("utf-8", "replace"), text[:size].decode("utf-8", "replace"))
    except struct.error:
        return None
    return None
