"""Search names for any of many words: a plain search for each, a pattern only where its plain part occurs.

A trace has hundreds of kernel names of hundreds of characters. One pattern of all words tries each of them at each character;
a plain search for one word is some forty times as fast.
"""

import itertools
import re

_SPLIT = re.compile(r"\|(?![^(\[]*[)\]])")
"""Between the words of an alternation, not inside a group or a set."""

_AROUND = re.compile(r"\(\?<?[!=][^)]*\)|\\b|\^")
"""What surrounds a word without being part of it."""

_PLAIN = re.compile(r"[a-z0-9_<>: ]*")


class WordSearch:
    """Searches as `re.compile(pattern, re.IGNORECASE).search` does, for an alternation of words.

    Args:
        pattern: words between bars; a word may have optional underscores (`all_?reduce`), or be any pattern without a bar outside
            of groups.
    """

    def __init__(self, pattern: str) -> None:
        words = itertools.chain.from_iterable(map(_spelled, _SPLIT.split(pattern.lower())))
        self._words: list[str] = []
        self._patterns: list[tuple[str, str]] = []
        for word in words:
            if _PLAIN.fullmatch(word):
                self._words.append(word)
            else:
                self._patterns.append((_plain_part(word), word))

    def search(self, name: str) -> bool:
        """Whether any of the words occurs in a name, in any case."""
        lowered = name.lower()
        for word in self._words:
            if word in lowered:
                return True
        return any(part in lowered and re.search(word, lowered) for part, word in self._patterns)


def _spelled(word: str) -> list[str]:
    """A word with each of its optional underscores, and without."""
    pieces = word.split("_?")
    return [
        "".join(pieces[:1]) + "".join(a + b for a, b in zip(joints, pieces[1:], strict=True))
        for joints in itertools.product(("", "_"), repeat=len(pieces) - 1)
    ]


def _plain_part(word: str) -> str:
    """What every match begins with, apart from what surrounds it; empty where that is not plain."""
    bare = _AROUND.sub("", word)
    found = _PLAIN.match(bare)
    plain = found.group() if found else ""
    return plain[:-1] if bare[len(plain) : len(plain) + 1] in ("?", "*") and bare[len(plain) :] else plain
