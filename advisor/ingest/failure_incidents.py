"""Readings of the same failure made one: what a logger, a traceback, an outer handler and a launcher say of it."""

from collections.abc import Iterator, Sequence

from advisor.ingest.failure_message import FailureText
from advisor.ingest.log_lines import LogLine
from advisor.ingest.tracebacks import exception_of
from advisor.model.dataclass import dataclass, field, replace

MOST_FAILURES = 256
"""Different failures that are reported of one log; more are counted in a gap."""

_COPIES_KEPT = 3
"""Places of one failure whose surroundings are looked at: a logger, the traceback, an outer handler, the launcher."""

_INCIDENTS_COMPARED = 64
"""Earlier failures that a message is compared with; its copies follow it, after at most one message of each rank."""


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


def grouped(readings: Iterator[tuple[LogLine, FailureText, str]], gaps: list[str]) -> list[Incident]:
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
