"""The kernel's log since the sidecar began: what it says of the trainer, of memory, and of the GPU's driver."""

import os
import re
import time
from pathlib import Path

SPEAKS_OF_MEMORY = re.compile(r"oom-kill:|Out of memory|out of memory:|invoked oom-killer|Killed process|oom_reaper")
SPEAKS_OF_DEVICE = re.compile(r"NVRM: Xid|GPU has fallen off|amdgpu.*(?:GPU reset|fault)|Machine check|Hardware Error")

MOST_LINES = 20
READING_SECONDS = 0.05
"""At most; a log that is being flooded is not read to its end."""

INIT_NAMESPACE = "pid:[4026531836]"
"""The host's own process namespace (PROC_PID_INIT_INO): the numbers in the kernel's log are those seen from here."""


def numbers_are_the_hosts() -> bool:
    """Whether process numbers here are those of the kernel's log, and not a container's own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == INIT_NAMESPACE
    except OSError:
        return False


class KernelLog:
    """The log from now on; without the right to read it, nothing."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            pass

    @property
    def is_readable(self) -> bool:
        """Whether it can be read at all."""
        return self._descriptor is not None

    def lines_about(self, pid: int) -> tuple[str, ...]:
        """The newest lines of interest since the last call.

        Args:
            pid: the trainer's, as the kernel's log would name it.
        """
        of_trainer = names_process(pid) if numbers_are_the_hosts() else None
        found = [
            line
            for line in self._lines()
            if SPEAKS_OF_MEMORY.search(line) or SPEAKS_OF_DEVICE.search(line) or (of_trainer is not None and of_trainer.search(line))
        ]
        return tuple(found[-MOST_LINES:])

    def _lines(self) -> list[str]:
        lines: list[str] = []
        until = time.monotonic() + READING_SECONDS
        while self._descriptor is not None and time.monotonic() < until:
            try:
                record = os.read(self._descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # some were overwritten; the next reading goes on behind them
                continue
            except OSError:
                break
            if not record:
                break
            lines.append(text_of_record(record))
        return lines


def text_of_record(record: bytes) -> str:
    """The text of a record of /dev/kmsg: "6,1234,5678901,-;text", then lines of its dictionary."""
    return record.partition(b";")[2].split(b"\n", 1)[0].decode("utf-8", "replace")[:400]


def names_process(pid: int) -> re.Pattern[str]:
    """A pattern for a process's number as the kernel writes it: "python[123]", "pid=123", "process 123", "Comm: python PID: 123"."""
    return re.compile(rf"(?:\[|pid[=:] ?|process |task )'?{pid}(?!\d)", re.IGNORECASE)
