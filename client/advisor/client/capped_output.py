"""Run a command of another program for its output, of which no more is taken than asked for, and not longer than one waits."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

PIECE_BYTES = 64 * 1024
MOST_ERROR_BYTES = 4096

KILLED_SECONDS = 2.0
"""For a killed process to be gone; one that waits for a dead disk or network mount stays, and is left."""


class Output(NamedTuple):
    """What a command wrote.

    Attributes:
        data: its standard output, cut where it was too long.
        error: the begin of its standard error.
        return_code: None where it was ended or could not be started.
        is_cut: whether there was more output than was taken.
        is_late: whether it was ended because it took too long.
    """

    data: bytes
    error: str
    return_code: int | None
    is_cut: bool
    is_late: bool


def output_of(command: Sequence[str], *, cwd: str, environment: Mapping[str, str], most_bytes: int, patience_seconds: float) -> Output:
    """Run a command to its end, to `most_bytes` of output, or for `patience_seconds`; it and its children are ended then. Never raises."""
    try:
        process = subprocess.Popen(  # noqa: S603 - as above
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Output(b"", str(error), None, is_cut=False, is_late=False)
    deadline = time.monotonic() + patience_seconds
    data, errors, is_cut, is_late = _read(process, most_bytes, deadline)
    return_code = None
    if not is_cut and not is_late:
        return_code = _end_of(process, max(0.0, deadline - time.monotonic()))
        is_late = return_code is None
    if return_code is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        _end_of(process, KILLED_SECONDS)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return Output(data, errors.decode("utf-8", "replace").strip(), return_code, is_cut, is_late)


def _end_of(process: "subprocess.Popen[bytes]", patience_seconds: float) -> int | None:
    try:
        return process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        return None


def _read(process: "subprocess.Popen[bytes]", most_bytes: int, deadline: float) -> tuple[bytes, bytes, bool, bool]:
    pieces: dict[str, list[bytes]] = {"data": [], "errors": []}
    taken = {"data": 0, "errors": 0}
    with selectors.DefaultSelector() as selector:
        for stream, name in ((process.stdout, "data"), (process.stderr, "errors")):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            for key, _ in ready:
                piece = os.read(key.fd, PIECE_BYTES)
                if not piece:
                    selector.unregister(key.fileobj)
                    continue
                room = (most_bytes if key.data == "data" else MOST_ERROR_BYTES) - taken[key.data]
                pieces[key.data].append(piece[: max(0, room)])
                taken[key.data] += len(piece)
            if taken["data"] > most_bytes or time.monotonic() > deadline:
                break
        is_cut, is_late = taken["data"] > most_bytes, bool(selector.get_map())
    return b"".join(pieces["data"]), b"".join(pieces["errors"]), is_cut, is_late and not is_cut
