"""What /proc/PID/stat says of a process, and what its wait status means."""

import os
import signal
from typing import NamedTuple

DEAD_STATES = "ZXx"


class ProcessStatus(NamedTuple):
    """Fields of /proc/PID/stat; see proc_pid_stat(5).

    Attributes:
        command: the first 15 bytes of its program's name.
        state: a letter; "Z" is a zombie.
        cpu_ticks: user and system time of all its threads.
        thread_count: its threads.
        start_ticks: when it started, since boot.
        resident_pages: its resident memory.
        wait_status: what its parent's wait gives or would give; 0 while it lives, and where we may not know.
    """

    command: str
    state: str
    cpu_ticks: int
    thread_count: int
    start_ticks: int
    resident_pages: int
    wait_status: int


def status_of(text: bytes) -> ProcessStatus | None:
    """The status in the text of /proc/PID/stat; None where it is not one."""
    before, bracket, after = text.rpartition(b")")
    fields = after.split()
    try:
        numbers = [int(fields[at]) for at in (11, 12, 17, 19, 21, 49)]
    except (IndexError, ValueError):
        return None
    command = before.partition(b"(")[2].decode("utf-8", "replace")
    if not bracket:
        return None
    user, system, threads, start, pages, status = numbers
    return ProcessStatus(command, fields[0].decode("ascii", "replace"), user + system, threads, start, pages, status)


class ExitStatus(NamedTuple):
    """How a process ended, by the kernel's word.

    Attributes:
        code: its exit code; None if a signal killed it.
        signal: the signal's number; None if it exited.
        core_dumped: whether the kernel wrote a core dump.
        source: "procfs" or "pidfd".
    """

    code: int | None
    signal: int | None
    core_dumped: bool
    source: str

    @property
    def signal_name(self) -> str | None:
        """As in signal(7)."""
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:
            return f"SIG{self.signal}"


def exit_status_of(wait_status: int, source: str) -> ExitStatus:
    """The meaning of a wait status."""
    if os.WIFSIGNALED(wait_status):
        return ExitStatus(None, os.WTERMSIG(wait_status), os.WCOREDUMP(wait_status), source)
    return ExitStatus(os.WEXITSTATUS(wait_status), None, core_dumped=False, source=source)
