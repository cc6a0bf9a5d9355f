"""How a trainer ended: the contract of the file `end.json` in the folder of a rank.

The sidecar writes it once, within milliseconds of the trainer's death. Where it is missing the trainer lives, or its sidecar died before
it (a container killed as a whole, a host that went down): then the ring's state, its header (pid, start, boot) and the last lines of
`host` are what is left to judge by.
"""

from typing import Any, NamedTuple

END_VERSION = 1

EXIT = "exit"
"""It ended by its own will: the exit code, or the interpreter's regular end, says so, and no recorded exception explains it."""

EXCEPTION = "exception"
"""An exception that was recorded ended it."""

SIGNAL = "signal"
"""A signal killed it."""

HOST_OOM = "host_oom"
"""The kernel killed it because the host or its container had no memory left."""

ABRUPT = "abrupt"
"""It ended without the interpreter's regular end, by a signal or by `os._exit`; nothing tells which."""

DETACHED = "detached"
"""It let go of the ring, and lives on unwatched."""

UNKNOWN = "unknown"
"""Nothing tells."""

KNOWN, LIKELY = "known", "likely"
"""How sure `how` is: read from the kernel or the trainer's own word, or concluded from traces; UNKNOWN where it is neither."""


class Evidence(NamedTuple):
    """One thing that was found.

    Attributes:
        statement: what it says, in words.
        value / unit: its figure, where it has one.
        source: the file or call it was read from.
    """

    statement: str
    source: str
    value: float | None = None
    unit: str | None = None


class End(NamedTuple):
    """The fields of `end.json`; null is what is not known.

    Attributes:
        version: of this record.
        how: EXIT, EXCEPTION, SIGNAL, HOST_OOM, ABRUPT, DETACHED or UNKNOWN.
        certainty: KNOWN, LIKELY or UNKNOWN, of `how`.
        statement: one sentence that says it.
        evidence: what it was concluded from, and what speaks against other causes.
        unknown: what could not be found out, and why; a sentence each.
        statements: in the file alone: the statement, the evidence and the unknown as sentences, for readers that only print.
        interpreter_ended: whether the interpreter came to its regular end (also after an exception, not after a signal or `os._exit`).
        exit_code: 0 to 255; null if a signal killed it.
        signal: its name, "SIGKILL".
        core_dumped: whether the kernel wrote a core dump.
        exit_status_source: "procfs" (the zombie's /proc/PID/stat), "pidfd" (PIDFD_GET_INFO, Linux 6.15 and later), null.
        failures: names of the files failure-N.json in the folder, oldest first, whether or not they ended it.
        phase / step / phase_seconds: what it was doing (a name of PHASES), in which step, and for how long at its end.
        last_step: number of the last whole step in `steps`.
        last_step_age_seconds: from that step's end to the trainer's.
        ended_wall_nanoseconds / ended_monotonic_nanoseconds: when its death was seen.
        ran_seconds: from the ring's making to its death.
        watched_by: "pidfd" (seen within milliseconds), "procfs" (within a tenth of a second), "late" (it was dead when the sidecar came).
        asked_to_stop_seconds: time from a SIGTERM to the sidecar itself until the trainer's death: whoever stops both stops the job.
        drained_count / lost_count / thinned_count: records in `steps`; overwritten in the ring before they could be drained; dropped from
            the older part of `steps` to bound it. Either shows as a gap in the sequence numbers.
        kernel_log: lines of the kernel's log since the start that speak of the trainer, of memory, or of the GPU's driver.
    """

    how: str
    certainty: str
    statement: str
    evidence: tuple[Evidence, ...] = ()
    unknown: tuple[str, ...] = ()
    interpreter_ended: bool | None = None
    exit_code: int | None = None
    signal: str | None = None
    core_dumped: bool | None = None
    exit_status_source: str | None = None
    failures: tuple[str, ...] = ()
    phase: str | None = None
    step: int | None = None
    phase_seconds: float | None = None
    last_step: int | None = None
    last_step_age_seconds: float | None = None
    ended_wall_nanoseconds: int | None = None
    ended_monotonic_nanoseconds: int | None = None
    ran_seconds: float | None = None
    watched_by: str | None = None
    asked_to_stop_seconds: float | None = None
    drained_count: int | None = None
    lost_count: int | None = None
    thinned_count: int | None = None
    kernel_log: tuple[str, ...] = ()
    version: int = END_VERSION


def content_of(end: End) -> dict[str, Any]:
    """The record as JSON's objects."""
    told = [f"{piece.statement} ({piece.source})" for piece in end.evidence]
    statements = [end.statement, *told, *(f"not known: {gap}" for gap in end.unknown)]
    return {**end._asdict(), "evidence": [piece._asdict() for piece in end.evidence], "statements": statements}
