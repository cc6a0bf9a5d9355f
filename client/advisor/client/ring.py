"""The ring: fixed records in a file that is mapped into memory; what was written survives any death of the process."""

import mmap
import os
import struct
import time
from pathlib import Path

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
    PREFIX,
    RECORD_BYTES,
    SLOT_COUNT,
    STATE,
    STATE_OFFSET,
    STEP_KIND,
    STEP_RECORD,
    SUFFIX,
    SUFFIX_OFFSET,
    VERSION,
    Event,
    Metric,
)

RING_BYTES = HEADER_BYTES + SLOT_COUNT * RECORD_BYTES


class RingWriter:
    """The trainer's end. One thread writes at a time (the attachment's lock sees to it); no call waits for anything.

    Attributes:
        state: three words that say what the trainer does (layout.STATE); they are stored to, which costs less than a call.
    """

    def __init__(self, path: Path, *, rank: int | None, boot_id: str, start_ticks: int) -> None:
        """Make the file.

        Raises:
            OSError: if the disk is full or the folder cannot be written; the file is then removed.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # Blocks are taken now: writing to a hole of a full disk would kill the trainer with SIGBUS.
            os.posix_fallocate(descriptor, 0, RING_BYTES)
            self._map = mmap.mmap(descriptor, RING_BYTES)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        self._written = 0
        clocks = time.time_ns(), time.monotonic_ns()
        identity = (os.getpid(), start_ticks, *clocks, NO_RANK if rank is None else rank, boot_id.encode()[:16])
        self.state = memoryview(self._map)[STATE_OFFSET : STATE_OFFSET + STATE.size].cast("Q")
        HEADER.pack_into(self._map, 0, MAGIC, VERSION, RECORD_BYTES, SLOT_COUNT, *identity)

    def step(self, values: tuple[float, ...]) -> None:
        """Write the record of a step: the fields of layout.STEP in order."""
        written, memory = self._written, self._map
        at = HEADER_BYTES + written % SLOT_COUNT * RECORD_BYTES
        written += 1
        STEP_RECORD.pack_into(memory, at, written, STEP_KIND, 1, 0, *values)
        SUFFIX.pack_into(memory, at + SUFFIX_OFFSET, written)
        self._written = written
        CURSOR.pack_into(memory, CURSOR_OFFSET, written)

    def metric(self, metric: Metric) -> None:
        """Write a figure; a longer name is cut."""
        name = metric.name.encode("utf-8", "replace")[:120]
        self._write(METRIC_KIND, METRIC, (metric.step, metric.nanoseconds, metric.value, len(name), name))

    def event(self, event: Event) -> None:
        """Write what happened; a longer text is cut."""
        kind, text = event.kind.encode("utf-8", "replace")[:24], event.text.encode("utf-8", "replace")[:120]
        self._write(EVENT_KIND, EVENT, (event.step, event.nanoseconds, len(kind), kind, len(text), text))

    def close(self) -> None:
        """Unmap the file; it stays."""
        self.state.release()
        self._map.close()

    def _write(self, kind: int, layout: struct.Struct, values: tuple[object, ...]) -> None:
        at = HEADER_BYTES + (self._written % SLOT_COUNT) * RECORD_BYTES
        sequence = self._written + 1
        PREFIX.pack_into(self._map, at, sequence, kind, 1, 0)
        layout.pack_into(self._map, at + PREFIX.size, *values)
        SUFFIX.pack_into(self._map, at + SUFFIX_OFFSET, sequence)
        self._written = sequence
        CURSOR.pack_into(self._map, CURSOR_OFFSET, sequence)
