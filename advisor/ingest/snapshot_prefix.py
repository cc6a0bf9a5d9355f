"""Load what stands in a pickled snapshot before its events: the segments."""

import io
import re
from typing import BinaryIO

from advisor.ingest.pickle_values import WINDOW_BYTES, NotStreamableError
from advisor.ingest.snapshot_pickle import load_with_memo
from advisor.model.dataclass import dataclass

HISTORIES = "device_traces"

_BEGIN = re.compile(rb"\x8c\x0d" + HISTORIES.encode() + rb"\x94?(?:\x95.{8})?\](\x94?)", re.DOTALL)
"""The key, spelled out, and the new list under it; between them a frame may begin. Group 1: whether the list is memoized."""

_HEAD = re.compile(rb"\x80[\x04\x05](?:\x95.{8})?\}\x94?(?:\x95.{8})?\(\x8c", re.DOTALL)
"""How every such pickle begins: the protocol, and a dictionary with a key that is spelled out."""

LONGEST_BEGIN_BYTES = 32
"""More bytes than that pattern matches."""

MOST_PREFIX_BYTES = 64 * 1024 * 1024
"""How far the events are looked for; the segments of a real snapshot take a few megabytes."""

CLOSING = b"u."
"""Ends the dictionary of the file, and the pickle."""

FRAME_REST_BYTES = 256 * 1024
"""Zeros that stand for the rest of the frame that is cut off; it holds 64 KiB and at most a value more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What stands before the events.

    Attributes:
        values: the keys of the file so far, without that of the histories.
        memo: what was made, by number, without what is not complete yet.
        memo_count: how many entries the memo has, with that.
        length_bytes: of the pickle, up to the list of histories, which is open.
    """

    values: dict[object, object]
    memo: dict[int, object]
    memo_count: int
    length_bytes: int


def read_prefix(stream: BinaryIO) -> Prefix:
    """Read up to the histories, and leave the stream there.

    Where they begin is found by their key, which could also stand in some text. What is before it is therefore loaded as a pickle of its
    own that ends there: only if its last value is that list, and if it ends with the end that was put to it, the place is the right one.

    Raises:
        NotStreamableError: there are none, or not where they could begin.
    """
    begin = stream.tell()
    if not _HEAD.match(stream.read(LONGEST_BEGIN_BYTES)):
        raise NotStreamableError("no dictionary, or another protocol")
    stream.seek(begin)
    length, is_memoized = _find_histories(stream)
    stream.seek(begin)
    raw = stream.read(length)
    # No more zeros than bytes follow, so that a frame that is longer than the file is found out.
    left_bytes = stream.seek(0, io.SEEK_END) - begin - length
    zeros = bytes(min(FRAME_REST_BYTES, max(0, left_bytes - len(CLOSING))))
    stream.seek(begin + length)
    try:
        loaded = load_with_memo(io.BytesIO(raw + CLOSING + zeros))
    except Exception as damage:  # noqa: BLE001 - pickle raises almost anything on what is no pickle
        raise NotStreamableError(f"what is before the histories is no pickle ({type(damage).__name__})") from None
    root, memo = loaded.value, loaded.memo
    if loaded.behind_bytes != len(zeros):
        raise NotStreamableError("the pickle ends elsewhere")
    if type(root) is not dict or not root or next(reversed(root)) != HISTORIES or "segments" not in root:
        raise NotStreamableError("the histories are not behind the segments")
    histories = root.pop(HISTORIES)
    count = len(memo)
    if count != max(memo, default=-1) + 1:
        raise NotStreamableError("a memo with gaps")
    if histories != [] or (is_memoized and memo[count - 1] is not histories):
        raise NotStreamableError("the histories begin elsewhere")
    kept = {entry: value for entry, value in memo.items() if value is not root and value is not histories}
    return Prefix(values=root, memo=kept, memo_count=count, length_bytes=length)


def _find_histories(stream: BinaryIO) -> tuple[int, bool]:
    """How far away the list of histories is, behind its first opcodes, and whether it is memoized."""
    begin, window = 0, b""
    while not (found := _BEGIN.search(window)):
        piece = stream.read(WINDOW_BYTES)
        if not piece or begin > MOST_PREFIX_BYTES:
            raise NotStreamableError("no history is found")
        overlap = window[-LONGEST_BEGIN_BYTES:]
        begin += len(window) - len(overlap)
        window = overlap + piece
    return begin + found.end(), bool(found[1])
