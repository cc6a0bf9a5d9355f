"""The events of one window of a pickle, decoded, and what is known of their stacks and texts."""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from advisor.ingest.pickle_values import PickleValues
from advisor.ingest.snapshot_candidates import ABSENT, Window, candidates, joined
from advisor.ingest.snapshot_learned import UNKNOWN, Learned
from advisor.ingest.snapshot_rows import EventRow

MOST_RUN = 4096
"""Candidates that are taken at a time: where one of them turns out to be unknown, the work on those behind it is lost."""


class Decoded:
    """Candidates of a window, and which of them can be taken as they are.

    Args:
        pickled: at the first candidate.
        learned: what is known.

    Attributes:
        window_number: of which window.
        found: the candidates.
        is_joined: whether the next candidate follows.
        stack: of each candidate that spells out its frames; UNKNOWN where that is not known yet, NOT_RECORDED where it does not.
        makes_list: whether that list becomes an entry of the memo, behind all others of the event.
        memo_count: entries of the memo that it makes.
        action / category / text: codes; UNKNOWN where they are not known yet, NOT_RECORDED where it has none.
    """

    def __init__(self, pickled: PickleValues, learned: Learned) -> None:
        self.window_number = pickled.window_number
        self._shape_count = len(learned.shapes)
        self._buffer = pickled.buffer
        window = Window(pickled.buffer)
        self.found = found = candidates(window, pickled.position, learned.shapes)
        self.is_joined = joined(window, found)
        self._unsound: list[int] = np.flatnonzero(~found.is_sound).tolist()
        self._unjoined: list[int] = np.flatnonzero(~self.is_joined).tolist()
        lists = _looked_up(self._buffer, found.list_begin, found.end, learned.list_codes)
        self.stack = np.where(lists >= 0, lists >> 1, lists)
        self.makes_list = (lists >= 0) & (lists & 1 > 0)
        self.memo_count = found.memo_count + self.makes_list
        self.action = learned.actions.get_all(found.texts["action"])
        self.category = learned.categories.get_all(found.texts["category"])
        spelled = _looked_up(self._buffer, found.text_begin, found.text_end, learned.text_codes)
        self.text = np.where(found.text_begin == ABSENT, learned.texts.get_all(found.texts["user_metadata"]), spelled)
        lowest = np.minimum(np.minimum(self.stack, self.action), np.minimum(self.category, self.text))
        self._unknown: list[int] = np.flatnonzero(lowest == UNKNOWN)[::-1].tolist()

    def is_of(self, window_number: int, learned: Learned) -> bool:
        """Whether this is the window, and decoded by all shapes that are known."""
        return self.window_number == window_number and self._shape_count == len(learned.shapes)

    def place(self, begin: int) -> int | None:
        """The candidate that begins at this place of the window."""
        place = int(np.searchsorted(self.found.begin, begin))
        return place if place < len(self.found.begin) and self.found.begin[place] == begin else None

    def stop_from(self, place: int, learned: Learned) -> int:
        """Where a run of candidates that begins at one of them has to end."""
        stop = min(place + MOST_RUN, len(self.found.begin), _first_from(self._unsound, place), _first_from(self._unjoined, place) + 1)
        while self._unknown and self._unknown[-1] < stop:
            unknown = self._unknown[-1]
            if unknown >= place and not self._look_up(unknown, learned):
                return unknown
            self._unknown.pop()
        return stop

    def _look_up(self, place: int, learned: Learned) -> bool:
        """Look up what was unknown before; whether it is known now."""
        if self.stack[place] == UNKNOWN:
            code = learned.list_codes.get(self.list_bytes(place), UNKNOWN)
            if code == UNKNOWN:
                return False
            self.stack[place] = code >> 1
            self.makes_list[place] = code & 1
            self.memo_count[place] += code & 1
        texts = self.found.texts
        if self.action[place] == UNKNOWN:
            self.action[place] = learned.actions.get(int(texts["action"][place]))
        if self.category[place] == UNKNOWN:
            self.category[place] = learned.categories.get(int(texts["category"][place]))
        if self.text[place] == UNKNOWN:
            entry = int(texts["user_metadata"][place])
            self.text[place] = learned.text_codes.get(self._text_bytes(place), UNKNOWN) if entry == ABSENT else learned.texts.get(entry)
        return UNKNOWN not in (self.action[place], self.category[place], self.text[place])

    def teach(self, place: int, row: EventRow, learned: Learned) -> None:
        """Learn from a candidate that was read alone what its texts mean, and the memo's entries that it fetches."""
        found = self.found
        for entries, meanings, code in (
            (found.texts["action"], learned.actions, row.action),
            (found.texts["category"], learned.categories, row.category),
            (found.texts["user_metadata"], learned.texts, row.text),
            (found.frames, learned.stacks, row.stack),
        ):
            if entries[place] != ABSENT:
                meanings.put(int(entries[place]), code)
        if found.text_begin[place] != ABSENT:
            learned.text_codes[self._text_bytes(place)] = row.text

    def list_bytes(self, place: int) -> bytes:
        """The bytes of a list of frames that is spelled out, up to the event's end; nothing where there is none."""
        begin = self.found.list_begin[place]
        return b"" if begin == ABSENT else self._buffer[begin : self.found.end[place]]

    def _text_bytes(self, place: int) -> bytes:
        return self._buffer[self.found.text_begin[place] : self.found.text_end[place]]


def _first_from(places: list[int], begin: int) -> int:
    at = bisect_left(places, begin)
    return places[at] if at < len(places) else 1 << 62


def _looked_up(buffer: bytes, begin: NDArray[np.int64], end: NDArray[np.int64], codes: dict[bytes, int]) -> NDArray[np.int64]:
    """The code of the bytes between places; UNKNOWN where there is none, ABSENT where there are no such bytes."""
    result = np.full(len(begin), ABSENT)
    rows = np.flatnonzero(begin != ABSENT)
    get = codes.get
    places = zip(begin[rows].tolist(), end[rows].tolist(), strict=True)
    result[rows] = np.fromiter([get(buffer[first:last], UNKNOWN) for first, last in places], np.int64, len(rows))
    return result
