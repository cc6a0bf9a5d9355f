"""Words that speak for a cause: in a traceback's frames, in code that a log prints, or in prose."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, TypeVar

from advisor.model.dataclass import dataclass
from advisor.model.finding import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.model.evidence import Source
    from advisor.model.failure import Failure, Frame, LogText, Mention
    from advisor.model.tables import OperatorTable

QUOTE_CHARACTERS = 120
"""A quoted line longer than this hides the sentence around it."""


REPORT_LINES = 60
"""A text of at most this many lines is somebody's report, whose words are complaints; in a longer log
without a failure the same words are output."""


MOST_KEPT_TEXTS = 4096
"""Joined texts that are kept at once: those of two thousand ranks, some kilobytes each."""

Key = TypeVar("Key")
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """One line that speaks for a cause.

    Attributes:
        text: the line.
        found: the part of it that matched.
        source: where it stands.
        in_code: True for a frame or a printed line of code, False for prose and program output.
    """

    text: str
    found: str
    source: Source
    in_code: bool

    def observation(self, meaning: str) -> Observation:
        """The clue as a fact: what it means, and the line itself."""
        return Observation(statement=f'{meaning}: "{quoted(self.text)}"', source=self.source)


def quoted(text: str) -> str:
    """A line short enough to stand in a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= QUOTE_CHARACTERS else f"{line[: QUOTE_CHARACTERS - 1]}…"


class Words:
    """A pattern without regard to case, with the words of which a text has one where it can match.

    Looking for the words first spares nearly every log most of its patterns: those are not even
    compiled. Matching is done in lower case, where `re` finds a pattern's first letter faster.

    Attributes:
        needles: in lower case; a text without any of them does not match.
        pattern: the regular expression.
    """

    def __init__(self, needles: tuple[str, ...], pattern: str) -> None:
        self.needles = needles
        self.pattern = pattern

    @functools.cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern for lower-case text."""
        return re.compile(_UPPER.sub(lambda found: found[1] or found[2].lower(), self.pattern))

    def can_match(self, lowered: str) -> bool:
        """Whether a text in lower case has one of the needles."""
        for needle in self.needles:  # noqa: SIM110 - a generator costs more than the search
            if needle in lowered:
                return True
        return False

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in the lowered text."""
        lowered = text.lower()
        return self.compiled.search(lowered) if self.can_match(lowered) else None


_PERCENTAGE = re.compile(r"\d%").search

_UPPER = re.compile(r"(\\.|\(\?P<\w+>|\(\?P=\w+\))|([A-Z])")
"""An escape or a group's name, which keep their case, or a capital letter."""


def words(needles: str, pattern: str) -> Words:
    """Words of a pattern; its needles are separated by bars."""
    return Words(tuple(needles.split("|")), pattern)


def search(pattern: Words | re.Pattern[str], text: str) -> str | None:
    """What a pattern finds in a text, as the text spells it; None where it finds nothing."""
    match = pattern.search(text)
    if match is None:
        return None
    is_aligned = len(match.string) == len(text)
    return text[match.start() : match.end()] if is_aligned else match.group()


def mentioned_beside(table: OperatorTable | None, log: LogText, *topics: str) -> Mention | None:
    """The first mention of any topic, those in code before those in prose, that is no row of a table which the log holds."""
    return min(mentions_beside(table, log, *topics), key=lambda mention: (not mention.in_code, mention.line), default=None)


def mentions_beside(table: OperatorTable | None, log: LogText, *topics: str) -> Iterator[Mention]:
    """The mentions of any topic that are no rows of a table which the log holds: every table lists `cudaLaunchKernel`."""
    names = {row.name for row in table.rows} if table is not None else set()
    for mention in log.mentions:
        if mention.topic in topics and not (_PERCENTAGE(mention.text) and any(name in mention.text for name in names)):
            yield mention


def frame_text(frame: Frame) -> str:
    """A frame as patterns see it: "file.py:12 in function: code"."""
    return f"{frame.filename}:{frame.line} in {frame.function}: {frame.code}"


class _Texts:
    """What rules look for words in, joined and in lower case, kept by identity: a hundred patterns ask for the same texts of a case."""

    def __init__(self) -> None:
        self._words: dict[tuple[int, int], tuple[Failure | None, LogText | None, str]] = {}
        self._frames: dict[int, tuple[Failure, str]] = {}

    def of_words(self, failure: Failure | None, log: LogText | None) -> str:
        """The failure's message and detail, and the lines that the log's mentions stand in."""
        kept = self._words.get((id(failure), id(log)))
        if kept is None:
            said = () if failure is None else (failure.message, failure.detail)
            lines = () if log is None else {mention.text: None for mention in log.mentions}
            # Both are kept with their text, so that no other object can get their identity meanwhile.
            kept = (failure, log, "\n".join((*said, *lines)).lower())
            _put(self._words, (id(failure), id(log)), kept)
        return kept[2]

    def of_frames(self, failure: Failure) -> str:
        """The failure's frames."""
        kept = self._frames.get(id(failure))
        if kept is None:
            kept = (failure, "\n".join(map(frame_text, failure.frames)).lower())
            _put(self._frames, id(failure), kept)
        return kept[1]


def _put(kept: dict[Key, Kept], key: Key, value: Kept) -> None:
    if len(kept) >= MOST_KEPT_TEXTS:
        kept.clear()
    kept[key] = value


_TEXTS = _Texts()


def is_report(log: LogText | None) -> bool:
    """Whether a text is short enough to be somebody's description of what went wrong."""
    return log is not None and log.line_count <= REPORT_LINES


def in_frames(pattern: Words | re.Pattern[str], failure: Failure | None, *, innermost: int | None = None) -> Clue | None:
    """The innermost frame that matches; only the last `innermost` frames are read where given."""
    if failure is None or not failure.frames or (isinstance(pattern, Words) and not pattern.can_match(_TEXTS.of_frames(failure))):
        return None
    frames = failure.frames if innermost is None else failure.frames[-innermost:]
    for frame in reversed(frames):
        found = search(pattern, frame_text(frame))
        if found is not None:
            name = frame.filename.replace("\\", "/").rstrip("/").rpartition("/")[2]
            where = f"{name}:{frame.line} in {frame.function}"
            return Clue(
                text=frame.code or where,
                found=found,
                source=failure.source.at(where),
                in_code=True,
            )
    return None


def in_words(pattern: Words | re.Pattern[str], failure: Failure | None, log: LogText | None) -> Clue | None:
    """The first line of the log that matches, code before prose; the failure's own message counts."""
    if isinstance(pattern, Words) and not pattern.can_match(_TEXTS.of_words(failure, log)):
        return None
    return min(_lines(pattern, failure, log), key=lambda clue: not clue.in_code, default=None)


def anywhere(pattern: Words | re.Pattern[str], failure: Failure | None, log: LogText | None) -> Clue | None:
    """The innermost frame that matches, else the first line of the log."""
    return in_frames(pattern, failure) or in_words(pattern, failure, log)


def _lines(pattern: Words | re.Pattern[str], failure: Failure | None, log: LogText | None) -> Iterator[Clue]:
    if failure is not None:
        for text in (failure.message, failure.detail):
            found = search(pattern, text)
            if found is not None:
                yield Clue(text=text, found=found, source=failure.source, in_code=False)
    if log is None:
        return
    tried: set[tuple[str, bool]] = set()
    for mention in log.mentions:
        if (mention.text, mention.in_code) in tried:
            continue  # the same line under another topic
        tried.add((mention.text, mention.in_code))
        found = search(pattern, mention.text)
        if found is not None:
            yield Clue(
                text=mention.text,
                found=found,
                source=log.source.at(f"line {mention.line}"),
                in_code=mention.in_code,
            )
