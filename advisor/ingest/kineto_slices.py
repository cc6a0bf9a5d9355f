"""Read the events of a trace in slices that stay in the cache; memory is bounded thereby."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Protocol, TypeAlias

from advisor.ingest.kineto_events import Event
from advisor.ingest.kineto_repair import OWN_BORDER, Repair
from advisor.model.dataclass import dataclass
from advisor.model.errors import UnreadableInput

BORDER = re.compile(rb"\}\s*(,)\s*\{")
"""Between two objects of any other layout: a candidate, since events may contain objects."""

CUT_SHORT = re.compile(r"truncated")
"""msgspec's word for text that ends too early."""

BEHIND_EVENT = re.compile(rb"\s*,?")

LIST_ENDED = re.compile(r"trailing characters \(byte (\d+)\)")
"""msgspec's words for a list that is closed before its text ends; without them it is scanned."""


Take: TypeAlias = Callable[[list[Event]], None]
"""Takes over the events of a slice, or refuses them whole by an OverflowError."""

TakeLines: TypeAlias = Callable[[memoryview], bool]
"""Takes over a slice, up to the comma behind its last event, by its lines; or refuses it, by False or one of FAILURES."""

MOST_REFUSED = 8
"""Slices that are not in Kineto's own layout, before no other is tried: a tenth of their time is lost each time."""

FAILURES = (ValueError, RecursionError, OverflowError)
"""What decoding raises for what it cannot decode (msgspec's errors are ValueErrors)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLimits:
    """How much of a trace is read before it is refused.

    Attributes:
        slice_bytes: read and decoded at once. 0.5 to 1 MiB stays in a core's cache.
        event_bytes: longest single event.
        header_bytes: of what stands before the events, and of what stands behind.
        border_count: candidates for a border that are tried in a slice before it is scanned.
    """

    slice_bytes: int = 512 * 1024
    event_bytes: int = 16 * 1024**2
    header_bytes: int = 32 * 1024**2
    border_count: int = 16


DEFAULT_LIMITS = TraceLimits()


class Readable(Protocol):
    """What events are read from."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill some of the buffer; 0 at the end."""


class Slices:
    """Reads the list of events once, front to back.

    Attributes:
        is_truncated: the file ends before the list is closed.
        is_abandoned: the rest of the list was too damaged to be read at a reasonable speed.
        trailer: what follows the list, up to `TraceLimits.header_bytes`.
    """

    def __init__(self, stream: Readable, first: bytes, repair: Repair, limits: TraceLimits) -> None:
        self._stream = stream
        self._repair = repair
        self._limits = limits
        self._buffer = bytearray(max(len(first), limits.slice_bytes))
        self._buffer[: len(first)] = first
        self._filled = len(first)
        self._is_done = False
        self._refused_count = 0
        self.is_truncated = False
        self.is_abandoned = False
        self.trailer = b""

    def read(self, take: Take, take_lines: TakeLines) -> None:
        """Hand every slice as text to `take_lines` or, where that refuses it, its events to `take`.

        Raises:
            UnreadableInput: an event is longer than the limit.
        """
        while not self._is_done:
            if self._fill():
                self._finish(take)
                return
            cut = self._border()
            if cut is not None and self._is_laid_out(cut, take_lines):
                consumed = cut + 1
            else:
                consumed = 0 if cut is None else self._slice(cut, take)
            if consumed:
                self._advance(consumed)
            elif not self._is_done:
                self._grow()

    def _fill(self) -> bool:
        """Fill the buffer; True at the end of the file. A stream may give less than asked for."""
        view = memoryview(self._buffer)
        while self._filled < len(view):
            count = self._stream.readinto(view[self._filled :])
            if not count:
                return True
            self._filled += count
        return False

    def _grow(self) -> None:
        if len(self._buffer) >= self._limits.event_bytes:
            raise UnreadableInput(
                f"it holds an event of more than {self._limits.event_bytes // 1024**2} MiB",
                "it is damaged or no trace; record it again",
            )
        self._buffer = self._buffer + bytes(3 * len(self._buffer))

    def _advance(self, consumed: int) -> None:
        """Move what is left to the front, behind the bracket that opens the next list."""
        rest = self._buffer[consumed : self._filled]
        self._buffer[1 : 1 + len(rest)] = rest
        self._filled = 1 + len(rest)

    def _border(self) -> int | None:
        """Position of the comma behind the last whole event, as far as the layout tells."""
        found = self._buffer.rfind(OWN_BORDER, 0, self._filled)
        if found >= 0:
            return found + OWN_BORDER.index(b",")
        return next(self._borders(), None)

    def _borders(self) -> Iterator[int]:
        """Candidates for that position, last first."""
        at = self._buffer.rfind(b"}", 0, self._filled)
        while at > 0:
            found = BORDER.match(self._buffer, at, self._filled)
            if found:
                yield found.start(1)
            at = self._buffer.rfind(b"}", 0, at)

    def _is_laid_out(self, cut: int, take_lines: TakeLines) -> bool:
        """Whether the slice was taken over by its lines. A file in another layout is not tried in vain for long."""
        if self._refused_count >= MOST_REFUSED:
            return False
        try:
            is_taken = take_lines(memoryview(self._buffer)[: cut + 1])
        except FAILURES:
            is_taken = False
        self._refused_count += not is_taken
        return is_taken

    def _slice(self, cut: int, take: Take) -> int:
        """Decode up to a border; returns how much was consumed, 0 where no event is whole."""
        try:
            self._decode(cut, take)
        except FAILURES as failure:
            return self._mend(cut, take, failure)
        return cut + 1

    def _decode(self, cut: int, take: Take) -> None:
        self._buffer[cut] = ord("]")
        try:
            events = self._repair.decode(memoryview(self._buffer)[: cut + 1])
        finally:
            self._buffer[cut] = ord(",")
        take(events)

    def _mend(self, cut: int, take: Take, failure: Exception) -> int:
        text = bytes(self._buffer[: self._filled])
        if end := _end_of_list(failure):
            return self._close(text, end, take)
        if CUT_SHORT.search(str(failure)):
            # A wrong border leaves brackets or a text open; in a longer buffer the scan is cheaper.
            is_first = len(self._buffer) <= self._limits.slice_bytes
            for other in islice(self._borders(), self._limits.border_count * is_first):
                with suppress(*FAILURES):
                    self._decode(other, take)
                    return other + 1
        elif (events := self._repair.list_of(text[:cut] + b"]")) is not None:
            take(events)
            return cut + 1
        return self._salvage(text, take)

    def _salvage(self, text: bytes, take: Take) -> int:
        events, consumed, is_closed = self._repair.salvaged(text)
        take(events)
        if is_closed:
            self._keep_trailer(text[consumed:])
            return 0
        if self._repair.tokens_left <= 0:
            self._is_done = self.is_abandoned = True
        behind = BEHIND_EVENT.match(text, consumed)
        return behind.end() if behind and consumed > 1 else 0

    def _close(self, text: bytes, end: int, take: Take) -> int:
        """The list ends within the buffer."""
        try:
            take(self._repair.decode(text[:end]))
        except FAILURES:
            events = self._repair.list_of(text[:end])
            if events is None:
                return self._salvage(text, take)
            take(events)
        self._keep_trailer(text[end:])
        return 0

    def _keep_trailer(self, start: bytes) -> None:
        self._is_done = True
        rest = bytearray(start)
        piece = bytearray(self._limits.slice_bytes)
        while len(rest) < self._limits.header_bytes:
            count = self._stream.readinto(memoryview(piece))
            if not count:
                break
            rest += piece[:count]
        self.trailer = bytes(rest)

    def _finish(self, take: Take) -> None:
        """What is left at the end of the file: the last events, and mostly the end of the list."""
        text = bytes(self._buffer[: self._filled])
        try:
            take(self._repair.decode(text))
        except FAILURES as failure:
            if end := _end_of_list(failure):
                self._close(text, end, take)
                return
            if (events := self._repair.list_of(text)) is not None:
                take(events)
                return
            self._salvage(text, take)
            self.is_truncated = not self._is_done


def _end_of_list(failure: Exception) -> int:
    """Bytes up to where the list is closed, if that is the failure, or 0. msgspec counts from 1."""
    found = LIST_ENDED.search(str(failure))
    return int(found.group(1)) - 1 if found else 0
