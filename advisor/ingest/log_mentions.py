"""Finds the words of the field in a log; the table is `mentions.py`."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from advisor.ingest.lazy_pattern import LazyPattern
from advisor.ingest.log_lines import LINE_REACH_BYTES, LogLine, LogLines, Needles
from advisor.ingest.mentions import NO_WORDS, PATTERNS, PHRASES, STANDING_ADVICE
from advisor.ingest.tracebacks import is_code_line
from advisor.model.dataclass import dataclass
from advisor.model.failure import Mention

MOST_MENTIONS = 8
"""Of one topic."""

TEXT_LENGTH = 200
"""Characters of a mention's line that are kept."""

_MOST_TRIED = 24
"""Places of one phrase that are looked at; a phrase that fails 24 times will not be what a rule needs."""

_WHOLE_BYTES = 1024**2
"""A log of at most this size is searched whole."""

_HEAD_BYTES = 384 * 1024
_TAIL_BYTES = 384 * 1024
_AROUND_BYTES = 32_768
_MOST_FAILURES = 8
"""Of a larger one: its beginning (arguments, settings), its end, and around the first failures."""

_PATTERN_LENGTH = 4_096
"""Characters of a line that a pattern is tried on."""

_ADVICE_REACH = 90
"""Bytes around a word in which a message's standing advice is recognized."""

_LABEL_REACH = 60
"""Bytes behind a phrase in which the rest of a table's label is recognized."""

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_")

Span = tuple[int, int]
"""Start and end of a part of the log, in bytes."""

Lines = dict[int, tuple[LogLine, bool]]
"""Lines that were looked at, by their ends, and whether each is part of a traceback."""


def scanned(log: LogLines, failures: Sequence[int]) -> tuple[list[Span], tuple[str, ...]]:
    """The parts of a log that are searched for words and settings, and a sentence where that is not all of it."""
    size = len(log.raw)
    if size <= _WHOLE_BYTES:
        return [(0, size)], ()
    around = [(max(0, at - _AROUND_BYTES), min(size, at + _AROUND_BYTES)) for at in failures[:_MOST_FAILURES]]
    merged: list[Span] = []
    for start, end in sorted([(0, _HEAD_BYTES), *around, (size - _TAIL_BYTES, size)]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged, ("words and settings were searched in the beginning, the end and around the failures only: the log is large",)


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase, and at which of its ends a word's letter would make it part of another word."""

    needle: bytes
    checks_front: bool
    checks_back: bool


@cache
def _phrases() -> tuple[tuple[str, tuple[_Phrase, ...]], ...]:
    """The table, in the form in which it is searched."""
    return tuple((topic, tuple(_searched(phrase) for phrase in phrases)) for topic, phrases in PHRASES.items())


def _searched(phrase: str) -> _Phrase:
    needle = phrase.strip("*").lower().encode()
    return _Phrase(
        needle,
        not phrase.startswith("*") and needle[0] in _WORD,
        not phrase.endswith("*") and needle[-1] in _WORD,
    )


@cache
def _by_needle() -> tuple[dict[bytes, list[tuple[int, _Phrase]]], Needles]:
    """Places of the table's topics and their phrases, by what is searched for; and all of that together."""
    table: dict[bytes, list[tuple[int, _Phrase]]] = {}
    for place, (_, phrases) in enumerate(_phrases()):
        for phrase in phrases:
            table.setdefault(phrase.needle, []).append((place, phrase))
    return table, Needles(table)


def mentions_of(log: LogLines, parts: Sequence[Span]) -> tuple[Mention, ...]:
    """The first mentions of each topic, in the log's order."""
    lines: Lines = {}
    found: list[Mention] = []
    table, needles = _by_needle()
    present: dict[int, list[_Phrase]] = {}
    for needle in log.may_have(needles):
        if log.has(needle, parts):
            for topic, phrase in table[needle]:
                present.setdefault(topic, []).append(phrase)
    for topic in sorted(present):
        places = {place for phrase in present[topic] for place in _alone(log, parts, phrase)}
        found += _first(log, _phrases()[topic][0], sorted(places), lines)
    for name, (word, pattern) in PATTERNS.items():
        found += _first(log, name, _matching(log, parts, word.encode(), pattern, lines), lines)
    return tuple(sorted(found, key=lambda mention: mention.line))


def _matching(log: LogLines, parts: Sequence[Span], needle: bytes, pattern: LazyPattern, lines: Lines) -> Iterator[int]:
    """The first place of a needle in each line that its pattern matches."""
    end = 0
    for place in _places(log, parts, needle):
        if place < end:
            continue
        line, _ = _line(log, place, lines)
        if line.end - line.start <= LINE_REACH_BYTES:
            end = line.end
        if pattern.search(line.text[:_PATTERN_LENGTH]):
            yield place


def _first(log: LogLines, topic: str, places: Iterable[int], lines: Lines) -> Iterator[Mention]:
    """Mentions of one topic, one a line."""
    numbers: set[int] = set()
    for place in places:
        line, in_code = _line(log, place, lines)
        if line.number in numbers:
            continue
        numbers.add(line.number)
        yield Mention(topic=topic, line=line.number, text=_cut(log, line, place), in_code=in_code)
        if len(numbers) >= MOST_MENTIONS:
            return


def _line(log: LogLines, place: int, lines: Lines) -> tuple[LogLine, bool]:
    """The line at a place, and whether it is part of a traceback."""
    end = log.line_end(place)
    if end not in lines:
        line = log.line_at(place)
        above = log.above(line)
        lines[end] = (line, is_code_line(above.text if above else "", line.text))
    return lines[end]


def _cut(log: LogLines, line: LogLine, place: int) -> str:
    """The line's text, or where that is too long the part around the word."""
    text = line.text.strip()
    if len(text) <= TEXT_LENGTH:
        return text
    around = log.raw[max(line.start, place - TEXT_LENGTH // 2) : min(line.end, place + TEXT_LENGTH // 2)]
    return around.decode("utf-8", "replace").strip()[:TEXT_LENGTH]


def _alone(log: LogLines, parts: Sequence[Span], phrase: _Phrase) -> Iterator[int]:
    """Places where a phrase stands alone and is not part of a message's standing advice."""
    lowered = log.lowered
    for place in _places(log, parts, phrase.needle):
        behind = place + len(phrase.needle)
        if phrase.checks_front and place > 0 and lowered[place - 1] in _WORD:
            continue
        if phrase.checks_back and behind < len(lowered) and lowered[behind] in _WORD:
            continue
        if NO_WORDS.match(lowered[place : behind + _LABEL_REACH].decode("utf-8", "replace")):
            continue
        if not is_advice(lowered, place, behind):
            yield place


def _places(log: LogLines, parts: Sequence[Span], needle: bytes) -> Iterator[int]:
    tried = 0
    for start, end in parts:
        place = log.lowered.find(needle, start, end)
        while place >= 0 and tried < _MOST_TRIED:
            tried += 1
            yield place
            place = log.lowered.find(needle, place + len(needle), end)


def is_advice(lowered: bytes, place: int, behind: int) -> bool:
    """Whether a word stands in a message's standing advice, which every failure prints."""
    around = lowered[max(0, place - _ADVICE_REACH) : behind + _ADVICE_REACH]
    return any(advice in around for advice in STANDING_ADVICE)
