"""Read the values of a pickle one after the other, from a window of its bytes, in the one form in which picklers write plain data.

This machine knows the opcodes that Python's picklers use for plain data in protocols 4 and 5, and those only where they use them: a
container is filled right after it was made, keys are texts or whole numbers, the memo grows by one. Nothing can be called or imported,
for there is no opcode that does. Whatever else a pickle holds (it may be valid, damaged or hostile) is not judged here but raises
`NotStreamableError`; the general reader then gives the answer.
"""

from struct import Struct
from typing import BinaryIO, TypeAlias

WINDOW_BYTES = 1024 * 1024
"""How much is read at a time: what is made of it stays in the cache of a core."""

MARGIN_BYTES = 64 * 1024
"""So many bytes lie behind the place where a value begins, zeros behind the file's end; no single number or text may be longer."""

DEEPEST = 40
"""Levels of containers that are followed; a snapshot has seven."""

APPEND, APPENDS, BINGET, BINFLOAT, BININT, BININT1, BININT2, BINUNICODE = b"aehGJKMX"
EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE, LONG_BINGET, MARK, NONE, SETITEM, SETITEMS, STOP = b"}])j(Nsu."
TUPLE1, TUPLE2, TUPLE3, NEWTRUE, NEWFALSE, LONG1, SHORT_BINUNICODE, MEMOIZE, FRAME = b"\x85\x86\x87\x88\x89\x8a\x8c\x94\x95"

MOST_OUTER = 2
"""The level of containers up to which it matters which container is which: the file, its histories."""

FRAME_HEAD_BYTES = 9

_UINT2 = Struct("<H").unpack_from
_UINT4 = Struct("<I").unpack_from
_INT4 = Struct("<i").unpack_from
_FLOAT8 = Struct(">d").unpack_from
_UINT8 = Struct("<Q").unpack_from

Values: TypeAlias = list[object]


class NotStreamableError(Exception):
    """The pickle is not of the form that is read in pieces; says nothing about whether it is sound."""


class Memo(dict[int, object]):
    """What was made so far, by its number; what was not kept is not streamable."""

    def __missing__(self, number: int) -> object:
        raise NotStreamableError(f"entry {number} of the memo was not kept")


class PickleValues:
    """A pickle of which the values are read in order, from a place on at which an opcode stands.

    Args:
        stream: the pickle, from that place to its end.
        begin: where in the pickle the place is.
        input_bytes: how long the pickle is, whole.
        memo: what was made before, by its number.
        memo_count: how many entries that would be if all of them had been kept.

    Attributes:
        buffer / position: a window of the pickle, and where in it the next opcode stands.
        limit: a position behind which the window has to be moved on first.
        window_number: counts the windows.
        memo / memo_count: as above, with what was read since.
    """

    def __init__(self, stream: BinaryIO, begin: int, input_bytes: int, memo: Memo, memo_count: int) -> None:
        self.memo = memo
        self.memo_count = memo_count
        self.buffer = b""
        self.position = 0
        self.limit = -1
        self.window_number = 0
        self._stream = stream
        self._begin = begin
        self._input_bytes = input_bytes

    @property
    def offset(self) -> int:
        """Where in the pickle the next opcode stands."""
        return self._begin + self.position

    def refill(self) -> None:
        """Move the window on to the next opcode; `position` changes, `offset` does not."""
        self._begin += self.position
        pieces = [self.buffer[self.position :]]
        length = len(pieces[0])
        while length <= MARGIN_BYTES:
            # Zeros are no opcode: whatever runs over the file's end fails there.
            pieces.append(self._stream.read(WINDOW_BYTES) or bytes(MARGIN_BYTES + 1))
            length += len(pieces[-1])
        self.buffer = b"".join(pieces)
        self.position = 0
        self.limit = len(self.buffer) - MARGIN_BYTES
        self.window_number += 1

    def opcode(self) -> int:
        """The next opcode, frames skipped; the window reaches far enough behind it."""
        while True:
            if self.position > self.limit:
                self.refill()
            code = self.buffer[self.position]
            if code != FRAME:
                return code
            self.position = self._behind_frame_head(self.position)

    def _behind_frame_head(self, position: int) -> int:
        behind = position + FRAME_HEAD_BYTES
        (frame_bytes,) = _UINT8(self.buffer, position + 1)
        if self._begin + behind + frame_bytes > self._input_bytes:
            raise NotStreamableError("a frame that is longer than the file")
        return behind

    def values(  # noqa: C901, PLR0912, PLR0915 - one branch an opcode; calls would double the time
        self, depth: int, items: Values, opened: Values
    ) -> tuple[Values, int]:
        """Read values up to the opcode that ends their level.

        Args:
            depth: of their level.
            items: those of this level that were read before.
            opened: of these the containers that may still be filled.

        Returns:
            All values of the level, and the opcode that ends it.
        """
        outer: list[tuple[Values, Values]] = []  # items and opened containers of the levels around it
        push, memo = items.append, self.memo
        buffer, position, limit = self.buffer, self.position, self.limit
        while True:
            if position > limit:
                self.position = position
                self.refill()
                buffer, position, limit = self.buffer, 0, self.limit
            code = buffer[position]
            if code == BINGET:
                push(memo[buffer[position + 1]])
                position += 2
            elif code == LONG_BINGET:
                push(memo[_UINT4(buffer, position + 1)[0]])
                position += 5
            elif code == MEMOIZE:
                if not items:
                    raise NotStreamableError("nothing to memoize")
                if depth > MOST_OUTER or self.is_kept(items[-1]):
                    memo[self.memo_count] = items[-1]
                self.memo_count += 1
                position += 1
            elif code == BININT1:
                push(buffer[position + 1])
                position += 2
            elif code == MARK:
                if not items or not opened or opened[-1] is not items[-1]:
                    raise NotStreamableError("a mark that is not behind a new container")
                position += 1
                if depth <= MOST_OUTER and self.is_read_by_others(items[-1], depth):
                    self.position = position
                    self.read_by_others(items[-1])
                    buffer, position, limit = self.buffer, self.position, self.limit
                    continue
                if depth == DEEPEST:
                    raise NotStreamableError("deep nesting")
                depth += 1
                outer.append((items, opened))
                items, opened = [], []
                push = items.append
            elif code == EMPTY_DICT:
                new: object = {}
                push(new)
                opened.append(new)
                position += 1
            elif code == SETITEMS or code == APPENDS:  # noqa: PLR1714, SIM109 - a tuple of names would be made each time
                position += 1
                if not outer:
                    self.position = position
                    return items, code
                depth -= 1
                inner = items
                items, opened = outer.pop()
                push = items.append
                target = items[-1]
                if code == SETITEMS and type(target) is dict:
                    target.update(pairs(inner))
                elif code == APPENDS and type(target) is list:
                    target.extend(inner)
                else:
                    self.put(target, inner, code)
            elif code == BININT:
                push(_INT4(buffer, position + 1)[0])
                position += 5
            elif code == LONG1:
                end = position + 2 + buffer[position + 1]
                push(int.from_bytes(buffer[position + 2 : end], "little", signed=True))
                position = end
            elif code == BININT2:
                push(_UINT2(buffer, position + 1)[0])
                position += 3
            elif code == EMPTY_LIST:
                new = [] if depth > MOST_OUTER else self.new_list(items, depth)
                push(new)
                opened.append(new)
                position += 1
            elif code == SHORT_BINUNICODE:
                end = position + 2 + buffer[position + 1]
                push(_text(buffer[position + 2 : end]))
                position = end
            elif code == APPEND or code == SETITEM:  # noqa: PLR1714, SIM109 - the same
                parts = items[-1:] if code == APPEND else items[-2:]
                del items[-len(parts) :]
                while opened and any(opened[-1] is part for part in parts):
                    opened.pop()
                if not items or not opened or opened[-1] is not items[-1]:
                    raise NotStreamableError("an item for something that is not new")
                self.put(items[-1], parts, APPENDS if code == APPEND else SETITEMS)
                position += 1
            elif code in (TUPLE1, TUPLE2, TUPLE3):
                size = code - TUPLE1 + 1
                parts = items[-size:]
                if len(parts) < size or any(type(part) not in (int, str) for part in parts):
                    raise NotStreamableError("a tuple of other things than numbers and texts")
                items[-size:] = [tuple(parts)]
                position += 1
            elif code in (NONE, NEWTRUE, NEWFALSE):
                push(None if code == NONE else code == NEWTRUE)
                position += 1
            elif code == EMPTY_TUPLE:
                push(())
                position += 1
            elif code == BINFLOAT:
                push(_FLOAT8(buffer, position + 1)[0])
                position += 9
            elif code == BINUNICODE:
                (size,) = _UINT4(buffer, position + 1)
                if size > MARGIN_BYTES // 2:
                    raise NotStreamableError("a long text")
                push(_text(buffer[position + 5 : position + 5 + size]))
                position += 5 + size
            elif code == FRAME:
                position = self._behind_frame_head(position)
            else:
                raise NotStreamableError(f"opcode {code:#x}")

    def is_read_by_others(self, target: object, depth: int) -> bool:  # noqa: ARG002 - for those who read some things otherwise
        """Whether what a new container at one of the outer levels holds is not to be read as values."""
        return False

    def read_by_others(self, target: object) -> None:
        """Read what such a container holds, from behind its mark."""

    def put(self, target: object, items: Values, closing: int) -> None:
        """Put values into a new container."""
        if closing == APPENDS and type(target) is list:
            target.extend(items)
        elif closing == SETITEMS and type(target) is dict:
            target.update(pairs(items))
        else:
            raise NotStreamableError("a container is closed as another kind")

    def new_list(self, items: Values, depth: int) -> Values:  # noqa: ARG002 - for those who know what stands where
        """An empty list of one of the outer levels."""
        return []

    def is_kept(self, value: object) -> bool:  # noqa: ARG002 - for those who do not keep all
        """Whether what is memoized can be asked for again."""
        return True


def pairs(items: Values) -> dict[object, object]:
    """Keys and values in turn as a dictionary; of an equal key the last value counts, as for the unpickler."""
    keys = items[::2]
    if len(items) % 2 or not set(map(type, keys)) <= {str, int}:
        raise NotStreamableError("keys that are no texts or numbers")
    return dict(zip(keys, items[1::2], strict=True))


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise NotStreamableError("a text that is none") from None
