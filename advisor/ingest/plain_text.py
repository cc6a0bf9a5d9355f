"""Bytes of a saved text as characters and lines, whatever its encoding, in bounded memory."""

import io
import itertools
from collections.abc import Iterator

from advisor.model.errors import UnreadableInput

DOCUMENT_LIMIT_BYTES = 96 * 1024**2
"""The largest reading of a node that is taken: hours of a full node, printed every second."""

DOCUMENT_LINE_LIMIT = 300_000
"""Lines of one reading that are read: 200 times what nvidia-smi -q prints of a full node."""

EMBEDDED_REACH_BYTES = 4 * 1024**2
EMBEDDED_LINE_LIMIT = 100_000
"""How far a table is followed that stands somewhere in a log; one of a full node has 5 KB."""

LINE_LIMIT = 4000
"""Characters of a line that are looked at; longer ones are cut."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def decode(text: bytes) -> str:
    """The characters of a text; what is no UTF-8 becomes U+FFFD.

    UTF-16 with its mark is read too: PowerShell saves what it redirects that way.
    """
    return text.decode(_encoding(text), "replace")


def as_utf8(text: bytes) -> bytes:
    """A text in which ASCII words can be searched: the same bytes unless it is UTF-16."""
    return decode(text).encode() if text.startswith(_UTF16_MARKS) else text


def document_lines(text: bytes, path: str, kind: str) -> Iterator[str]:
    """The first DOCUMENT_LINE_LIMIT lines of one reading of a node, each cut at LINE_LIMIT.

    Raises:
        UnreadableInput: it is larger than any such reading.
    """
    if len(text) > DOCUMENT_LIMIT_BYTES:
        raise UnreadableInput(
            f"{path}: {kind} of {len(text):,} bytes is larger than any node prints",
            "cut out the part that matters",
        )
    return itertools.islice(_lines(text), DOCUMENT_LINE_LIMIT)


def left_out_lines(text: bytes) -> tuple[str, ...]:
    """A gap where a reading has more lines than are read."""
    count = text.count(b"\n")
    if count <= DOCUMENT_LINE_LIMIT:
        return ()
    return (f"only the first {DOCUMENT_LINE_LIMIT:,} of {count:,} lines are read",)


def embedded_lines(text: bytes, *words: bytes) -> Iterator[tuple[int, str]]:
    """The lines from the first that holds one of the words on, as `lines_from` gives them."""
    places = [place for place in (text.find(word) for word in words) if place >= 0]
    return lines_from(text, text.rfind(b"\n", 0, min(places)) + 1) if places else iter(())


def lines_from(text: bytes, start: int) -> Iterator[tuple[int, str]]:
    """The lines from a place on, with their numbers from 1, each cut at LINE_LIMIT.

    They are followed for EMBEDDED_REACH_BYTES and EMBEDDED_LINE_LIMIT at most.
    """
    reach = text[start : start + EMBEDDED_REACH_BYTES]
    lines = itertools.islice(_lines(reach), EMBEDDED_LINE_LIMIT)
    return enumerate(lines, start=text.count(b"\n", 0, start) + 1)


def _lines(text: bytes) -> Iterator[str]:
    stream = io.TextIOWrapper(io.BytesIO(text), encoding=_encoding(text), errors="replace")
    return (line[:LINE_LIMIT].rstrip() for line in stream)


def _encoding(text: bytes) -> str:
    return "utf-16" if text.startswith(_UTF16_MARKS) else "utf-8-sig"
