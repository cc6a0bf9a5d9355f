"""Find one's way in damaged JSON by its brackets and quotes alone."""

import re
from typing import NamedTuple

_TOKEN = re.compile(rb'["{}\[\]]')

DEEPEST = 512
"""Brackets within brackets; a trace has 5. JSON readers give up at about 1,000."""


class Scan(NamedTuple):
    """What brackets and quotes tell of a list.

    Attributes:
        spans: start and end of every complete object or list in it, in bytes.
        end: position of the bracket that closes the list; None where the scan ends before.
        token_count: brackets and strings looked at.
    """

    spans: tuple[tuple[int, int], ...]
    end: int | None
    token_count: int


def scan_list(text: bytes, most_tokens: int) -> Scan:
    """Scan a list from its first bracket, which is text[0], in time linear in its length.

    A closing bracket of the wrong kind counts as a right one: what it closes then fails to decode.

    Args:
        text: JSON text, sound or not.
        most_tokens: where to give up; a million takes about half a second.
    """
    spans = []
    depth = start = token_count = 0
    end = None
    token = _TOKEN.search(text, 1)
    while token and depth <= DEEPEST and token_count < most_tokens:
        token_count += 1
        at = token.start()
        mark = text[at : at + 1]
        if mark == b'"':
            at = _end_of_string(text, at)
            if at < 0:
                break
        elif mark in b"{[":
            start = start if depth else at
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                spans.append((start, at + 1))
        elif mark == b"]":
            end = at
            break
        token = _TOKEN.search(text, at + 1)
    return Scan(spans=tuple(spans), end=end, token_count=token_count)


def open_brackets(text: bytes, most_tokens: int) -> int | None:
    """How many brackets are open at the end of a text; None inside a string, or where it is given up."""
    depth = token_count = 0
    token = _TOKEN.search(text)
    while token:
        token_count += 1
        at = token.start()
        if text[at : at + 1] == b'"':
            at = _end_of_string(text, at)
        else:
            depth += 1 if text[at] in b"{[" else -1
        if at < 0 or token_count > most_tokens:
            return None
        token = _TOKEN.search(text, at + 1)
    return depth


def _end_of_string(text: bytes, start: int) -> int:
    """Position of the closing quote of the string that opens at `start`; -1 without one."""
    at = text.find(b'"', start + 1)
    while at > 0:
        slashes = at
        while text[slashes - 1 : slashes] == b"\\":
            slashes -= 1
        if (at - slashes) % 2 == 0:
            return at
        at = text.find(b'"', at + 1)
    return -1
