"""Move records from a ring to `steps`, a file that only grows, so that none is overwritten before somebody reads it."""

import os
import struct
from pathlib import Path

from advisor.client.layout import (
    CURSOR,
    CURSOR_OFFSET,
    EVENT_KIND,
    HEADER_BYTES,
    PREFIX,
    RECORD_BYTES,
    SLOT_COUNT,
    STATE,
    STATE_OFFSET,
    STEP_KIND,
    SUFFIX_OFFSET,
    Step,
)
from advisor.client.ring_reader import Ring, read_drained, read_ring
from advisor.client.spool import NEW_PREFIX, RING, STEPS

PIECE_RECORDS = 1024
"""Records read at once: 192 KiB."""

MOST_STEPS_BYTES = 64 * 1024 * 1024
"""350,000 records: the 15 ms steps of an hour and a half, the 1 s steps of four days. Beyond, the older half is thinned."""

ENDS = struct.Struct(f"<Q{SUFFIX_OFFSET - 8}xQ")
"""A record's sequence number at its begin and at its end."""


class Drain:
    """The way from a ring to its `steps`.

    Attributes:
        after: sequence number of the last record drained.
        drained_count / lost_count / thinned_count: records written here; overwritten before they were read, or torn; thinned out.
    """

    def __init__(self, folder: Path, *, most_bytes: int = MOST_STEPS_BYTES) -> None:
        """Open both; what a kill left torn at the end of `steps` is cut.

        Raises:
            OSError: if there is no ring, or the folder cannot be written.
            NotARing: if the ring is none, or of another version.
        """
        self._folder, self._most_bytes = folder, most_bytes
        self._ring = os.open(folder / RING, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.trainer = self.head().trainer
        self._steps = _opened(folder / STEPS)
        self.drained_count = self.lost_count = self.thinned_count = 0
        self._size, self.after = _mended(self._steps)

    def head(self) -> Ring:
        """The ring's header and state, without its records.

        Raises:
            OSError: if it cannot be read.
            NotARing: if it is none.
        """
        return read_ring(os.pread(self._ring, HEADER_BYTES, 0))

    def flags(self) -> int:
        """The state's flags; a cheap look."""
        state = os.pread(self._ring, STATE.size, STATE_OFFSET)
        return int(STATE.unpack(state)[1]) if len(state) == STATE.size else 0

    def drain(self, *, is_last: bool = False) -> int:
        """Move what is new.

        Args:
            is_last: the writer is dead; a record that it wrote whole, but did not count any more, is moved as well.

        Returns:
            How many records the ring got since the last time.

        Raises:
            OSError: if they cannot be written (the disk is full); they are moved the next time, if the ring still has them.
        """
        written = self._written() + is_last
        count = max(0, written - self.after)
        if count > SLOT_COUNT:
            self.lost_count += count - SLOT_COUNT
            self.after = written - SLOT_COUNT
        while self.after < written:
            slot = self.after % SLOT_COUNT
            piece = min(written - self.after, PIECE_RECORDS, SLOT_COUNT - slot)
            data = os.pread(self._ring, piece * RECORD_BYTES, HEADER_BYTES + slot * RECORD_BYTES)
            if len(data) < piece * RECORD_BYTES:
                break  # cut by somebody; nothing more can come of it
            self._keep(data, piece, written if is_last else None)
        if self._size > self._most_bytes:
            self._thin()
        return count

    def last_step(self) -> Step | None:
        """The last step in `steps`; None where it is not among the last records."""
        begin = max(0, self._size - PIECE_RECORDS * RECORD_BYTES)
        data = os.pread(self._steps, self._size - begin, begin)
        for at in range(len(data) - RECORD_BYTES, -1, -RECORD_BYTES):
            if PREFIX.unpack_from(data, at)[1] == STEP_KIND:
                for _, record in read_drained(data[at : at + RECORD_BYTES]):
                    return record if isinstance(record, Step) else None
        return None

    def _written(self) -> int:
        data = os.pread(self._ring, CURSOR.size, CURSOR_OFFSET)
        return int(CURSOR.unpack(data)[0]) if len(data) == CURSOR.size else self.after

    def _keep(self, data: bytes, count: int, last: int | None) -> None:
        """Append the whole ones of a piece of the ring."""
        # The writer may have come round while we read; what it may have touched in the meantime is not trusted, whatever its ends say.
        safe_from = self._written() + 2 - SLOT_COUNT if last is None else 0
        expected = range(self.after + 1, self.after + 1 + count)
        whole = [
            number == first == end and number >= safe_from for number, (first, end) in zip(expected, ENDS.iter_unpack(data), strict=True)
        ]
        kept = data
        if not all(whole):
            kept = b"".join(data[at * RECORD_BYTES : (at + 1) * RECORD_BYTES] for at in range(count) if whole[at])
            # The record after the last one counted is there only if the writer died between writing and counting it.
            self.lost_count += whole.count(False) - (last is not None and expected[-1] == last and not whole[-1])
        _append(self._steps, self._size, kept)
        self._size += len(kept)
        self.drained_count += len(kept) // RECORD_BYTES
        self.after += count

    def _thin(self) -> None:
        """Drop every second step and figure of the older half of `steps`; events stay."""
        half = self._size // RECORD_BYTES // 2
        new = self._folder / f"{NEW_PREFIX}{os.getpid()}-{STEPS}"
        new.unlink(missing_ok=True)
        target = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            size = 0
            for begin in range(0, self._size // RECORD_BYTES, PIECE_RECORDS):
                data = os.pread(self._steps, PIECE_RECORDS * RECORD_BYTES, begin * RECORD_BYTES)
                kept = b"".join(
                    data[at : at + RECORD_BYTES]
                    for at in range(0, len(data) - RECORD_BYTES + 1, RECORD_BYTES)
                    if (number := begin + at // RECORD_BYTES) >= half or number % 2 or PREFIX.unpack_from(data, at)[1] == EVENT_KIND
                )
                _append(target, size, kept)
                size += len(kept)
            new.replace(self._folder / STEPS)
        except OSError:
            os.close(target)
            new.unlink(missing_ok=True)
            self._most_bytes += self._most_bytes // 8  # tried again when there is this much more, not at every drain
            raise
        os.close(self._steps)
        self.thinned_count += (self._size - size) // RECORD_BYTES
        self._steps, self._size = target, size


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _append(descriptor: int, size: int, data: bytes) -> None:
    """Write all of it; what a full disk let through of it is taken back.

    Raises:
        OSError: if it does not fit.
    """
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _mended(steps: int) -> tuple[int, int]:
    """Cut what is no whole record at the end; the size that is left, and the sequence number of the last record."""
    found = os.fstat(steps).st_size
    size = found - found % RECORD_BYTES
    number = 0
    while size:
        first, end = ENDS.unpack(os.pread(steps, RECORD_BYTES, size - RECORD_BYTES))
        if first == end != 0:
            number = first
            break
        size -= RECORD_BYTES
    if size != found:
        os.ftruncate(steps, size)
    return size, number
