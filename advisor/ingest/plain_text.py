"""Bytes of a saved text as characters and lines, whatever its encoding, in bounded memory."""

import io
from collections.abc import Iterator

from advisor.model.errors import UnreadableInput

DOCUMENT_LIMIT_BYTES = 96 * 1024**2
"""The largest reading of a node that is taken: hours of a full node, printed every second."""

LINE_COUNT_LIMIT = 2_000_000
"""Lines of one reading; beyond them it is no reading of a node."""

EMBEDDED_REACH_BYTES = 4 * 1024**2
"""How far a table is followed that stands somewhere in a log; one of a full node has 5 KB."""

LINE_LIMIT = 4000
"""Characters of a line that are looked at; longer ones are cut."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def decode(text: bytes) -> str:
    """The characters of a text; what is no UTF-8 becomes U+FFFD.

    UTF-16 with its mark is read too: PowerShell saves what it redirects that way.
    """
    return text.decode(_encoding(text), "replace")


def document_lines(text: bytes, path: str, kind: str) -> Iterator[str]:
    """The lines of a text that is one reading of a node, each cut at LINE_LIMIT.

    Raises:
        UnreadableInput: it is larger, or has more lines, than any such reading.
    """
    too_large = len(text) > DOCUMENT_LIMIT_BYTES
    for number, line in enumerate(() if too_large else _lines(text)):
        if number >= LINE_COUNT_LIMIT:
            too_large = True
            break
        yield line
    if too_large:
        raise UnreadableInput(
            f"{path}: {kind} of {len(text):,} bytes is larger than any node prints",
            "cut out the part that matters",
        )


def embedded_lines(text: bytes, *words: bytes) -> Iterator[tuple[int, str]]:
    """The lines from the first that holds one of the words on, as `lines_from` gives them."""
    places = [place for place in (text.find(word) for word in words) if place >= 0]
    return lines_from(text, text.rfind(b"\n", 0, min(places)) + 1) if places else iter(())


def lines_from(text: bytes, start: int) -> Iterator[tuple[int, str]]:
    """The lines from a place on, for EMBEDDED_REACH_BYTES, with their numbers from 1.

    Each is cut at LINE_LIMIT.
    """
    reach = text[start : start + EMBEDDED_REACH_BYTES]
    return enumerate(_lines(reach), start=text.count(b"\n", 0, start) + 1)


def _lines(text: bytes) -> Iterator[str]:
    stream = io.TextIOWrapper(io.BytesIO(text), encoding=_encoding(text), errors="replace")
    return (line[:LINE_LIMIT].rstrip() for line in stream)


def _encoding(text: bytes) -> str:
    return "utf-16" if text.startswith(_UTF16_MARKS) else "utf-8-sig"
