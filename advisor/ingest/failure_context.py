"""A failure with what stands around its message: traceback, phase, rank, the allocator's table, whether the job went on."""

import re
from collections.abc import Iterator
from itertools import islice

from advisor.ingest.failure_incidents import Incident
from advisor.ingest.failure_message import FailureText, first_integer
from advisor.ingest.failure_xla import allocator_state
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.ingest.log_lines import LogLine, LogLines
from advisor.ingest.traceback_phases import phase_of
from advisor.ingest.tracebacks import (
    LINES_ABOVE,
    Traceback,
    exception_of,
    frame_of,
    traceback_above,
)
from advisor.model.dataclass import replace
from advisor.model.evidence import Source
from advisor.model.failure import Failure, FailureKind, Phase

_ESCAPED_FRAME = "\\n  File "
"""A traceback that a structured log keeps in one line."""

_MESSAGE_BEGINNING = 40
"""Characters of a message by which its place in its line is found."""

_TABLE_LINES = 400
"""Lines around a failure of XLA or TensorFlow in which the BFC allocator's table may stand."""

_RECOVERY_LINES = 6
_RECOVERED = LazyPattern(
    r"skipping (?:this |the )?batch|attempting to recover|retrying with|reduc(?:ing|ed) (?:the )?batch size|"
    r"trying (?:again )?with (?:a )?(?:smaller|lower)|"
    r"found executable batch|falling back to|Cleaning up and retry",
    re.IGNORECASE,
)
_AFTERWARDS_BYTES = 32_768
_PROGRESS = (
    LazyPattern(r"loss['\"]?[ :=]{1,4}\d"),
    LazyPattern(r"\[\d{1,3}:\d\d(?::\d\d)?<"),
)
_STEPS_AFTERWARDS = 3
"""Lines of progress behind a failure that show that the job went on; one or two may be other ranks' last ones."""

_RANK_ABOVE_LINES = 4
_TORCHRUN_RANK = LazyPattern(r"^\s{0,20}rank {0,12}: (\d{1,7})\b")

_CPP_BACKWARD = LazyPattern(r"torch::autograd::(?:Engine|PyFunction|CppNode|generated)|\bBackward\d?::apply\b|python_engine\.cpp")
_CPP_LINES = 60

_UNEXPLAINED_KILLS = frozenset({"SIGKILL", "Killed"})


def failure_of(log: LogLines, incident: Incident, path: str, *, follows_another: bool) -> Failure:
    """The failure as evidence.

    Args:
        log: the log.
        incident: one failure and its places.
        path: the file, as the user named it.
        follows_another: whether another failure, not of the host, stands before it in the log.
    """
    reading = incident.reading
    first = incident.lines[0]
    line, traceback = _innermost_traceback(log, incident)
    phase = phase_of(traceback.frames)
    if phase is Phase.UNKNOWN and not traceback.frames and _is_in_backward(log, line):
        phase = Phase.BACKWARD
    figures = {**_table_around(log, first, reading), **reading.figures}
    rank = incident.rank if incident.rank is not None else _rank_above(log, first, reading)
    return Failure(
        source=Source(path=path, where=f"line {first.number}"),
        rank=rank,
        gaps=_gaps(reading, follows_another=follows_another),
        kind=reading.kind,
        message=incident.message,
        line=first.number,
        backend=reading.backend,
        generation=reading.generation,
        device_index=reading.device_index,
        other_processes=reading.processes,
        own_pid=incident.pid,
        resolution_bytes=reading.resolution_bytes,
        needed_tokens=reading.needed_tokens,
        available_tokens=reading.available_tokens,
        detail=reading.detail,
        phase=phase,
        frames=traceback.frames,
        exception=incident.exception or exception_of(incident.message) or _exception_above(log, first),
        recovered=_has_recovered(log, incident),
        **figures,
    )


def _innermost_traceback(log: LogLines, incident: Incident) -> tuple[LogLine, Traceback]:
    """The traceback of the first place that has one whose phase is known, else the longest."""
    best: tuple[LogLine, Traceback] = (incident.lines[0], Traceback())
    for line in incident.lines:
        found = traceback_above(_upward(log, line, incident.message), line.speaker)
        if phase_of(found.frames) is not Phase.UNKNOWN:
            return line, found
        if len(found.frames) > len(best[1].frames):
            best = (line, found)
    return best


def _upward(log: LogLines, line: LogLine, message: str) -> Iterator[LogLine]:
    """The lines above a message, the nearest first; those within its own line first, where a structured log has them."""
    if _ESCAPED_FRAME in line.text:
        place = line.text.find(message[:_MESSAGE_BEGINNING])
        within = line.text[: place if place >= 0 else None].split("\\n")
        yield from (replace(line, text=text.replace('\\"', '"')) for text in reversed(within))
    yield from log.upward(line, LINES_ABOVE)


def _is_in_backward(log: LogLines, line: LogLine) -> bool:
    """Whether the C++ stack below a message is the autograd engine's."""
    return any(_CPP_BACKWARD.search(below.text) for below in log.after(line, _CPP_LINES))


def _table_around(log: LogLines, line: LogLine, reading: FailureText) -> dict[str, int]:
    if reading.kind not in (
        FailureKind.XLA_RESOURCE_EXHAUSTED,
        FailureKind.TENSORFLOW_OUT_OF_MEMORY,
    ):
        return {}
    above = [each.text for each in log.upward(line, _TABLE_LINES)]
    below = [each.text for each in log.after(line, _TABLE_LINES, 65_536)]
    return allocator_state([*reversed(above), *below])


def _rank_above(log: LogLines, line: LogLine, reading: FailureText) -> int | None:
    """The rank of torchrun's block, which stands above the exit code."""
    if reading.kind is not FailureKind.HOST_OUT_OF_MEMORY:
        return None
    for above in log.upward(line, _RANK_ABOVE_LINES):
        rank = first_integer(_TORCHRUN_RANK, above.text)
        if rank is not None:
            return rank
    return None


def _exception_above(log: LogLines, line: LogLine) -> str:
    """The class where it stands alone above a message that begins on its own line."""
    above = log.above(line)
    return exception_of(above.text) if above and frame_of(above.text) is None else ""


def _has_recovered(log: LogLines, incident: Incident) -> bool:
    last = incident.lines[-1]
    near = [*log.upward(last, 2), last, *log.after(last, _RECOVERY_LINES)]
    if any(_RECOVERED.search(line.text) for line in near):
        return True
    afterwards = log.raw[last.end : last.end + _AFTERWARDS_BYTES].decode("utf-8", "replace")
    return any(sum(1 for _ in islice(form.finditer(afterwards), _STEPS_AFTERWARDS)) == _STEPS_AFTERWARDS for form in _PROGRESS)


def _gaps(reading: FailureText, *, follows_another: bool) -> tuple[str, ...]:
    if reading.generation not in _UNEXPLAINED_KILLS:
        return reading.gaps
    said = "the process was killed with SIGKILL; the log does not say by whom"
    if follows_another:
        said = "the process was killed with SIGKILL after another failure; a launcher ending its other ranks looks the same"
    return (*reading.gaps, said)
