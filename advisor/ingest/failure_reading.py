"""Every failure of a log: which lines say one, which of them say the same one, and what stands around it."""

from collections.abc import Iterator, Sequence
from functools import cache

from advisor.ingest.failure_contradictions import consistent
from advisor.ingest.failure_denials import is_unreal
from advisor.ingest.failure_engines import ENGINES
from advisor.ingest.failure_host import HOST
from advisor.ingest.failure_incidents import Incident, grouped
from advisor.ingest.failure_libraries import COLLECTIVE, LIBRARY
from advisor.ingest.failure_lookalikes import LOOKALIKES
from advisor.ingest.failure_message import FailureText, Recognizer
from advisor.ingest.failure_mps import MPS
from advisor.ingest.failure_pytorch import PYTORCH
from advisor.ingest.failure_runtime import RUNTIME, SPEAKERS
from advisor.ingest.failure_shared_memory import SHARED_MEMORY
from advisor.ingest.failure_words import REPORT_LINES, WORDS, WORDS_OF_A_LOG
from advisor.ingest.failure_xla import XLA
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.ingest.log_lines import LogLine, LogLines, Needles
from advisor.ingest.tracebacks import exception_of, frame_of

RECOGNIZERS = (
    ENGINES, SPEAKERS, XLA, LIBRARY, COLLECTIVE, MPS, PYTORCH, RUNTIME, SHARED_MEMORY, HOST, LOOKALIKES,
)  # fmt: skip
"""The more specific first: the first that reads a line has it."""

MOST_LINES_TRIED = 3_000
"""Lines with one of the needles that are tried, over all needles; a log has tens, a hostile text millions."""

_MOST_LINES_A_NEEDLE = 1_200
"""The same for one needle, half of them from each end of the log."""

_EVERYWHERE = frozenset(
    {
        b"out of memory", b"outofmemory", b"resource_exhausted", b"oom when allocating", b"alloc_failed", b"calloc", b"bus error",
        b"cache blocks", b"kv cache is needed", b"stored in kv cache", b"killed process", b"memoryerror", b"illegal memory access",
        b"device-side assert",
    }
)  # fmt: skip
"""Needles that are looked for in the middle of a large log too; the others in its beginning and its end."""

_CHARACTERS_BEFORE = 400
_CHARACTERS_BEHIND = 3_000
"""The part of a line, around its needle, that is given to a recognizer, with the lines that follow it."""

_CONTINUATION_LINES = 12
"""Lines over which a message may run."""

_MESSAGES_A_LINE = 2
"""Messages that are read from one line."""

MESSAGE_LENGTH = 2_000
"""Characters of a message that are kept."""

_SOURCE_CODE = LazyPattern(
    r"\s{0,40}(?:except|raise|import|elif|def|class|return|assert|print|//|/\*|\* |logg?(?:er|ing)?\.)(?=[\s(:'\"#/.]|$)"
    r"|\s{0,40}(?:if|while|for) .{0,200}:\s{0,8}$|\s{0,40}#.{0,200}\b(?:catch|handl\w{1,4}|avoid|prevent|retry|TODO|noqa|type:)"
    r"|.{0,200}(?:in str\(|in repr\(|isinstance\(|\.lower\(\)|re\.compile\(|assertRaises|pytest\.raises)|\s{0,40}[Ii]f you\b"
)
"""Lines of programs and manuals that speak of a failure; one with figures is a message all the same."""

_ENDS_MESSAGE = LazyPattern(r"\s{0,40}(?:Traceback \(|File \"|During handling|The above exception|Exception raised from|\[rank\d)")


def incidents_of(log: LogLines) -> tuple[list[Incident], list[str]]:
    """The failures of a log in its order, and what was left out."""
    gaps: list[str] = []
    found = grouped(_readings(log, RECOGNIZERS, gaps), gaps)
    if not found:
        is_report = log.line_count <= REPORT_LINES
        found = grouped(_readings(log, (WORDS if is_report else WORDS_OF_A_LOG,), gaps), gaps)
    found.sort(key=lambda incident: incident.lines[0].start)
    return found, gaps


def _readings(log: LogLines, recognizers: tuple[Recognizer, ...], gaps: list[str]) -> Iterator[tuple[LogLine, FailureText, str]]:
    """Lines that say a failure, what they say, and the message's own text."""
    wanted: dict[int, set[int]] = {}
    budget, is_all = MOST_LINES_TRIED, True
    candidates = log.may_have(_needles(recognizers))
    for index, recognizer in enumerate(recognizers):
        for needle in recognizer.needles:
            if needle not in candidates:
                continue
            most = min(_MOST_LINES_A_NEEDLE, max(2, budget))
            positions, is_complete = log.find(needle, most, everywhere=needle in _EVERYWHERE)
            is_all = is_all and is_complete
            budget -= sum(position not in wanted for position in positions)
            for position in positions:
                wanted.setdefault(position, set()).add(index)
    if not is_all:
        gaps.append(f"more than {_MOST_LINES_A_NEEDLE} lines could be failures; those between the first and the last were not read")
    read: dict[str, list[tuple[FailureText, str]]] = {}
    for position, indexes in sorted(_by_line(log, wanted).items()):
        line = log.line_at(position)
        said = read.get(line.text)
        if said is None:
            said = list(_messages(log, line, [recognizers[index] for index in sorted(indexes)]))
            if all(reading.end <= len(line.text) for reading, _ in said):
                read[line.text] = said
        for reading, message in said:
            yield line, reading, message


@cache
def _needles(recognizers: tuple[Recognizer, ...]) -> Needles:
    return Needles(needle for recognizer in recognizers for needle in recognizer.needles)


def _by_line(log: LogLines, wanted: dict[int, set[int]]) -> dict[int, set[int]]:
    """The first position of each line, with all recognizers that have a needle in it."""
    merged: dict[int, set[int]] = {}
    current, end = -1, -1
    for position in sorted(wanted):
        if position >= end:
            current, end = position, log.line_end(position)
        merged.setdefault(current, set()).update(wanted[position])
    return merged


def _messages(log: LogLines, line: LogLine, recognizers: Sequence[Recognizer]) -> Iterator[tuple[FailureText, str]]:
    """What one line says: usually one message. The lines below it are looked at only where it says one."""
    text = _around_needle(line.text, recognizers)
    behind: list[LogLine] | None = None
    for _ in range(_MESSAGES_A_LINE):
        recognizer, reading, said = _first_reading(text, (), recognizers)
        if recognizer is None or reading is None:
            return
        if behind is None and not _is_whole(reading):
            behind = _continuation(log, line)
        if behind:
            _, fuller, longer = _first_reading(text, behind, (recognizer,))
            reading, said = (fuller, longer) if fuller is not None else (reading, said)
        if reading.figures or not (_SOURCE_CODE.match(text) or is_unreal(text)):
            shown = said[: max(reading.end, min(len(text), MESSAGE_LENGTH))]
            yield consistent(reading), " ".join(shown.split()).strip(" `>|")[:MESSAGE_LENGTH]
        if reading.end >= len(text) or reading.end <= 0:
            return
        text = text[reading.end :]


def _is_whole(reading: FailureText) -> bool:
    """Whether a message lacks nothing that a line below it could add."""
    return not reading.gaps and "total_bytes" in reading.figures and "allocated_bytes" in reading.figures


def _first_reading(
    text: str, behind: Sequence[LogLine], recognizers: Sequence[Recognizer]
) -> tuple[Recognizer | None, FailureText | None, str]:
    """The first recognizer that reads a line with those below it, what it reads, and the text that it was given."""
    for recognizer in recognizers:
        if recognizer.is_flowing:
            said = text + "".join(f" {' '.join(line.text.split())}" for line in behind)
        else:
            said = "\n".join([text, *(line.text for line in behind)])
        said = said[: len(text) + _CHARACTERS_BEHIND]
        reading = recognizer.recognize(said)
        if reading is not None and _begins_in(reading, text, recognizer):
            return recognizer, reading, said
    return None, None, text


def _begins_in(reading: FailureText, text: str, recognizer: Recognizer) -> bool:
    """Whether the line itself says it, and not only one of the lines below it, which has its own turn."""
    if reading.end <= len(text):
        return True
    lowered = text.lower()
    return any(needle.decode() in lowered for needle in recognizer.needles)


def _around_needle(text: str, recognizers: Sequence[Recognizer]) -> str:
    """The part of a line that may say a failure; of a line of a structured log, from the "n" escape before it."""
    is_escaped = "\\n" in text
    if len(text) <= _CHARACTERS_BEFORE + _CHARACTERS_BEHIND and not is_escaped:
        return text
    lowered = text.lower()
    places = [place for recognizer in recognizers for needle in recognizer.needles if (place := lowered.find(needle.decode())) >= 0]
    first = min(places, default=0)
    start = max(0, first - _CHARACTERS_BEFORE)
    if is_escaped and (escape := text.rfind("\\n", start, first)) >= 0:
        start = escape + len("\\n")
    return text[start : first + _CHARACTERS_BEHIND].replace("\\n", " ")


def _continuation(log: LogLines, line: LogLine) -> list[LogLine]:
    """The lines that may belong to the message of a line: of the same speaker, up to what begins something else."""
    following: list[LogLine] = []
    for below in log.after(line, _CONTINUATION_LINES):
        if below.speaker != line.speaker:
            continue
        if _ENDS_MESSAGE.match(below.text) or frame_of(below.text) or exception_of(below.text):
            break
        following.append(below)
    return following
