"""The spool: where a run's evidence lies until somebody reads it; files appear whole or not at all."""

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

RING = "ring"
RUN = "run.json"
RECORD = "record.json"
STEPS = "steps"
END = "end.json"

RANK_FOLDER = "rank-{:05d}"
NEW_PREFIX = ".new-"
"""Names of files in the making: readers skip them, and the sidecar removes those of dead writers."""


class NoSpool(OSError):  # noqa: N818 - reads as a sentence
    """No folder can be used as the spool; the text says why and what to set."""


def spool_root() -> Path:
    """The folder of this user's runs: ADVISOR_SPOOL, else the state folder of the home, else one below the temporary folder."""
    chosen = os.environ.get("ADVISOR_SPOOL")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    if state and os.path.isabs(state):  # noqa: PTH117 - the same
        return Path(state) / "advisor" / "runs"
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises where there is none
    if home != "~" and os.access(home, os.W_OK | os.X_OK):
        return Path(home) / ".local" / "state" / "advisor" / "runs"
    return Path(os.environ.get("TMPDIR", "/tmp")) / f"advisor-{os.getuid()}" / "runs"  # noqa: S108 - its owner and mode are checked


def make_rank_folder(root: Path, run_id: str, rank: int | None) -> Path:
    """The folder of one rank of a run, made with mode 0700.

    Raises:
        NoSpool: if it cannot be made, or a folder on its way belongs to somebody else who could read or change what is in it.
        FileExistsError: if the rank has a folder already.
    """
    if not run_id or "/" in run_id or run_id.startswith("."):
        raise NoSpool(f"{run_id!r} is no name of a run: it must not be empty, begin with a dot or hold a slash")
    try:
        run = root / run_id
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (root, run):
            _refuse_foreign(folder)
        folder = run / RANK_FOLDER.format(rank or 0)
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise
    except OSError as error:
        raise NoSpool(f"no spool in {root}: {error.strerror or error}; set ADVISOR_SPOOL to a folder that can be written") from error
    return folder


def _refuse_foreign(folder: Path) -> None:
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.getuid():
        raise NoSpool(f"{folder} belongs to another user; set ADVISOR_SPOOL to a folder of your own")
    if status.st_mode & 0o022:
        raise NoSpool(f"{folder} can be written by others; take that permission away, or set ADVISOR_SPOOL to a folder of your own")


def write_json(folder: Path, name: str, content: dict[str, Any]) -> None:
    """Write a file whole: another process sees all of it, or what was there before.

    Raises:
        OSError: if it cannot be written; nothing is left behind.
    """
    write_bytes(folder, name, json.dumps(content, ensure_ascii=True, allow_nan=False, default=str).encode())


def write_bytes(folder: Path, name: str, data: bytes) -> None:
    """The same for bytes."""
    new = folder / f"{NEW_PREFIX}{os.getpid()}-{name}"
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        new.replace(folder / name)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def new_run_id() -> str:
    """A name that sorts by time: date, time (UTC) and eight random digits."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.urandom(4).hex()}"
