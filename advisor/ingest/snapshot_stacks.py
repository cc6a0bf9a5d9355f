"""Intern the stacks of a snapshot: every distinct frame and every distinct stack once."""

from collections import Counter

from advisor.ingest.snapshot_budget import Budget
from advisor.model.failure import Frame
from advisor.model.snapshot import NOT_RECORDED

MOST_REMEMBERED = 200_000
"""Stacks remembered by the identity of their frames; more are frames that are not shared (as in JSON), and would only cost memory."""

MOST_CHARACTERS = 1_000
"""A file or function name is cut here; C++ names with all their template arguments reach 2,000."""


class StackTable:
    """Distinct frames and stacks, in the order in which they were first seen.

    Equal frames of a pickled snapshot are one and the same dictionary, so a stack is recognized by the identities of its frames; the
    table keeps those frames alive, lest another dictionary comes to have their identity.

    Args:
        budget: what every frame of every stack is taken from.

    Attributes:
        problems: what was wrong with frames, by kind, counted.
        budget: the same, for what else the input holds.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.frames: list[Frame] = []
        self.stacks: list[tuple[int, ...]] = []
        self.problems: Counter[str] = Counter()
        self._frame_of: dict[tuple[str, str, int], int] = {}
        self._stack_of: dict[tuple[int, ...], int] = {}
        self._remembered: dict[tuple[int, ...], int] = {}
        self._alive: list[object] = []

    def index(self, frames: object) -> int:
        """The index of a stack given as the snapshot has it, innermost first; NOT_RECORDED where it is no list."""
        if type(frames) is not list:
            if frames is not None:
                self.problems["stacks that are no lists"] += 1
            return NOT_RECORDED
        self.budget.spend(len(frames))
        key = tuple(map(id, frames))
        found = self._remembered.get(key)
        if found is not None:
            return found
        stack = tuple([self._frame(frame) for frame in frames])
        found = self._stack_of.setdefault(stack, len(self.stacks))
        if found == len(self.stacks):
            self.stacks.append(stack)
        if len(self._remembered) < MOST_REMEMBERED:
            self._remembered[key] = found
            self._alive.append(frames)
        return found

    def remembered(self, frames: list[object]) -> int | None:
        """The index of a stack of the very same frames that was asked for before; None if there was none."""
        return self._remembered.get(tuple(map(id, frames)))

    def column(self, entries: list[dict[str, object]]) -> list[int]:
        """The stack of every entry, by its `frames`.

        A program runs in loops: an event has mostly the stack of the one before, or the one that came after it the last time.
        Comparing two lists of the same dictionaries takes a tenth of the time that building a key from them does, so these two are
        tried first.
        """
        nothing: tuple[list[object], int] = ([], NOT_RECORDED)
        following: dict[int, tuple[list[object], int]] = {}
        empty = NOT_RECORDED
        last = nothing
        column = []
        for entry in entries:
            frames = entry.get("frames")
            if frames and type(frames) is list:
                self.budget.spend(len(frames))  # also what is only compared takes time
                if frames != last[0]:
                    guess = following.get(last[1], nothing)
                    if frames != guess[0]:
                        guess = (frames, self.index(frames))
                        following[last[1]] = guess
                    last = guess
                column.append(last[1])
            else:
                # Of a thread without Python frames, or not recorded; what it interrupts goes on afterwards.
                if frames == [] and empty == NOT_RECORDED:
                    empty = self.index([])
                column.append(empty if frames == [] else self.index(frames))
        return column

    def _frame(self, frame: object) -> int:
        fields: dict[object, object] = frame if type(frame) is dict else {}
        line = fields.get("line")
        key = (
            self._text(fields.get("filename")),
            self._text(fields.get("name")),
            line if type(line) is int and 0 <= line < 1 << 31 else 0,
        )
        found = self._frame_of.setdefault(key, len(self.frames))
        if found == len(self.frames):
            self.frames.append(Frame(filename=key[0], line=key[2], function=key[1]))
        return found

    def _text(self, value: object) -> str:
        if type(value) is not str:
            self.problems["frames without a file or function name"] += 1
            return ""
        return value[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
