"""Read the pickled events of a device in runs: those like one that was read before are decoded together, the others one by one.

An event that is new in any way (a stack, a key, an action, a frame of the pickle within it) is read opcode by opcode, and what is
learned from it serves those that follow.
"""

import numpy as np
from numpy.typing import NDArray

from advisor.ingest.pickle_values import APPENDS, EMPTY_DICT, MARK, MEMOIZE, SETITEMS, NotStreamableError, PickleValues, pairs
from advisor.ingest.snapshot_candidates import ABSENT
from advisor.ingest.snapshot_columns import Names
from advisor.ingest.snapshot_decoded import Decoded
from advisor.ingest.snapshot_learned import UNKNOWN, Learned
from advisor.ingest.snapshot_rows import EventRow, EventRows, event_row
from advisor.ingest.snapshot_stacks import StackTable

MOST_SINGLE_EVENTS = 4_000
"""Events that may be read one by one, whatever share of all they are: the first occurrences of stacks."""

MOST_SINGLE_SHARE = 0.02
"""Where more than this share has to be read one by one, loading the pickle whole is faster: an event takes then a fiftieth of the time.

Three of a thousand are read so because a frame of the pickle begins in them."""

WITHIN_EVENTS = 3
"""The level of containers of an event's values: the file, the devices, a device's events."""


class EventRuns:
    """Reads events; what it learns from one device serves the next.

    Args:
        stacks / categories / texts: where stacks and names are interned.

    Attributes:
        learned: from the events so far.
        event_count / single_count: events so far, and those that were read one by one.
        event_offset: where in the pickle the event stands that is being read; None while none is.
        run_bytes: of the pickle, that were read in runs.
    """

    def __init__(self, stacks: StackTable, categories: Names, texts: Names) -> None:
        self.learned = Learned()
        self.event_count = self.single_count = self.run_bytes = 0
        self.event_offset: int | None = None
        self._stacks, self._categories, self._texts = stacks, categories, texts
        self._depth = np.zeros(0, np.int64)
        self._decoded: Decoded | None = None
        self._is_next_unknown = False

    def remember(self, memo: dict[int, object]) -> None:
        """Learn the stacks that were interned before the first event."""
        for entry, value in memo.items():
            if type(value) is list and (stack := self._stacks.remembered(value)) is not None:
                self.learned.stacks.put(entry, stack)

    def read(self, pickled: PickleValues, rows: EventRows) -> None:
        """Read a batch of events, from behind its mark, and the batches that follow it at once.

        Raises:
            NotStreamableError: there is something wrong with an event, or too many are unlike those before.
        """
        while pickled.opcode() != APPENDS:
            self.event_offset = pickled.offset
            if not self._read_run(pickled, rows):
                self._read_one(pickled, rows)
        self.event_offset = None
        pickled.position += 1

    def add(self, event: object, rows: EventRows) -> EventRow:
        """Append an event that was read to its end."""
        if type(event) is not dict:
            raise NotStreamableError("an event that is no dictionary")
        frames = event.get("frames")
        self._stacks.budget.spend(len(frames) if type(frames) is list else 0)
        row = event_row(event, self._stacks, self._categories, self._texts)
        if self._stacks.problems:
            raise NotStreamableError("something is wrong with a stack")
        rows.add(row)
        self.event_count += 1
        self.single_count += 1
        if self.single_count > MOST_SINGLE_EVENTS + MOST_SINGLE_SHARE * self.event_count:
            raise NotStreamableError("events that are unlike each other")
        return row

    def _read_one(self, pickled: PickleValues, rows: EventRows) -> None:
        begin, window_number, first_entry = pickled.position, pickled.window_number, pickled.memo_count
        if pickled.opcode() != EMPTY_DICT:
            raise NotStreamableError("an event that is not spelled out")
        pickled.position += 1
        if pickled.opcode() == MEMOIZE:
            # It is not kept: whoever refers to an event that is gone is not read in pieces.
            pickled.memo_count += 1
            pickled.position += 1
        if pickled.opcode() != MARK:
            raise NotStreamableError("an event of one key")
        pickled.position += 1
        items, closing = pickled.values(WITHIN_EVENTS, [], [])
        if closing != SETITEMS:
            raise NotStreamableError("an event that is no dictionary")
        event = pairs(items)
        row = self.add(event, rows)
        frames = event.get("frames")
        for entry in range(first_entry, pickled.memo_count) if type(frames) is list else ():
            if pickled.memo.get(entry) is frames:
                self.learned.stacks.put(entry, row.stack)
        if pickled.window_number == window_number:
            self._learn(pickled, begin, row, frames)

    def _learn(self, pickled: PickleValues, begin: int, row: EventRow, frames: object) -> None:
        """Learn from an event of this window that was read alone."""
        decoded = self._decoded
        if decoded and decoded.window_number == pickled.window_number:
            place = decoded.place(begin)
            if place is not None and decoded.found.is_sound[place]:
                decoded.teach(place, row, self.learned)
                if type(frames) is list and (spelled := decoded.list_bytes(place)):
                    self.learned.learn_list(spelled, row.stack, frames)
                return
        raw = pickled.buffer[begin : pickled.position]
        list_begin = self.learned.learn_shape(raw, pickled.memo)
        if list_begin is not None and type(frames) is list:
            self.learned.learn_list(raw[list_begin:], row.stack, frames)

    def _read_run(self, pickled: PickleValues, rows: EventRows) -> bool:
        """Take the events from here on that are like others; False if the next one is not."""
        if not self.learned.shapes or self._is_next_unknown:
            self._is_next_unknown = False
            return False
        decoded = self._decoded
        if not decoded or not decoded.is_of(pickled.window_number, self.learned):
            decoded = self._decoded = Decoded(pickled, self.learned)
        place = decoded.place(pickled.position)
        if place is None:
            return False
        stop = decoded.stop_from(place, self.learned)
        taken = self._take(decoded, slice(place, stop), pickled, rows) if stop > place else 0
        self._is_next_unknown = 0 < taken < stop - place
        if not taken:
            return False
        # Behind the last one of the run; between two batches, behind the mark of the next one.
        last = place + taken - 1
        end = int(decoded.found.begin[last + 1] if decoded.is_joined[last] else decoded.found.end[last])
        self.run_bytes += end - pickled.position
        pickled.position = end
        return True

    def _take(self, decoded: Decoded, run: slice, pickled: PickleValues, rows: EventRows) -> int:
        """Append candidates up to the first one that fetches something unknown; returns how many that are."""
        found, learned = decoded.found, self.learned
        memo_count = decoded.memo_count[run]
        next_entry = pickled.memo_count + np.cumsum(memo_count)  # behind each event
        made = np.flatnonzero(decoded.makes_list[run])
        learned.stacks.put_all(next_entry[made] - 1, decoded.stack[run][made])
        fetched = found.frames[run]
        stack = np.where(fetched == ABSENT, decoded.stack[run], learned.stacks.get_all(fetched))
        is_unknown = (stack == UNKNOWN) | (found.newest[run] >= next_entry - memo_count)
        taken = int(np.argmax(is_unknown)) if is_unknown.any() else len(is_unknown)
        learned.stacks.put_all(next_entry[made[made >= taken]] - 1, UNKNOWN)
        self._stacks.budget.spend(int(self._depths(stack[:taken]).sum()))
        numbers = found.numbers
        rows.extend(
            [
                column[:taken]
                for column in (
                    decoded.action[run],
                    numbers["addr"][run],
                    numbers["size"][run],
                    np.maximum(numbers["stream"][run], 0),
                    stack,
                    numbers["time_us"][run],
                    decoded.category[run],
                    decoded.text[run],
                )
            ]
        )
        pickled.memo_count += int(memo_count[:taken].sum())
        self.event_count += taken
        return taken

    def _depths(self, stack: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many frames each stack has."""
        known = len(self._depth)
        if known < len(self._stacks.stacks):
            more = [len(frames) for frames in self._stacks.stacks[known:]]
            self._depth = np.append(self._depth, np.array(more, np.int64))
        depths: NDArray[np.int64] = np.where(stack >= 0, self._depth[np.maximum(stack, 0)], 0) if len(self._depth) else np.zeros_like(stack)
        return depths
