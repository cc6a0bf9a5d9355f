"""What was learned from the events of a pickle that were read one by one, for those that are like them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.ingest.snapshot_candidates import ABSENT
from advisor.ingest.snapshot_shapes import STACK, EventShape, shape_of
from advisor.model.snapshot import NOT_RECORDED

MOST_SHAPES = 4
"""Shapes that are tried on every candidate; events of other shapes are read one by one."""

MOST_TRIES = 100
"""Events in which no new shape was found, after which none is looked for: what differs then are frames of the pickle within events."""

UNKNOWN = -2
"""Stands where an entry of the memo, a list of frames or a text was not met before."""


class Meanings:
    """What entries of the memo mean as a code: a stack, an action, a category, a text."""

    def __init__(self) -> None:
        self._codes = np.full(1024, UNKNOWN, np.int32)

    def put(self, entry: int, code: int) -> None:
        """Tell what an entry means."""
        self._reach(entry)
        self._codes[entry] = code

    def put_all(self, entries: NDArray[np.int64], codes: NDArray[np.int64] | int) -> None:
        """Tell what entries mean, given in rising order."""
        if len(entries):
            self._reach(int(entries[-1]))
            self._codes[entries] = codes

    def get(self, entry: int) -> int:
        """What an entry means; UNKNOWN where that was not told."""
        return int(self._codes[entry]) if entry < len(self._codes) else UNKNOWN

    def get_all(self, entries: NDArray[np.int64]) -> NDArray[np.int32]:
        """What entries mean; UNKNOWN where that was not told, NOT_RECORDED where they are ABSENT."""
        # The last code is never told, so that what is beyond it, and what is absent, leads there.
        codes = self._codes[np.minimum(entries, len(self._codes) - 1)]
        codes[entries == ABSENT] = NOT_RECORDED
        return codes

    def _reach(self, entry: int) -> None:
        if entry >= len(self._codes) - 1:
            self._codes = np.append(self._codes, np.full(entry + 1, UNKNOWN, np.int32))


class Learned:
    """Shapes of events, and what their parts mean.

    Bytes that spell out a list of frames mean the same wherever they occur, because they fetch every frame from the memo, and the memo
    only grows.

    Attributes:
        shapes: the shapes of events, the first one first.
        stacks / actions / categories / texts: what entries of the memo mean.
        list_codes: of the bytes of a list of frames and the event's end: twice the stack, and one more if the list is memoized.
        text_codes: of the bytes of a text.
    """

    def __init__(self) -> None:
        self.shapes: list[EventShape] = []
        self.stacks, self.actions, self.categories, self.texts = Meanings(), Meanings(), Meanings(), Meanings()
        self.list_codes: dict[bytes, int] = {}
        self.text_codes: dict[bytes, int] = {}
        self._frames: dict[int, list[object]] = {}
        self._tries = 0

    def frames_of(self, entry: int) -> list[object] | None:
        """The frames of a list that an event of a run made as this entry of the memo; None if none did."""
        stack = self.stacks.get(entry)
        return list(self._frames[stack]) if stack in self._frames else None

    def learn_shape(self, raw: bytes, memo: Mapping[int, object]) -> int | None:
        """Learn the shape of an event.

        Args:
            raw: its bytes, whole.
            memo: the memo behind it.

        Returns:
            Where in it the list of frames begins, or its end if it has none; None if it has no shape that others can share.
        """
        if self._tries == MOST_TRIES:
            return None
        self._tries += 1
        found = shape_of(raw, memo)
        if found is None:
            return None
        shape, list_begin = found
        if shape not in self.shapes and len(self.shapes) < MOST_SHAPES:
            self.shapes.append(shape)
            self._tries = 0
        return list_begin

    def learn_list(self, raw: bytes, stack: int, frames: list[object]) -> None:
        """Learn what the bytes mean that spell out a list of frames, up to the event's end."""
        if spelled := STACK.fullmatch(raw):
            self.list_codes[raw] = 2 * stack + bool(spelled[1])
            self._frames.setdefault(stack, frames)
