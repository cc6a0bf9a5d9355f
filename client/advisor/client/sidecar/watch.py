"""Watch a process that is not our child: see its death, and learn its exit status where the kernel tells it."""

import fcntl
import os
import select
import struct
import time

from advisor.client.sidecar.process_status import DEAD_STATES, ExitStatus, ProcessStatus, exit_status_of, status_of

POLLING_SECONDS = 0.1
"""Between two looks where the kernel has no pidfd (before Linux 5.3, or where a sandbox forbids it)."""

PIDFD_OPEN = 434
"""Number of the system call, the same on all architectures; many builds of Python are older than it."""

PIDFD_GET_INFO = 0xC040FF0B
PIDFD_INFO = struct.Struct("<QQ11Ii")
PIDFD_INFO_EXIT = 8
"""ioctl, structure and mask of linux/pidfd.h: the wait status of a process that its parent has collected, from Linux 6.15 on."""


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process dies; None where there is no such process or no such call."""
    try:
        if hasattr(os, "pidfd_open"):
            return os.pidfd_open(pid)
        import ctypes  # noqa: PLC0415 - costs 2 MB, for old builds of Python alone

        descriptor = ctypes.CDLL(None).syscall(PIDFD_OPEN, pid, 0)
    except (OSError, ImportError, AttributeError):
        return None
    return descriptor if descriptor >= 0 else None


class Watch:
    """A process under watch."""

    def __init__(self, pid: int, start_ticks: int, *, pidfd: bool = True) -> None:
        """Begin.

        Args:
            pid: its number.
            start_ticks: when it started; 0 where that is not known. A process of the same number and another start is not it.
            pidfd: use a pidfd where there is one.
        """
        self.pid = pid
        self._pidfd = open_pidfd(pid) if pidfd else None
        self._stat: int | None = None
        self.is_ours_to_know = False
        try:
            # Held open: it belongs to this process, not to whoever gets its number next.
            self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
            self.is_ours_to_know = os.geteuid() in {0, os.stat(f"/proc/{pid}").st_uid}  # noqa: PTH116 - once
        except OSError:
            pass
        first = self.status()
        self.is_there = first is not None and start_ticks in {0, first.start_ticks}
        self.command = first.command if first is not None and self.is_there else ""
        if not self.is_there:
            self._close()
        self.watched_by = "late" if not self.is_there else "procfs" if self._pidfd is None else "pidfd"

    def status(self) -> ProcessStatus | None:
        """Its status now; None when its parent has collected it."""
        if self._stat is None:
            return None
        try:
            return status_of(os.pread(self._stat, 2048, 0))
        except OSError:
            return None

    def wait(self, seconds: float) -> bool:
        """Wait for its death, at most so long; True when it is dead."""
        if not self.is_there:
            return True
        if self._pidfd is not None:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            return bool(poll.poll(seconds * 1000))
        until = time.monotonic() + seconds
        while self._lives():
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, POLLING_SECONDS))
        return True

    def exit_status(self, seconds: float) -> ExitStatus | None:
        """How it ended, once it is dead.

        A zombie says it to whoever may look; when its parent has collected it, a pidfd says it on new kernels. A process seen dead that
        is neither yet is asked again for so many seconds.
        """
        until = time.monotonic() + seconds
        while True:
            status = self.status()
            if status is not None and status.state in DEAD_STATES and self.is_ours_to_know:
                return exit_status_of(status.wait_status, "procfs")
            told = self._told_by_pidfd()
            if told is not None or status is None or time.monotonic() >= until:
                return told
            time.sleep(0.001)

    def _lives(self) -> bool:
        status = self.status()
        return status is not None and status.state not in DEAD_STATES

    def _told_by_pidfd(self) -> ExitStatus | None:
        if self._pidfd is None:
            return None
        asked = PIDFD_INFO.pack(PIDFD_INFO_EXIT, *(0,) * 13)
        try:
            answer = PIDFD_INFO.unpack(fcntl.ioctl(self._pidfd, PIDFD_GET_INFO, asked))
        except OSError:
            return None
        return exit_status_of(answer[-1] & 0xFFFF, "pidfd") if answer[0] & PIDFD_INFO_EXIT else None

    def _close(self) -> None:
        for descriptor in (self._pidfd, self._stat):
            if descriptor is not None:
                os.close(descriptor)
        self._pidfd = self._stat = None
