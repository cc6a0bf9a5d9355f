"""Words that speak for a cause: in a traceback's frames, in code that a log prints, or in prose."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from advisor.model.evidence import Source
from advisor.model.failure import Failure, Frame, LogText
from advisor.model.finding import Observation

QUOTE_CHARACTERS = 120
"""A quoted line longer than this hides the sentence around it."""


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


def frame_text(frame: Frame) -> str:
    """A frame as patterns see it: "file.py:12 in function: code"."""
    return f"{frame.filename}:{frame.line} in {frame.function}: {frame.code}"


def in_frames(
    pattern: re.Pattern[str], failure: Failure | None, *, innermost: int | None = None
) -> Clue | None:
    """The innermost frame that matches; only the last `innermost` frames are read where given."""
    if failure is None:
        return None
    frames = failure.frames if innermost is None else failure.frames[-innermost:]
    for frame in reversed(frames):
        match = pattern.search(frame_text(frame))
        if match:
            name = PurePosixPath(frame.filename.replace("\\", "/")).name
            where = f"{name}:{frame.line} in {frame.function}"
            return Clue(
                text=frame.code or where,
                found=match.group(),
                source=failure.source.at(where),
                in_code=True,
            )
    return None


def in_words(pattern: re.Pattern[str], failure: Failure | None, log: LogText | None) -> Clue | None:
    """The first line of the log that matches, code before prose; the failure's own message counts."""
    found = [clue for clue in _lines(pattern, failure, log) if clue is not None]
    return min(found, key=lambda clue: not clue.in_code, default=None)


def anywhere(pattern: re.Pattern[str], failure: Failure | None, log: LogText | None) -> Clue | None:
    """The innermost frame that matches, else the first line of the log."""
    return in_frames(pattern, failure) or in_words(pattern, failure, log)


def _lines(
    pattern: re.Pattern[str], failure: Failure | None, log: LogText | None
) -> Iterator[Clue]:
    if failure is not None:
        for text in (failure.message, failure.detail):
            match = pattern.search(text)
            if match:
                yield Clue(text=text, found=match.group(), source=failure.source, in_code=False)
    for mention in log.mentions if log is not None else ():
        match = pattern.search(mention.text)
        if match and log is not None:
            yield Clue(
                text=mention.text,
                found=match.group(),
                source=log.source.at(f"line {mention.line}"),
                in_code=mention.in_code,
            )
