"""The lines of a log, found by position: only what is looked at is decoded, so that 50 MB cost what their needles cost."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from advisor.ingest.log_prefixes import NOBODY, Speaker, has_srun_labels, plain, without_prefixes
from advisor.model.dataclass import dataclass

LINE_REACH_BYTES = 8192
"""How far a line is followed to either side of what was found in it: messages are below 3 KiB, and longer lines are data."""

HEAD_BYTES = 2 * 1024**2
TAIL_BYTES = 6 * 1024**2
"""The parts of a large log in which everything is looked for: how it was started, and how it ended."""

_COUNT_BLOCK_BYTES = 65_536
"""Newlines are counted once for each block of this size."""

_LABEL_BYTES = 65_536
"""What decides whether the log has the labels of srun."""

_INDEXED_BYTES = 8192
"""A log of at most this size is indexed: in a longer one a search costs less than its share of the index."""

_GRAM_BYTES = 4

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line, or of a very long one the part around what was found.

    Attributes:
        start / end: where it lies in the log, in bytes of its UTF-8 form.
        number: from 1.
        text: without colors and prefixes.
        speaker: whom it is from.
    """

    start: int
    end: int
    number: int
    text: str
    speaker: Speaker = NOBODY


class Needles:
    """Words in lower case that are looked for in every log, by their beginnings: of a thousand a short log has a few dozen.

    Attributes:
        all: the words.
        by_beginning: those of at least four bytes, by their first four, read as a number.
        short: the others.
    """

    def __init__(self, needles: Iterable[bytes]) -> None:
        self.all = frozenset(needles)
        self.short = frozenset(needle for needle in self.all if len(needle) < _GRAM_BYTES)
        self.by_beginning: dict[int, list[bytes]] = {}
        for needle in self.all - self.short:
            self.by_beginning.setdefault(int.from_bytes(needle[:_GRAM_BYTES], sys.byteorder), []).append(needle)


class LogLines:
    """A log as bytes; any of the three newlines ends a line, a lone carriage return counts none where line feeds do."""

    def __init__(self, raw: bytes) -> None:
        if raw.startswith(_UTF16_MARKS):
            raw = raw.decode("utf-16", "replace").encode("utf-8", "replace")
        raw = raw.removeprefix(b"\xef\xbb\xbf")
        if b"\r" in raw:
            raw = raw.replace(b"\r\n", b"\n")
            if b"\n" not in raw:
                raw = raw.replace(b"\r", b"\n")
        self.raw = raw
        self.lowered = raw.lower()
        self._has_returns = b"\r" in raw

    @cached_property
    def line_count(self) -> int:
        """Lines, the last one too where no newline ends it."""
        return self._newlines[-1] + (1 if self.raw and not self.raw.endswith(b"\n") else 0)

    def find(self, needle: bytes, most: int, *, everywhere: bool) -> tuple[list[int], bool]:
        """Where a needle (lower case) stands, at most once a line, in the log's order.

        Args:
            needle: what is looked for.
            most: places that are returned; the first and the last half of them where there are more.
            everywhere: whether the middle of a large log is searched too (HEAD_BYTES, TAIL_BYTES).

        Returns:
            The places, and whether those are all that the searched parts have.
        """
        half, size = max(1, most // 2), len(self.lowered)
        head_end, tail_start = (size, 0) if everywhere else (HEAD_BYTES, size - TAIL_BYTES)
        front: list[int] = []
        position = 0
        while len(front) < half:
            found = self.lowered.find(needle, position, head_end)
            if found < 0:
                position = head_end
                break
            front.append(found)
            position = self.line_end(found)
        floor, limit = max(position, tail_start), size
        back: list[int] = []
        while len(back) < half and floor < limit:
            found = self.lowered.rfind(needle, floor, limit)
            if found < 0:
                return front + back[::-1], len(front) < half or position >= tail_start
            back.append(found)
            limit = max(floor, self._bounds(found)[0])
        return front + back[::-1], len(front) < half and floor >= limit

    def may_have(self, needles: "Needles") -> frozenset[bytes]:
        """The needles that can stand in the log: all of them in a long one, in a short one those whose beginning does."""
        if self._grams is None:
            return needles.all
        beginnings = needles.by_beginning.keys() & self._grams
        return needles.short.union(*map(needles.by_beginning.__getitem__, beginnings))

    def has(self, needle: bytes, parts: Sequence[tuple[int, int]]) -> bool:
        """Whether a needle (lower case) stands in any of the parts, each from a start to an end."""
        return any(self.lowered.find(needle, start, end) >= 0 for start, end in parts)

    @cached_property
    def _grams(self) -> frozenset[int] | None:
        """Every four bytes that follow each other in a short log in lower case, as numbers; None for a longer one."""
        text = memoryview(self.lowered)
        if len(text) > _INDEXED_BYTES:
            return None
        wholes = (len(text) - shift - (len(text) - shift) % _GRAM_BYTES for shift in range(min(_GRAM_BYTES, len(text))))
        return frozenset().union(*(text[shift : shift + whole].cast("I") for shift, whole in enumerate(wholes)))

    def line_at(self, position: int) -> LogLine:
        """The line around a position."""
        start, end = self._bounds(position)
        return self._line(start, end)

    def line_end(self, position: int) -> int:
        """Where the line around a position ends; always beyond the position."""
        return max(self._bounds(position)[1], position + 1)

    def above(self, line: LogLine) -> LogLine | None:
        """The line above another; None above the first."""
        if line.start == 0:
            return None
        return self._line(self._bounds(line.start - 1)[0], line.start - 1)

    def upward(self, line: LogLine, most: int) -> Iterator[LogLine]:
        """Up to `most` lines above a line, the nearest first, decoded as they are asked for."""
        for _ in range(most):
            above = self.above(line)
            if above is None:
                return
            yield above
            line = above

    def after(self, line: LogLine, most: int, reach_bytes: int = 16_384) -> Iterator[LogLine]:
        """Up to `most` lines below a line, decoded as they are asked for."""
        ceiling = min(len(self.raw), line.end + reach_bytes)
        return islice(self._split(line.end + 1, ceiling), most)

    def number_at(self, position: int) -> int:
        """The number of the line at a position, from 1."""
        block = position // _COUNT_BLOCK_BYTES
        return self._newlines[block] + self.raw.count(b"\n", block * _COUNT_BLOCK_BYTES, position) + 1

    @cached_property
    def _newlines(self) -> list[int]:
        """Newlines before each block, and in the end all of them."""
        counts = [0]
        for start in range(0, len(self.raw), _COUNT_BLOCK_BYTES):
            counts.append(counts[-1] + self.raw.count(b"\n", start, start + _COUNT_BLOCK_BYTES))
        return counts

    @cached_property
    def _has_labels(self) -> bool:
        return has_srun_labels(plain(self.raw[:_LABEL_BYTES].decode("utf-8", "replace")))

    def _bounds(self, position: int) -> tuple[int, int]:
        """Start and end of the line at a position, each at most LINE_REACH_BYTES away."""
        floor = max(0, position - LINE_REACH_BYTES)
        ceiling = min(len(self.raw), position + LINE_REACH_BYTES)
        start = self.raw.rfind(b"\n", floor, position) + 1 or floor
        end = self.raw.find(b"\n", position, ceiling)
        end = ceiling if end < 0 else end
        if self._has_returns:
            start = self.raw.rfind(b"\r", start, position) + 1 or start
            returned = self.raw.find(b"\r", position, end)
            end = end if returned < 0 else returned
        return start, end

    def _line(self, start: int, end: int) -> LogLine:
        said = plain(self.raw[start:end].decode("utf-8", "replace"))
        text, speaker = without_prefixes(said, srun_labels=self._has_labels)
        return LogLine(start, end, self.number_at(start), text, speaker)

    def _split(self, start: int, end: int) -> Iterator[LogLine]:
        """The lines between two positions; those longer than LINE_REACH_BYTES are cut."""
        number = self.number_at(min(start, len(self.raw)))
        while start <= end:
            newline = self.raw.find(b"\n", start, end)
            stop = end if newline < 0 else newline
            chunk = self.raw[start : min(stop, start + LINE_REACH_BYTES)]
            at = start
            for part in chunk.split(b"\r") if self._has_returns else (chunk,):
                text, speaker = without_prefixes(plain(part.decode("utf-8", "replace")), srun_labels=self._has_labels)
                yield LogLine(at, at + len(part), number, text, speaker)
                at += len(part) + 1
            number += 1
            start = stop + 1
