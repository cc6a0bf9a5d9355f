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

TakeLines: TypeAlias = Callable[[memoryview], int]
"""Takes over the first events of a text that ends with the comma behind an event, as far as lines tell them apart; returns where the comma
stands behind the last of them. Takes nothing where it returns 0 or raises one of FAILURES."""

MOST_REFUSED = 8
"""Times in a row that events cannot be told apart by their lines, before it is tried no more: each costs the look at a whole buffer."""

FAILURES = (ValueError, RecursionError, OverflowError)
"""What decoding raises for what it cannot decode (msgspec's errors are ValueErrors)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLimits:
    """How much of a trace is read before it is refused.

    Attributes:
        slice_bytes: decoded at once. 0.5 to 1 MiB stays in a core's cache.
        slices_at_once: of what is read at once where lines tell events apart: the more, the fewer steps.
        event_bytes: longest single event.
        header_bytes: of what stands before the events, and of what stands behind.
        border_count: candidates for a border that are tried in a slice before it is scanned.
    """

    slice_bytes: int = 512 * 1024
    slices_at_once: int = 4
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
        self._wanted_bytes = limits.slice_bytes * limits.slices_at_once
        self._buffer = bytearray(max(len(first), self._wanted_bytes))
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
            is_end = self._fill()
            consumed = self._laid_out(take_lines)
            if not consumed:
                cut = self._border(self._limits.slice_bytes)
                if is_end and (cut is None or not self._has_lines):
                    self._finish(take)
                    return
                consumed = 0 if cut is None else self._slice(cut, take)
            if consumed:
                self._advance(consumed)
            elif not self._is_done:
                self._grow()

    @property
    def _has_lines(self) -> bool:
        return self._refused_count < MOST_REFUSED

    def _fill(self) -> bool:
        """Fill the buffer as far as is wanted; True at the end of the file. A stream may give less than asked for."""
        view = memoryview(self._buffer)[: self._wanted_bytes]
        while self._filled < len(view):
            count = self._stream.readinto(view[self._filled :])
            if not count:
                return True
            self._filled += count
        return False

    def _grow(self) -> None:
        if self._wanted_bytes >= self._limits.event_bytes:
            raise UnreadableInput(
                f"it holds an event of more than {self._limits.event_bytes // 1024**2} MiB",
                "it is damaged or no trace; record it again",
            )
        self._wanted_bytes = 4 * max(self._wanted_bytes, self._filled)
        self._buffer += bytes(max(0, self._wanted_bytes - len(self._buffer)))

    def _advance(self, consumed: int) -> None:
        """Move what is left to the front, behind the bracket that opens the next list."""
        rest = self._buffer[consumed : self._filled]
        self._buffer[1 : 1 + len(rest)] = rest
        self._filled = 1 + len(rest)

    def _border(self, most_bytes: int) -> int | None:
        """Position of the comma behind a whole event, as far as the layout tells: the last within a size, or else the last of all."""
        for end in (min(most_bytes, self._filled), self._filled):
            found = self._buffer.rfind(OWN_BORDER, 0, end)
            if found >= 0:
                return found + OWN_BORDER.index(b",")
        return next(self._borders(), None)

    def _borders(self) -> Iterator[int]:
        """Candidates for that position in another layout, last first."""
        at = self._buffer.rfind(b"}", 0, self._filled)
        while at > 0:
            found = BORDER.match(self._buffer, at, self._filled)
            if found:
                yield found.start(1)
            at = self._buffer.rfind(b"}", 0, at)

    def _laid_out(self, take_lines: TakeLines) -> int:
        """Hand over what lines tell apart; returns how much was consumed. A file in another layout is not tried in vain for long."""
        found = self._buffer.rfind(OWN_BORDER, 0, self._filled) if self._has_lines else -1
        taken = 0
        if found >= 0:
            with suppress(*FAILURES):
                taken = take_lines(memoryview(self._buffer)[: found + OWN_BORDER.index(b",") + 1])
        self._refused_count = 0 if taken else self._refused_count + 1
        if not self._has_lines:
            self._wanted_bytes = min(self._wanted_bytes, self._limits.slice_bytes)
        return taken and taken + 1

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
            is_first = self._wanted_bytes <= self._limits.slice_bytes * self._limits.slices_at_once
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
