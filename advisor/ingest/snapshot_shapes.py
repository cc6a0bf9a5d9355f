"""The shape of a pickled event: which bytes are the same in all events of its kind, and where its numbers stand."""

import enum
import re
from collections.abc import Mapping

from advisor.ingest.pickle_values import LONG1, MARK, SETITEMS
from advisor.ingest.snapshot_columns import INTERNAL
from advisor.model.dataclass import dataclass

NUMBERS = ("addr", "size", "stream", "time_us")
"""Keys under which a number is kept."""

TEXTS = ("action", "category", "user_metadata")
"""Keys under which a text is kept; of all others only the length matters here."""

FRAMES = "frames"

ONLY_ONE_BY_ONE = ("device_free", INTERNAL)
"""Keys that only `oom` events have, and only those that the allocator tagged: so few that they are read one by one."""

MOST_FIELDS = 20

_GET = re.compile(rb"h.|j.{4}", re.DOTALL)
_NUMBER = re.compile(rb"K.|M..|J.{4}", re.DOTALL)
_SHORT_TEXT = b"\x8c"
_PAIR_END = b"\x86"
_MEMOIZE = b"\x94"
_CONSTANTS = b"N\x88\x89"

STACK = re.compile(rb"\](\x94?)(?:\((?:h.|j.{4})+e|(?:h.|j.{4})a)?u", re.DOTALL)
"""A list of frames that were all seen before, and the event's end; group 1 tells whether the list can be asked for again."""


class Kind(enum.Enum):
    """What stands under a key."""

    NUMBER = enum.auto()
    TEXT = enum.auto()
    PAIR = enum.auto()
    CONSTANT = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A key of an event and what is expected under it.

    Attributes:
        key: the opcode that fetches the key from the memo.
        name: the key.
        kind: what follows.
        is_memoized: whether a text or pair that is spelled out is memoized.
    """

    key: bytes
    name: str
    kind: Kind
    is_memoized: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EventShape:
    """Events that have the same keys in the same order.

    Attributes:
        head: the bytes up to the first key.
        fields: all but the frames.
        frames_key: the opcode that fetches the key of the frames, which come last; None where these events have none.
    """

    head: bytes
    fields: tuple[Field, ...]
    frames_key: bytes | None


def shape_of(raw: bytes, memo: Mapping[int, object]) -> tuple[EventShape, int] | None:
    """The shape of an event, and where in it the list of frames begins (or its end, where it has none).

    Args:
        raw: the event, from the opcode that makes the dictionary to the one that fills it.
        memo: what the numbers fetch.

    Returns:
        None if it has no shape that others can share: a key is spelled out, the frames are not the last, or a frame of the pickle begins
        in it.
    """
    head = raw[:3] if raw[1:2] == _MEMOIZE else raw[:2]
    if head[-1] != MARK:
        return None
    at = len(head)
    fields: list[Field] = []
    frames_key = None
    while raw[at] != SETITEMS:
        key = _GET.match(raw, at)
        name = memo[_number_of(key.group())] if key else None
        if not key or type(name) is not str or name in ONLY_ONE_BY_ONE or len(fields) == MOST_FIELDS:
            return None
        at = key.end()
        if name == FRAMES:
            frames_key = key.group()
            break
        found = _value(raw, at)
        if found is None:
            return None
        kind, at, is_memoized = found
        if kind is not (Kind.NUMBER if name in NUMBERS else Kind.TEXT if name in TEXTS else kind):
            return None
        fields.append(Field(key=key.group(), name=name, kind=kind, is_memoized=is_memoized))
    names = [field.name for field in fields]
    if len(set(names)) < len(names) or not {"action", "size"} <= set(names):
        return None
    return EventShape(head=head, fields=tuple(fields), frames_key=frames_key), at


def _number_of(get: bytes) -> int:
    return int.from_bytes(get[1:], "little")


def _value(raw: bytes, at: int) -> tuple[Kind, int, bool] | None:
    """What stands at a place, where it ends, and whether it is memoized."""
    if end := _end_of_number(raw, at):
        second = _end_of_number(raw, end)
        if second and raw[second : second + 1] == _PAIR_END:
            return _memoized(raw, Kind.PAIR, second + 1)
        return Kind.NUMBER, end, False
    if raw[at : at + 1] == _SHORT_TEXT:
        return _memoized(raw, Kind.TEXT, at + 2 + raw[at + 1])
    if get := _GET.match(raw, at):
        # Whether such a text would be memoized is not seen; picklers memoize all of them.
        return Kind.TEXT, get.end(), True
    if raw[at] in _CONSTANTS:
        return Kind.CONSTANT, at + 1, False
    return None


def _memoized(raw: bytes, kind: Kind, end: int) -> tuple[Kind, int, bool]:
    is_memoized = raw[end : end + 1] == _MEMOIZE
    return kind, end + is_memoized, is_memoized


def _end_of_number(raw: bytes, at: int) -> int:
    if raw[at] == LONG1:
        return at + 2 + raw[at + 1]
    number = _NUMBER.match(raw, at)
    return number.end() if number else 0
