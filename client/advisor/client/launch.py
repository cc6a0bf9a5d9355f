"""Start the sidecar: a small process beside the trainer that outlives it and says how it died.

The trainer must not notice. It is not forked (that would copy the page tables of a process of 100 GB); a shell is spawned in its place,
puts the sidecar into the background and ends at once, so that the sidecar is no child of the trainer: it leaves no zombie, and
`os.wait()` in the training never sees it. Its own process group keeps Ctrl-C and a launcher's `killpg` from it.
"""

import logging
import os
import re
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

LOG = logging.getLogger("advisor")

SIDECAR_LOG = "sidecar.log"
"""What the sidecar has to say, and what its interpreter says if it cannot start."""

SHELL = "/bin/sh"
IN_BACKGROUND = '"$@" </dev/null >/dev/null & echo $!'

WAIT_SECONDS = 0.005
"""For the shell's word that the sidecar runs: 1 to 2 ms where a processor is free. `reap()` collects a shell that is slower."""

KEPT_VARIABLES = ("PATH", "HOME", "USER", "TMPDIR", "LD_LIBRARY_PATH", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
"""What the sidecar's own work needs: to start, to find git and its settings, to find the spool."""

INTERPRETER_NAME = re.compile(r"(python|pypy)\d*(\.\d+)*[td]*")

RESET_SIGNALS = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
"""Ignored signals would stay ignored in the sidecar."""

_unreaped: list[int] = []


def start_sidecar(
    folder: Path,
    *,
    pid: int | None = None,
    environment: Mapping[str, str] | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> int | None:
    """Start the sidecar of a rank, whose ring and run.json must be there; takes 1 to 2 ms, at most `wait_seconds` beyond the spawning.

    Args:
        folder: of the rank.
        pid: the trainer; this process by default.
        environment: of which the variables that a sidecar needs are passed on; that of this process by default.
        wait_seconds: for the sidecar's process number.

    Returns:
        The sidecar's process number; None where it could not be started (a line in the log says why) or the number did not come in time.
    """
    reap()
    program = interpreter()
    script = Path(__file__).parent / "sidecar" / "__main__.py"
    if program is None or not script.is_file():
        LOG.warning("advisor: no sidecar, %s: how this run ends will not be recorded", "no Python to run it was found")
        return None
    known = os.environ if environment is None else environment
    # Absolute, since the sidecar leaves this process's working directory.
    folder = folder.absolute()
    words = [program, *_flags(known), str(script.absolute()), str(folder), str(os.getpid() if pid is None else pid)]
    try:
        return _spawn(words, folder / SIDECAR_LOG, _kept(known), wait_seconds)
    except OSError as error:
        LOG.warning("advisor: no sidecar, %s: how this run ends will not be recorded", error)
        return None


def reap() -> None:
    """Collect shells that were too slow to be waited for; never waits."""
    for pid in tuple(_unreaped):
        try:
            done = os.waitpid(pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            done = True
        if done:
            _unreaped.remove(pid)


def interpreter() -> str | None:
    """A Python to run the sidecar with; None in a frozen program, and in one that embeds Python and has none beside it."""
    if getattr(sys, "frozen", False):
        return None
    version = f"bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    beside = [str(Path(prefix) / version) for prefix in (sys.exec_prefix, sys.base_exec_prefix)]
    for path in (sys.executable, getattr(sys, "_base_executable", None), *beside):
        # Of a program that embeds Python, `sys.executable` may be the program itself.
        if path and INTERPRETER_NAME.fullmatch(Path(path).name) and Path(path).is_absolute() and os.access(path, os.X_OK):
            return path
    return None


def _flags(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Isolated, without site-packages; a Python that was moved needs PYTHONHOME to find its library, and isolation would hide that."""
    return ("-s", "-S") if environment.get("PYTHONHOME") else ("-I", "-S")


def _kept(environment: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if name in KEPT_VARIABLES or name.startswith("ADVISOR_")}
    if environment.get("PYTHONHOME"):
        kept["PYTHONHOME"] = environment["PYTHONHOME"]
    return kept


def _spawn(words: list[str], log: Path, environment: dict[str, str], wait_seconds: float) -> int | None:
    reading, writing = os.pipe()
    try:
        shell, arguments = SHELL, ["sh", "-c", IN_BACKGROUND, "sh", *words]
        if not os.access(SHELL, os.X_OK):  # the sidecar is then a child of the trainer: as good, but for `os.wait()`
            shell, arguments = words[0], words
        try:
            child = os.posix_spawn(
                shell,
                arguments,
                environment,
                file_actions=_file_actions(writing, log),
                setpgroup=0,
                setsigmask=(),
                setsigdef=RESET_SIGNALS,
            )
        finally:
            os.close(writing)
        if shell != SHELL:
            _unreaped.append(child)
            return child
        return _word_of(child, reading, wait_seconds)
    finally:
        os.close(reading)


def _file_actions(writing: int, log: Path) -> list[tuple[int, ...]]:
    """Nothing of the trainer's stays open in the sidecar: neither its terminal, nor the pipes of whoever started it."""
    log_flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    actions: list[tuple[int, ...]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),  # type: ignore[list-item]  # the path of an opening is text
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_OPEN, 2, str(log), log_flags, 0o600),  # type: ignore[list-item]
    ]
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are what is wanted
        number = int(name)
        if number > 2 and number != writing and _is_inherited(number):  # noqa: PLR2004 - the standard three are replaced
            actions.append((os.POSIX_SPAWN_CLOSE, number))
    return actions


def _is_inherited(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:
        return False


def _word_of(shell: int, reading: int, wait_seconds: float) -> int | None:
    """The sidecar's process number, as the shell says it; the shell is then collected."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    until = time.monotonic() + wait_seconds
    word = b""
    while not word.endswith(b"\n"):
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            break
        piece = os.read(reading, 32)
        if not piece:
            break
        word += piece
    _unreaped.append(shell)
    if word.endswith(b"\n"):
        _collect(shell, until)
    return int(word) if word.strip().isdigit() else None


def _collect(shell: int, until: float) -> None:
    """Wait for a shell that has nothing left to do; not for one that hangs in a file system."""
    while shell in _unreaped:
        reap()
        if time.monotonic() > until:
            return
        time.sleep(0.0001)
