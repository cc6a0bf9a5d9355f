"""Decode all events of a window of a pickle at once, by their shapes.

Every place where the first bytes of an event stand is a candidate. From there the numbers are decoded for all candidates together, field
after field; what does not fit a shape is not sound and is left to be read opcode by opcode. Whether a candidate is an event at all (the
bytes could stand in a text or in a number) is not known here: it is one where another event ends.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from advisor.ingest.pickle_values import BININT, BININT1, BININT2, EMPTY_DICT, EMPTY_LIST, LONG1, MEMOIZE, SETITEMS, SHORT_BINUNICODE
from advisor.ingest.snapshot_columns import LARGEST_ADDRESS, LARGEST_BYTES
from advisor.ingest.snapshot_shapes import EventShape, Field, Kind
from advisor.model.dataclass import dataclass
from advisor.model.snapshot import NOT_RECORDED

Places: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]

WORD_BYTES = 8

ABSENT = -1
"""Stands where an event fetches nothing from the memo."""

MOST = {"addr": LARGEST_ADDRESS, "size": LARGEST_BYTES, "stream": LARGEST_ADDRESS, "time_us": LARGEST_ADDRESS}

MOST_LONG_BYTES = 7
"""Bytes of a longer number are not decoded here: no address and no time needs more."""

_MASKS = np.array([(1 << (8 * count)) - 1 for count in range(WORD_BYTES)], np.uint64)
_SIGNS = np.array([0] + [1 << (8 * count - 1) for count in range(1, WORD_BYTES)], np.uint64)
_HIGH_BITS = np.uint64(0x8080808080808080)
_TOO_LONG = WORD_BYTES
_NUMBER_BYTES = np.full(256, _TOO_LONG, np.int64)
_NUMBER_BYTES[[BININT1, BININT2, BININT]] = 1, 2, 4
_GET_BYTES = np.zeros(256, np.int64)
_GET_BYTES[list(b"hj")] = 1, 4
_IS_CONSTANT = np.zeros(256, np.bool_)
_IS_CONSTANT[list(b"N\x88\x89")] = True
_END_OF_PAIR = b"\x86"


class Window:
    """The bytes of a pickle, one by one and as the number that eight of them are from any place on."""

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.bytes = np.frombuffer(buffer, np.uint8)
        self.words: Words = np.ndarray(len(buffer) - WORD_BYTES + 1, "<u8", buffer, 0, (1,))

    def word(self, at: Places) -> Words:
        """The eight bytes from each place on."""
        return self.words[np.minimum(at, len(self.words) - 1)]

    def begins(self, head: bytes, position: int) -> Places:
        """Every place from a position on where these bytes stand."""
        at = np.flatnonzero(self.bytes[position : len(self.words)] == EMPTY_DICT) + position
        return at[_starts_with(self.words[at], head)]


@dataclass(slots=True)
class Candidates:
    """Columns of candidates; a number is its own, a text the number of its entry in the memo.

    Attributes:
        begin / end: of the event, as places in the window.
        is_sound: everything about it is known but how a list of frames that is spelled out reads.
        numbers: address, size, stream, time.
        texts: entries of the memo: action, category, user_metadata; ABSENT where there is none.
        frames: entry of the memo that is the list of frames; ABSENT where it is spelled out or there is none.
        newest: largest entry of the memo that it fetches.
        memo_count: entries of the memo that it makes, those of a list that is spelled out not counted.
        text_begin / text_end: where a `user_metadata` stands that is spelled out.
        list_begin: where the list of frames stands that is spelled out; ABSENT where there is none.
    """

    begin: Places
    end: Places
    is_sound: Flags
    numbers: dict[str, Places]
    texts: dict[str, Places]
    frames: Places
    newest: Places
    memo_count: Places
    text_begin: Places
    text_end: Places
    list_begin: Places


def candidates(window: Window, position: int, shapes: Sequence[EventShape]) -> Candidates:
    """All candidates of a window from a position on."""
    begin = window.begins(shapes[0].head, position)
    following = np.append(begin[1:], ABSENT)
    found = _nothing(begin)
    rows: Places = np.arange(len(begin))
    for shape in shapes:
        if not len(rows):
            break
        decoded = _decoded(window, shape, begin[rows], following[rows])
        _keep(found, decoded, rows)
        rows = rows[~decoded.is_sound]
    return found


def _nothing(begin: Places) -> Candidates:
    def absent() -> Places:
        return np.full(len(begin), ABSENT)

    return Candidates(
        begin=begin,
        end=absent(),
        is_sound=np.zeros(len(begin), np.bool_),
        numbers={name: np.full(len(begin), NOT_RECORDED) for name in MOST},
        texts={name: absent() for name in ("action", "category", "user_metadata")},
        frames=absent(),
        newest=absent(),
        memo_count=np.zeros(len(begin), np.int64),
        text_begin=absent(),
        text_end=absent(),
        list_begin=absent(),
    )


def _keep(found: Candidates, decoded: Candidates, rows: Places) -> None:
    """Take over those that are sound."""
    sound = decoded.is_sound
    at = rows[sound]
    for name in ("end", "is_sound", "frames", "newest", "memo_count", "text_begin", "text_end", "list_begin"):
        getattr(found, name)[at] = getattr(decoded, name)[sound]
    for mine, theirs in ((found.numbers, decoded.numbers), (found.texts, decoded.texts)):
        for name, column in mine.items():
            column[at] = theirs[name][sound]


def _decoded(window: Window, shape: EventShape, begin: Places, following: Places) -> Candidates:
    found = _nothing(begin)
    found.is_sound |= _starts_with(window.words[begin], shape.head)
    found.memo_count += shape.head[1] == MEMOIZE
    at = begin + len(shape.head)
    for field in shape.fields:
        code = _opcode(window, field.key, at, found.is_sound)
        at = at + len(field.key)
        if field.kind is Kind.NUMBER:
            at, value = _number(window, at, code, found.is_sound)
            if field.name in MOST:
                found.is_sound &= value <= MOST[field.name]
                found.numbers[field.name] = value
        elif field.kind is Kind.TEXT:
            at = _text(window, field, at, code, found)
        elif field.kind is Kind.PAIR:
            at, _ = _number(window, at, code, found.is_sound)
            at, _ = _number(window, at, _byte(window.word(at), 0), found.is_sound)
            closing = _END_OF_PAIR + bytes([MEMOIZE] * field.is_memoized)
            found.is_sound &= _starts_with(window.word(at), closing)
            found.memo_count += field.is_memoized
            at = at + len(closing)
        else:
            found.is_sound &= _IS_CONSTANT[code]
            at = at + 1
    _find_end(window, shape, at, following, found)
    found.is_sound &= found.end < len(window.words)
    return found


def _opcode(window: Window, key: bytes, at: Places, is_sound: Flags) -> Places:
    """The opcode behind a key; where another key stands, the event is not sound."""
    word = window.word(at)
    is_sound &= _starts_with(word, key)
    return _byte(word, len(key))


def _starts_with(word: Words, expected: bytes) -> Flags:
    result: Flags = (word & _MASKS[len(expected)]) == np.uint64(int.from_bytes(expected, "little"))
    return result


def _byte(word: Words, number: int) -> Places:
    result: Places = ((word >> np.uint64(8 * number)) & _MASKS[1]).astype(np.int64)
    return result


def _number(window: Window, at: Places, code: Places, is_sound: Flags) -> tuple[Places, Places]:
    """Where numbers end, and they themselves; negative ones are not sound."""
    word = window.word(at + 1)
    size = _NUMBER_BYTES[code]
    is_long = code == LONG1
    if is_long.any():
        size = np.where(is_long, (word & _MASKS[1]).astype(np.int64), size)
        word = np.where(is_long, word >> np.uint64(8), word)
    is_sound &= size <= MOST_LONG_BYTES
    size = np.minimum(size, MOST_LONG_BYTES)
    word = word & _MASKS[size]
    is_sound &= ((word & _SIGNS[size]) == 0) | ~(is_long | (code == BININT))
    return at + 1 + is_long + size, word.view(np.int64)


def _text(window: Window, field: Field, at: Places, code: Places, found: Candidates) -> Places:
    """Where texts end; those of the kept keys are noted."""
    word = window.word(at + 1)
    get_bytes = _GET_BYTES[code]
    is_get = get_bytes > 0
    entry = np.where(is_get, (word & _MASKS[get_bytes]).view(np.int64), ABSENT)
    np.maximum(found.newest, entry, out=found.newest)
    spelled_bytes = (word & _MASKS[1]).astype(np.int64)
    end = at + 2 + spelled_bytes
    if field.name in found.texts:
        found.texts[field.name] = entry
    if field.name == "user_metadata":
        found.text_begin = np.where(is_get, ABSENT, at + 2)
        found.text_end = np.where(is_get, ABSENT, end)
    if is_get.all():
        return at + 1 + get_bytes
    closing = bytes([MEMOIZE] * field.is_memoized)
    is_spelled = (code == SHORT_BINUNICODE) & _starts_with(window.word(end), closing)
    if field.name in ("action", "category"):
        is_spelled[:] = False  # seen once each, and never again
    elif field.name != "user_metadata":
        is_spelled &= _is_ascii(window, at + 2, np.where(is_spelled, spelled_bytes, 0))
    found.is_sound &= is_get | is_spelled
    found.memo_count += is_spelled & field.is_memoized
    return np.where(is_get, at + 1 + get_bytes, end + len(closing))


def _is_ascii(window: Window, at: Places, size: Places) -> Flags:
    """Which texts are ASCII: any other could be no text at all, and a pickle that holds that is damaged."""
    result = np.ones(len(at), np.bool_)
    for done in range(0, int(size.max(initial=0)), MOST_LONG_BYTES):
        left = np.clip(size - done, 0, MOST_LONG_BYTES)
        result &= (window.word(at + done) & _MASKS[left] & _HIGH_BITS) == 0
    return result


def _find_end(window: Window, shape: EventShape, at: Places, following: Places, found: Candidates) -> None:
    """Where the events end: without frames, with frames fetched from the memo, or with frames spelled out up to the next event."""
    word = window.word(at)
    is_bare = _byte(word, 0) == SETITEMS
    found.end = np.where(is_bare, at + 1, ABSENT)
    if shape.frames_key is None:
        found.is_sound &= is_bare
        return
    code = _opcode(window, shape.frames_key, at, has_key := np.ones(len(at), np.bool_))
    at = at + len(shape.frames_key)
    get_bytes = _GET_BYTES[code]
    word = window.word(at + 1)
    behind = at + 1 + get_bytes
    is_fetched = has_key & (get_bytes > 0) & (_byte(window.word(behind), 0) == SETITEMS)
    found.frames = np.where(is_fetched, (word & _MASKS[get_bytes]).view(np.int64), ABSENT)
    np.maximum(found.newest, found.frames, out=found.newest)
    found.end = np.where(is_fetched, behind + 1, found.end)
    end = _end_before(window, following)
    is_spelled = has_key & (code == EMPTY_LIST) & (end > at)
    found.list_begin = np.where(is_spelled, at, ABSENT)
    found.end = np.where(is_spelled, end, found.end)
    found.is_sound &= is_bare | is_fetched | is_spelled


NEXT_BATCH = b"e("
"""The opcodes between the last event of a batch and the first of the next one."""


def _end_before(window: Window, following: Places) -> Places:
    """Where the event before each place should end; ABSENT if none does."""
    last = window.word(np.maximum(following - 3, 0))
    is_adjacent = _byte(last, 2) == SETITEMS
    is_batch = _starts_with(last, bytes([SETITEMS]) + NEXT_BATCH)
    end = np.where(is_adjacent, following, np.where(is_batch, following - len(NEXT_BATCH), ABSENT))
    return np.where(following == ABSENT, ABSENT, end)


def joined(window: Window, found: Candidates) -> Flags:
    """Which candidates end where the next one begins, but for the border between two batches."""
    following = np.append(found.begin[1:], ABSENT)
    gap = following - found.end
    is_batch = (gap == len(NEXT_BATCH)) & _starts_with(window.word(np.maximum(found.end, 0)), NEXT_BATCH)
    result: NDArray[Any] = (gap == 0) | is_batch
    return result
