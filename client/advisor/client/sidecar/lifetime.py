"""Become a process of our own: no terminal, no open file but our log, no place that somebody might want to unmount, little priority."""

import fcntl
import os
import signal
from contextlib import suppress
from pathlib import Path

NICENESS = 5
"""The trainer's threads and its loader's workers come first; death must still be seen within milliseconds on a busy machine."""


def settle() -> None:
    """Let go of everything that was inherited; what cannot be done is left."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    for act in (os.setsid, lambda: os.chdir("/"), lambda: os.nice(NICENESS), _close_inherited, _take_name):
        with suppress(OSError):
            act()


def _take_name() -> None:
    """So that who sees one more Python in `top` knows what it is."""
    Path("/proc/self/comm").write_text("advisor-sidecar", "ascii")


def _close_inherited() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    # Python has nothing open yet that it needs.
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are what is wanted
        if int(name) > 2:  # noqa: PLR2004 - the log
            with suppress(OSError):
                os.close(int(name))


def lock(descriptor: int) -> bool:
    """Take a file for ourselves, as long as it is open; False where another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
