"""See to a trainer's end: what is left in the ring, what can be found out, and `end.json`."""

import json
import os
import re
import time
from collections import deque
from pathlib import Path

from advisor.client.end_record import DETACHED, KNOWN, End, content_of
from advisor.client.host_record import HostSample
from advisor.client.ring_reader import NotARing, State
from advisor.client.sidecar.death import KILLED_PROCESS, Death, RecordedFailure, judge
from advisor.client.sidecar.drain import Drain
from advisor.client.sidecar.host_look import HostLook
from advisor.client.sidecar.kernel_log import SPEAKS_OF_MEMORY, KernelLog, numbers_are_the_hosts
from advisor.client.sidecar.log import Log
from advisor.client.sidecar.process_status import ExitStatus
from advisor.client.sidecar.watch import Watch
from advisor.client.spool import END, NEW_PREFIX, write_json

FAILURE = re.compile(r"failure-(\d+)\.json")
MOST_FAILURE_BYTES = 1 << 20

STATUS_SECONDS = 0.2
"""Longest time spent on asking for the exit status of a process that is dead but not yet a zombie."""

DYING_SECONDS = 3.0
"""A process that the kernel kills for want of memory takes so long to give it back; a sample from that time counts the kill already."""

LATE_LINE_SECONDS = 0.05

RESERVED_BYTES = 32 * 1024
"""Room for `end.json`, taken at the start: a full disk is a frequent cause of death."""


class Ending:
    """Knows what is needed at the end, and writes it down."""

    def __init__(self, folder: Path, watch: Watch, drain: Drain, log: Log) -> None:
        self._folder, self._watch, self._drain, self._log = folder, watch, drain, log
        self._look = HostLook(watch)
        self._kernel = KernelLog()
        self._first: HostSample | None = None
        self._samples: deque[HostSample] = deque(maxlen=8)
        # Named as a file in the making: readers pass it over, and it is swept away should we be killed.
        self._reserve_path = folder / f"{NEW_PREFIX}{os.getpid()}-reserve"
        self._reserve()

    def sampled(self) -> HostSample:
        """Look at the host, and remember it."""
        sample = self._look.look()
        if sample.rss_bytes is not None:
            self._first = self._first or sample
            self._samples.append(sample)
        return sample

    def died(self, *, asked_to_stop: float | None) -> None:
        """The trainer is dead: say how."""
        seen, seen_wall = time.monotonic_ns(), time.time_ns()
        status = self._watch.exit_status(STATUS_SECONDS)
        self._finish_drain()
        state = self._state()
        end = judge(
            Death(
                pid=self._watch.pid,
                command=self._watch.command,
                status=status,
                why_no_status=self._why_no_status(),
                state=state,
                failures=self._failures(seen),
                first=self._first,
                last=self._samples[-1] if self._samples else None,
                calm=self._calm(seen),
                after=self._look.look(),
                kernel_lines=self._kernel_lines(status),
                numbers_are_the_hosts=numbers_are_the_hosts(),
                asked_to_stop_seconds=None if asked_to_stop is None else seen / 1e9 - asked_to_stop,
            )
        )
        self._write(end, state, seen, seen_wall)

    def detached(self) -> None:
        """The trainer lives, and has let go of the ring."""
        seen, seen_wall = time.monotonic_ns(), time.time_ns()
        self._finish_drain()
        state = self._state()
        end = End(DETACHED, KNOWN, "detached: the training went on unwatched, or its interpreter takes very long to end")
        self._write(end, state, seen, seen_wall)

    def _calm(self, seen: int) -> HostSample | None:
        """The newest sample that is surely from before the death began."""
        before = seen - int(DYING_SECONDS * 1e9)
        return next((sample for sample in reversed(self._samples) if sample.nanoseconds < before), self._first)

    def _kernel_lines(self, status: ExitStatus | None) -> tuple[str, ...] | None:
        if not self._kernel.is_readable:
            return None
        lines = self._kernel.lines_about(self._watch.pid)
        killed = status is None or status.signal_name == "SIGKILL"
        if killed and any(map(SPEAKS_OF_MEMORY.search, lines)) and not any(map(KILLED_PROCESS.search, lines)):
            time.sleep(LATE_LINE_SECONDS)  # the kernel kills first and then says so
            lines += self._kernel.lines_about(self._watch.pid)
        return lines

    def _reserve(self) -> None:
        try:
            descriptor = os.open(self._reserve_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, RESERVED_BYTES)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._log.write(f"no room is kept for end.json: {error}")

    def _finish_drain(self) -> None:
        try:
            self._drain.drain(is_last=True)
        except OSError as error:
            self._log.write(f"the last records stay in the ring: {error}")

    def _state(self) -> State | None:
        try:
            return self._drain.head().state
        except (OSError, NotARing) as error:
            self._log.write(f"the ring cannot be read: {error}")
            return None

    def _why_no_status(self) -> str:
        if self._watch.watched_by == "late":
            return "the process was gone before its sidecar looked at it"
        if not self._watch.is_ours_to_know:
            return "the process belongs to another user"
        return "its parent collected it before it could be read, and this kernel keeps it no longer (Linux does from 6.15 on)"

    def _failures(self, seen: int) -> tuple[RecordedFailure, ...]:
        found = []
        try:
            names = sorted(filter(FAILURE.fullmatch, os.listdir(self._folder)), key=_number_of)  # noqa: PTH208 - names are what is wanted
        except OSError:
            return ()
        for name in names:
            try:
                content = json.loads(_head_of(self._folder / name))
                moment, kind = content.get("monotonic_nanoseconds"), content.get("type")
            except (OSError, ValueError, AttributeError, RecursionError) as error:
                self._log.write(f"{name} cannot be read: {error}")
                continue
            age = (seen - moment) / 1e9 if isinstance(moment, int) else 0.0
            found.append(RecordedFailure(name, kind if isinstance(kind, str) else "an exception", age))
        return tuple(found)

    def _write(self, end: End, state: State | None, seen: int, seen_wall: int) -> None:
        trainer, last = self._drain.trainer, self._drain.last_step()
        whole = end._replace(
            phase=None if state is None else state.phase,
            step=None if state is None else state.step,
            phase_seconds=None if state is None else max(0.0, (seen - state.since_nanoseconds) / 1e9),
            last_step=None if last is None else last.step,
            last_step_age_seconds=None if last is None else max(0.0, (seen - last.end_nanoseconds) / 1e9),
            ended_wall_nanoseconds=seen_wall,
            ended_monotonic_nanoseconds=seen,
            ran_seconds=(seen - trainer.monotonic_nanoseconds) / 1e9,
            watched_by=self._watch.watched_by,
            drained_count=self._drain.drained_count,
            lost_count=self._drain.lost_count,
            thinned_count=self._drain.thinned_count,
        )
        try:
            self._reserve_path.unlink(missing_ok=True)
            write_json(self._folder, END, content_of(whole))
        except OSError as error:
            self._log.write(f"end.json cannot be written: {error}; the trainer: {whole.statement}")


def _number_of(name: str) -> int:
    match = FAILURE.fullmatch(name)
    return int(match[1]) if match else 0


def _head_of(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MOST_FAILURE_BYTES)
