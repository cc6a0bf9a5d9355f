"""Every failure of a log: which lines say one, which of them say the same one, and what stands around it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from advisor.ingest.failure_engines import ENGINES
from advisor.ingest.failure_host import HOST
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
from advisor.ingest.log_lines import LogLine, LogLines
from advisor.ingest.tracebacks import exception_of, frame_of

RECOGNIZERS = (
    ENGINES, SPEAKERS, XLA, LIBRARY, COLLECTIVE, MPS, PYTORCH, RUNTIME, SHARED_MEMORY, HOST, LOOKALIKES,
)  # fmt: skip
"""The more specific first: the first that reads a line has it."""

MOST_FAILURES = 256
"""Different failures that are reported of one log; more are counted in a gap."""

MOST_LINES_TRIED = 3_000
"""Lines with one of the needles that are tried, over all needles; a log has tens, a hostile text millions."""

_MOST_LINES_A_NEEDLE = 1_200
"""The same for one needle, half of them from each end of the log."""

_EVERYWHERE = frozenset(
    {
        b"out of memory", b"outofmemory", b"resource_exhausted", b"oom when allocating", b"alloc_failed", b"calloc", b"cache blocks",
        b"kv cache is needed",
        b"stored in kv cache", b"bus error", b"killed process", b"memoryerror", b"illegal memory access", b"device-side assert",
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

_COPIES_KEPT = 3
"""Places of one failure whose surroundings are looked at: a logger, the traceback, an outer handler, the launcher."""

_INCIDENTS_COMPARED = 96
"""Earlier failures that a message is compared with; its copies follow it, after at most one message of each rank."""

MESSAGE_LENGTH = 2_000
"""Characters of a message that are kept."""

_SOURCE_CODE = LazyPattern(
    r"\s{0,40}(?:except|raise|import|if|elif|def|class|return|assert|print|while|for|#|//|/\*|\* |logg?(?:er|ing)?\.)(?=[\s(:'\"#/.]|$)"
    r"|.{0,200}(?:in str\(|in repr\(|isinstance\(|\.lower\(\)|re\.compile\(|assertRaises)",
    re.IGNORECASE,
)
_ENDS_MESSAGE = LazyPattern(r"\s{0,40}(?:Traceback \(|File \"|During handling|The above exception|Exception raised from|\[rank\d)")


@dataclass(slots=True)
class Incident:
    """One failure and the places where the log says it.

    Attributes:
        reading: the fullest of its messages; what it lacks is filled from the others.
        message: that message, one line.
        rank / pid: of whom it is; None where unknown.
        lines: the places, in the log's order.
        exception: the class that was printed before the message.
    """

    reading: FailureText
    message: str
    rank: int | None
    pid: int | None
    lines: list[LogLine] = field(default_factory=list)
    exception: str = ""


def incidents_of(log: LogLines) -> tuple[list[Incident], list[str]]:
    """The failures of a log in its order, and what was left out."""
    gaps: list[str] = []
    found = _grouped(_readings(log, RECOGNIZERS, gaps), gaps)
    if not found:
        is_report = log.line_count <= REPORT_LINES
        found = _grouped(_readings(log, (WORDS if is_report else WORDS_OF_A_LOG,), gaps), gaps)
    found.sort(key=lambda incident: incident.lines[0].start)
    return found, gaps


def _readings(log: LogLines, recognizers: Sequence[Recognizer], gaps: list[str]) -> Iterator[tuple[LogLine, FailureText, str]]:
    """Lines that say a failure, what they say, and the message's own text."""
    wanted: dict[int, set[int]] = {}
    budget, is_all = MOST_LINES_TRIED, True
    for index, recognizer in enumerate(recognizers):
        for needle in recognizer.needles:
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
        behind = _continuation(log, line) if behind is None else behind
        if behind:
            _, fuller, longer = _first_reading(text, behind, (recognizer,))
            reading, said = (fuller, longer) if fuller is not None else (reading, said)
        if reading.figures or not _SOURCE_CODE.match(text):
            shown = said[: max(reading.end, min(len(text), MESSAGE_LENGTH))]
            yield reading, " ".join(shown.split()).strip(" `>|")[:MESSAGE_LENGTH]
        if reading.end >= len(text) or reading.end <= 0:
            return
        text = text[reading.end :]


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
    if len(text) <= _CHARACTERS_BEFORE + _CHARACTERS_BEHIND:
        return text
    lowered = text.lower()
    places = [place for recognizer in recognizers for needle in recognizer.needles if (place := lowered.find(needle.decode())) >= 0]
    first = min(places, default=0)
    return text[max(0, first - _CHARACTERS_BEFORE) : first + _CHARACTERS_BEHIND]


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


def _grouped(readings: Iterator[tuple[LogLine, FailureText, str]], gaps: list[str]) -> list[Incident]:
    """Readings of the same failure made one."""
    incidents: list[Incident] = []
    exact: dict[object, Incident] = {}
    left_out = 0
    for line, reading, message in readings:
        rank = line.speaker.rank if line.speaker.rank is not None else reading.hint_rank
        pid = line.speaker.pid
        key = (reading.kind, reading.generation, rank, pid, message)
        incident = exact.get(key) or _same_as(incidents, reading, rank, pid)
        if incident is None:
            if len(incidents) >= MOST_FAILURES:
                left_out += 1
                continue
            incident = Incident(reading, message, rank, pid)
            incidents.append(incident)
        else:
            _take(incident, reading, message, rank, pid)
        exact[key] = incident
        if len(incident.lines) < _COPIES_KEPT:
            incident.lines.append(line)
        incident.exception = incident.exception or exception_of(line.text)
    if left_out:
        gaps.append(f"{left_out} more messages of failures than the first {MOST_FAILURES} different ones")
    return incidents


def _same_as(incidents: Sequence[Incident], reading: FailureText, rank: int | None, pid: int | None) -> Incident | None:
    """The latest incident that a reading says again."""
    for incident in reversed(incidents[-_INCIDENTS_COMPARED:]):
        other = incident.reading
        if other.kind is not reading.kind or not _agree(incident.rank, rank) or not _agree(incident.pid, pid):
            continue
        if _is_same_wording(other, reading) and _figures_agree(other, reading):
            return incident
    return None


_VAGUE = frozenset(
    {
        "words only",
        "SIGKILL",
        "Killed",
        "torch 1.x cut",
        "NCCL failure",
        "OOM killer",
        "cgroup limit",
        "DataLoader worker exited",
    }
)
"""Wordings that may be another's shadow: the same failure said with less."""

_REPORTED_KILLS = frozenset(
    {
        "SIGKILL",
        "Killed",
        "OOM killer",
        "cgroup OOM killer",
        "cgroup limit",
        "Slurm",
        "Kubernetes",
        "DataLoader worker killed",
    }
)
"""One kill, said by the kernel, the scheduler, the launcher and the shell."""


def _is_same_wording(one: FailureText, other: FailureText) -> bool:
    if one.generation == other.generation:
        return one.backend == other.backend
    pair = {one.generation, other.generation}
    return pair <= _REPORTED_KILLS or bool(pair & _VAGUE) or (one.figures == other.figures and bool(one.figures))


def _figures_agree(one: FailureText, other: FailureText) -> bool:
    """Whether one message's figures are the other's, or some of them."""
    smaller, larger = one.figures, other.figures
    if len(smaller) > len(larger):
        smaller, larger = larger, smaller
    if not smaller.items() <= larger.items():
        return False
    if one.processes and other.processes and one.processes != other.processes:
        return False
    return (
        _agree(one.device_index, other.device_index)
        and _agree(one.needed_tokens, other.needed_tokens)
        and _agree(one.available_tokens, other.available_tokens)
    )


def _agree(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other


def _take(incident: Incident, reading: FailureText, message: str, rank: int | None, pid: int | None) -> None:
    """Add what a copy knows more."""
    kept, added = incident.reading, reading
    if _knowledge(reading) > _knowledge(kept):
        kept, added, incident.message = reading, kept, message
    incident.reading = replace(
        kept,
        backend=kept.backend or added.backend,
        device_index=kept.device_index if kept.device_index is not None else added.device_index,
        processes=kept.processes or added.processes,
        needed_tokens=kept.needed_tokens if kept.needed_tokens is not None else added.needed_tokens,
        available_tokens=kept.available_tokens if kept.available_tokens is not None else added.available_tokens,
        figures={**added.figures, **kept.figures},
        resolution_bytes=max(
            (each for each in (kept.resolution_bytes, added.resolution_bytes) if each is not None),
            default=None,
        ),
        detail=kept.detail or added.detail,
    )
    incident.rank = rank if incident.rank is None else incident.rank
    incident.pid = pid if incident.pid is None else incident.pid


def _knowledge(reading: FailureText) -> tuple[bool, int, int]:
    return reading.generation not in _VAGUE, len(reading.figures), len(reading.processes)
