"""Patterns that are compiled when they are first used: a log needs few of the hundreds that its messages could."""

import re
from collections.abc import Iterator
from functools import cached_property


class LazyPattern:
    """A regular expression with the methods of a compiled one that readers of logs use."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self.source = source
        self.flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self.source, self.flags)

    def search(self, text: str, start: int = 0, end: int = 2**62) -> re.Match[str] | None:
        """The first match between two positions."""
        return self.compiled.search(text, start, end)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """A match that begins at a position."""
        return self.compiled.match(text, start)

    def findall(self, text: str) -> list[str]:
        """All matches of an expression with at most one group, as text."""
        return self.compiled.findall(text)

    def sub(self, replacement: str, text: str) -> str:
        """The text with every match replaced."""
        return self.compiled.sub(replacement, text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches."""
        return self.compiled.finditer(text)
