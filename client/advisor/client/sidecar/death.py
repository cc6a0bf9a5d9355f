"""Conclude how a trainer died from what was found: a pure function of it."""

import re
from typing import NamedTuple

from advisor.client.end_record import ABRUPT, EXCEPTION, EXIT, HOST_OOM, KNOWN, LIKELY, SIGNAL, UNKNOWN, End, Evidence
from advisor.client.host_record import HostSample
from advisor.client.layout import ENDED
from advisor.client.ring_reader import State
from advisor.client.sidecar.kernel_log import SPEAKS_OF_MEMORY, names_process
from advisor.client.sidecar.process_status import ExitStatus

FRESH_SECONDS = 30.0
"""An exception recorded so long before the end may have ended the training: writing its checkpoint and stopping its workers takes a while.
An older one was survived, unless the exit code says otherwise."""

NEAR_LIMIT_RATIO = 0.95
"""Of a control group's limit: the kernel reclaims page cache below it, so that a group in use stays a little under its limit."""

LITTLE_AVAILABLE_BYTES = 512 * 1024 * 1024
"""Of a host: the order of the kernel's own reserve and of what a process may take between two samples."""

LEAVING = {"builtins.SystemExit", "builtins.KeyboardInterrupt"}
"""Exceptions that are a way to leave; the exit code and the signal say it better."""

KILLED_PROCESS = re.compile(r"Killed process \d+ \(([^)]*)\)")

GROUP_KILLS, HOST_KILLS = "memory.events or memory.oom_control, oom_kill", "/proc/vmstat, oom_kill"

MIB, GIB = 1024**2, 1024**3


class RecordedFailure(NamedTuple):
    """A file failure-N.json.

    Attributes:
        name: of the file.
        kind: of its type, "builtins.RuntimeError".
        age_seconds: from its writing to the death.
    """

    name: str
    kind: str
    age_seconds: float


class Death(NamedTuple):
    """What was found at a trainer's death.

    Attributes:
        pid / command: its number and program.
        status: by the kernel's word; None where it could not be had.
        why_no_status: a sentence for that case.
        state: its ring's; None before its first step.
        failures: recorded exceptions, oldest first.
        first / last / after: samples at the sidecar's start, the last one in the trainer's life, and one after its death.
        calm: the last one that was surely taken before the death began; kills are counted from there.
        kernel_lines: of the kernel's log; None where it may not be read.
        numbers_are_the_hosts: whether the log's process numbers are ours.
        asked_to_stop_seconds: from a SIGTERM to the sidecar to the death.
    """

    pid: int
    command: str
    status: ExitStatus | None
    why_no_status: str
    state: State | None
    failures: tuple[RecordedFailure, ...]
    first: HostSample | None
    last: HostSample | None
    calm: HostSample | None
    after: HostSample | None
    kernel_lines: tuple[str, ...] | None
    numbers_are_the_hosts: bool
    asked_to_stop_seconds: float | None


def judge(death: Death) -> End:
    """How it died, on what evidence, and what nothing tells; the fields of figures (steps, clocks) are filled in by the caller."""
    has_ended = None if death.state is None else bool(death.state.flags & ENDED)
    memory, is_certain = _memory_evidence(death)
    how, certainty, statement = _verdict(death, has_ended=has_ended, killed_for_memory=bool(memory), is_certain=is_certain)
    evidence = (*_status_evidence(death, has_ended), *_failure_evidence(death), *memory, *_surroundings(death, how))
    status = death.status
    return End(
        how=how,
        certainty=certainty,
        statement=statement,
        evidence=evidence,
        unknown=_gaps(death),
        interpreter_ended=has_ended,
        exit_code=None if status is None else status.code,
        signal=None if status is None else status.signal_name,
        core_dumped=None if status is None else status.core_dumped,
        exit_status_source=None if status is None else status.source,
        failures=tuple(failure.name for failure in death.failures),
        asked_to_stop_seconds=death.asked_to_stop_seconds,
        kernel_log=death.kernel_lines or (),
    )


def _verdict(death: Death, *, has_ended: bool | None, killed_for_memory: bool, is_certain: bool) -> tuple[str, str, str]:
    status, failure = death.status, _fatal_failure(death, has_ended)
    killed_silently = status is None and not has_ended
    if killed_for_memory and (killed_silently or (status is not None and status.signal_name == "SIGKILL")):
        return _killed_for_memory(death, is_certain=is_certain)
    if failure is not None:
        certainty = KNOWN if status is not None and has_ended else LIKELY
        return EXCEPTION, certainty, f"ended by {failure.kind}" + ("" if certainty == KNOWN else ", as far as the traces tell")
    return _unexplained(has_ended) if status is None else _by_status(status, has_ended)


def _by_status(status: ExitStatus, has_ended: bool | None) -> tuple[str, str, str]:
    if status.signal is not None:
        return SIGNAL, KNOWN, f"killed by {status.signal_name}" + (", after the interpreter's regular end" if has_ended else "")
    way = ", without the interpreter's regular end (os._exit, or another program in its place)" if has_ended is False else ""
    return EXIT, KNOWN, f"exited with code {status.code}{way}"


def _unexplained(has_ended: bool | None) -> tuple[str, str, str]:
    if has_ended:
        return EXIT, KNOWN, "the interpreter came to its regular end; its exit code is not known"
    if has_ended is None:
        return UNKNOWN, UNKNOWN, "ended before its first step; nothing tells how"
    return ABRUPT, KNOWN, "ended without the interpreter's regular end, by a signal or os._exit; nothing tells which"


def _killed_for_memory(death: Death, *, is_certain: bool) -> tuple[str, str, str]:
    before = death.last or death.first
    text = "\n".join(death.kernel_lines or ())
    if "Memory cgroup out of memory" in text or (before is not None and _is_near_limit(before, death.after)):
        whose = "its control group (container, job) had no memory left"
    else:
        whose = "the host had no memory left" if "Out of memory:" in text else "its host or control group had no memory left"
    statement = f"killed by the kernel: {whose}"
    return (HOST_OOM, KNOWN, statement) if is_certain else (HOST_OOM, LIKELY, f"probably {statement}")


def _fatal_failure(death: Death, has_ended: bool | None) -> RecordedFailure | None:
    """The recorded exception that fits the end; None where none does."""
    status = death.status
    last = next((failure for failure in reversed(death.failures) if failure.kind not in LEAVING), None)
    if last is None or (status is not None and status.code != 1):  # Python's code for an exception that nobody caught
        return None
    if status is None and not has_ended:  # an exception lets the interpreter come to its end
        return None
    return last if last.age_seconds <= FRESH_SECONDS else None


def _memory_evidence(death: Death) -> tuple[tuple[Evidence, ...], bool]:
    """What says that the kernel killed it for want of memory, and whether that is beyond doubt."""
    found: list[Evidence] = []
    is_certain = spares_the_trainer = False
    for line in death.kernel_lines or ():
        killed = KILLED_PROCESS.search(line) if SPEAKS_OF_MEMORY.search(line) else None
        if killed is None:
            continue
        if not death.numbers_are_the_hosts:
            if killed[1] == death.command:
                found.append(Evidence(f"the kernel's log, of a process of the same name: {line}", "/dev/kmsg"))
        elif names_process(death.pid).search(line):
            is_certain = True
            found.append(Evidence(f"the kernel's log: {line}", "/dev/kmsg"))
        else:
            spares_the_trainer = True
    before = death.calm
    # A kill that the log explains by another process says nothing of this one.
    if before is not None and death.after is not None and (is_certain or not spares_the_trainer):
        found.extend(_kills(before, death.after))
    return tuple(found), is_certain


def _kills(before: HostSample, after: HostSample) -> list[Evidence]:
    """Kills for want of memory that were counted between two samples."""
    seconds = (after.nanoseconds - before.nanoseconds) / 1e9
    group = _growth(before.group_oom_kill_count, after.group_oom_kill_count)
    if group:
        text = f"the kernel killed {group} process(es) of the trainer's control group for want of memory in its last {seconds:.1f} s"
        return [Evidence(text, GROUP_KILLS, group, "processes")]
    host = _growth(before.host_oom_kill_count, after.host_oom_kill_count)
    if host and group is None:  # where the group's own count is known and did not grow, it was some other process
        text = f"the kernel killed {host} process(es) of the host for want of memory in the trainer's last {seconds:.1f} s"
        return [Evidence(text, HOST_KILLS, host, "processes")]
    return []


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _status_evidence(death: Death, has_ended: bool | None) -> list[Evidence]:
    found: list[Evidence] = []
    status = death.status
    if status is not None:
        source = "/proc/PID/stat of the zombie" if status.source == "procfs" else "ioctl PIDFD_GET_INFO"
        text = f"exit code {status.code}" if status.signal is None else f"killed by {status.signal_name}"
        found.append(Evidence(f"{text}, by the kernel's word", source, status.code))
    if has_ended is not None:
        text = "the interpreter ran its exit functions" if has_ended else "the interpreter's exit functions did not run"
        found.append(Evidence(text, "ring, flag of the state"))
    if death.asked_to_stop_seconds is not None:
        text = f"{death.asked_to_stop_seconds:.1f} s before, the sidecar was sent SIGTERM: whoever stopped it stops whole jobs or sessions"
        found.append(Evidence(text, "sidecar's signal", death.asked_to_stop_seconds, "seconds"))
    return found


def _failure_evidence(death: Death) -> list[Evidence]:
    return [
        Evidence(
            f"{failure.kind} was recorded {max(0.0, failure.age_seconds):.1f} s before the end",
            failure.name,
            failure.age_seconds,
            "seconds",
        )
        for failure in death.failures[-3:]
    ]


def _surroundings(death: Death, how: str) -> list[Evidence]:
    """Memory of the host and the group before the end; said when it was short, or when a kill for want of it has to be excluded."""
    before = death.last or death.first
    if before is None:
        return []
    short = _shortage(before, death.after)
    if how == HOST_OOM or short:
        short.extend(_holders(before, death.after))
    if death.after is not None and how == SIGNAL and death.status is not None and death.status.signal_name == "SIGKILL":
        short.extend(_no_kills(death.calm or before, death.after))
    earlier = _growth(death.first.group_oom_kill_count, death.calm.group_oom_kill_count) if death.first and death.calm else None
    if earlier:
        text = f"earlier in the run {earlier} process(es) of the control group were killed for want of memory, perhaps a loader's workers"
        short.append(Evidence(text, GROUP_KILLS, earlier, "processes"))
    return short


def _shortage(before: HostSample, after: HostSample | None) -> list[Evidence]:
    found: list[Evidence] = []
    used, limit, peak = before.group_bytes, before.group_limit_bytes, after.group_peak_bytes if after else None
    if _is_near_limit(before, after):
        text = f"the control group used {_size(used)} of its limit of {_size(limit)}" + (f", {_size(peak)} at most" if peak else "")
        found.append(Evidence(text, "memory.current, memory.max, memory.peak", used, "bytes"))
    left = before.available_bytes
    if left is not None and left < LITTLE_AVAILABLE_BYTES:
        found.append(Evidence(f"the host had {_size(left)} left", "/proc/meminfo, MemAvailable", left, "bytes"))
    return found


def _is_near_limit(before: HostSample, after: HostSample | None) -> bool:
    used, limit = before.group_bytes, before.group_limit_bytes
    peak = after.group_peak_bytes if after else None
    return used is not None and bool(limit) and max(used, peak or 0) >= NEAR_LIMIT_RATIO * (limit or 0)


def _holders(before: HostSample, after: HostSample | None) -> list[Evidence]:
    found: list[Evidence] = []
    when = f", {(after.nanoseconds - before.nanoseconds) / 1e9:.1f} s before the end" if after else ""
    if before.rss_bytes is not None:
        found.append(Evidence(f"the trainer held {_size(before.rss_bytes)}{when}", "/proc/PID/stat", before.rss_bytes, "bytes"))
    if before.child_count and before.child_rss_bytes:
        text = f"its {before.child_count} children held {_size(before.child_rss_bytes)} at most, shared pages counted in each"
        found.append(Evidence(text, "/proc/PID/statm of the children", before.child_rss_bytes, "bytes"))
    return found


def _no_kills(before: HostSample, after: HostSample) -> list[Evidence]:
    if _growth(before.group_oom_kill_count, after.group_oom_kill_count) == 0:
        return [Evidence("no kill for want of memory was counted in its control group", GROUP_KILLS, 0, "processes")]
    if _growth(before.host_oom_kill_count, after.host_oom_kill_count) == 0:
        return [Evidence("no kill for want of memory was counted on the host", HOST_KILLS, 0, "processes")]
    return []


def _gaps(death: Death) -> tuple[str, ...]:
    gaps = []
    if death.status is None:
        gaps.append(f"the exit code and the signal: {death.why_no_status}")
    if death.kernel_lines is None:
        gaps.append("the kernel's log may not be read by this user")
    before, after = death.calm, death.after
    counts = [
        _growth(getattr(before, name), getattr(after, name)) if before and after else None
        for name in ("group_oom_kill_count", "host_oom_kill_count")
    ]
    if counts == [None, None]:
        gaps.append("whether the kernel killed for want of memory: neither the control group nor the host shows its count")
    return tuple(gaps)


def _size(size_bytes: int | None) -> str:
    if size_bytes is None:
        return "?"
    return f"{size_bytes / GIB:.2f} GiB" if size_bytes >= GIB else f"{size_bytes / MIB:.0f} MiB"
