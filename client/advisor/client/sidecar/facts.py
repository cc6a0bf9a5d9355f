"""Find out in a process of its own what takes long to find out of a run, and write `record.json`.

Of its own, so that its memory is given back, and that a git that hangs in a dead network mount holds up nothing.
"""

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from advisor.client.launch import SIDECAR_LOG
from advisor.client.sidecar.log import Log
from advisor.client.spool import RECORD, RUN, write_json

WORD = "--facts"
"""Instead of the trainer's number: do this, and leave."""

NICENESS = 10
"""On top of the sidecar's own: nobody waits for this."""

MOST_SECONDS = 120
"""Of real time: hashing 100 GB takes as long."""

Finder = Callable[[Mapping[str, Any]], dict[str, Any]]


class FactFinding:
    """The process, and how it is doing."""

    def __init__(self, folder: Path, log: Log) -> None:
        """Start it; what prevents it is logged."""
        self._log = log
        self._pid: int | None = None
        self._until = time.monotonic() + MOST_SECONDS
        flags = ("-I", "-S") if sys.flags.isolated else ("-s", "-S")
        words = [sys.executable, *flags, sys.argv[0], str(folder), WORD]
        # The log is opened anew: the lock on it belongs to the opening, and must not outlive the sidecar.
        log_again = (os.POSIX_SPAWN_OPEN, 2, str(folder / SIDECAR_LOG), os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW, 0)
        try:
            self._pid = os.posix_spawn(words[0], words, dict(os.environ), file_actions=[log_again])
        except OSError as error:
            log.write(f"the record could not be begun: {error}")

    def is_over(self) -> bool:
        """Whether it is done, or was ended for taking too long; never waits."""
        if self._pid is None:
            return True
        ended, status = os.waitpid(self._pid, os.WNOHANG)
        if not ended and time.monotonic() > self._until:
            os.kill(self._pid, signal.SIGKILL)
            ended, status = os.waitpid(self._pid, 0)
            self._log.write(f"the record was given up after {MOST_SECONDS} s")
        elif ended and status:
            self._log.write(f"the process that writes the record ended with status {status}")
        if ended:
            self._pid = None
        return bool(ended)


def write_facts(folder: Path, log: Log) -> int:
    """The process's work.

    Returns:
        Its exit code.
    """
    signal.alarm(MOST_SECONDS)  # ends it should the sidecar be gone
    os.nice(NICENESS)
    finder = _finder()
    if finder is None:
        log.write("no record beyond what attach() noted: this version has no slow_facts")
        return 0
    try:
        facts = json.loads((folder / RUN).read_bytes())
        write_json(folder, RECORD, finder(facts))
    except (OSError, ValueError) as error:
        log.write(f"the record was not written: {error}")
        return 1
    return 0


def _finder() -> Finder | None:
    try:
        module = importlib.import_module("advisor.client.slow_facts")  # here, since it is heavy and of use to this process alone
    except ModuleNotFoundError:
        return None
    return getattr(module, "facts_after_attach", None)
