"""The index of a rank's folder: a line for each file that will not change any more, with its hash.

It can be rebuilt from the folder at any time, and is at the sidecar's start. Of two lines of one name the later holds; a line whose
`bytes` is null says that the file was dropped. A line that a kill tore is no JSON and is left out by readers.
"""

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

from advisor.client.host_record import HOST
from advisor.client.launch import SIDECAR_LOG
from advisor.client.sidecar.hashing import Hashing
from advisor.client.spool import NEW_PREFIX, RING, STEPS, write_bytes

INDEX = "index.jsonl"
DROPPED = "dropped.json"

CHANGING = {RING, STEPS, HOST, SIDECAR_LOG, INDEX, DROPPED}
"""Files that change as long as the run lives; `steps` and `host` get their line when the trainer is dead."""


class Index:
    """Keeps the index of one folder."""

    def __init__(self, folder: Path) -> None:
        """Read what is there, and put it right by the folder.

        Raises:
            OSError: if it cannot be read or written.
        """
        self._folder = folder
        self._known: dict[str, tuple[int, int]] = {}
        self._hashing: Hashing | None = None
        kept = []
        for entry in read_index(_bytes_of(folder / INDEX)).values():
            status = _status_of(folder / entry["name"])
            if status is not None and (status.st_size, status.st_mtime_ns) == (entry["bytes"], entry.get("modified_nanoseconds")):
                self._known[entry["name"]] = status.st_size, status.st_mtime_ns
                kept.append(entry)
        write_bytes(folder, INDEX, b"".join(_line_of(entry) for entry in kept))

    def update(self, *, also: tuple[str, ...] = (), most_bytes: int | None = None) -> bool:
        """Add what is new.

        Args:
            also: names of files that change in a run's life, and do not any more.
            most_bytes: of files to hash now; a larger one is gone on with the next time. All by default.

        Returns:
            Whether all that is there is in the index now.

        Raises:
            OSError: if the folder cannot be read, or the index not written.
        """
        for name in sorted(os.listdir(self._folder)):  # noqa: PTH208 - names are what is wanted
            if name.startswith(NEW_PREFIX) or (name in CHANGING and name not in also):
                continue
            status = _status_of(self._folder / name)
            if status is None or self._known.get(name) == (status.st_size, status.st_mtime_ns):
                continue
            if self._hashing is None or not self._hashing.is_of(name, status):
                self._hashing = Hashing(self._folder / name, status)
            hashed = self._hashing.go_on(most_bytes)
            if most_bytes is not None:
                most_bytes -= hashed
            if not self._hashing.is_done:
                return False
            append_line(self._folder, _entry(name, status, self._hashing.digest()))
            self._known[name] = status.st_size, status.st_mtime_ns
            self._hashing = None
        return True


def read_index(data: bytes) -> dict[str, dict[str, Any]]:
    """The newest line of each file; files that were dropped are left out."""
    found: dict[str, dict[str, Any]] = {}
    for line in data.split(b"\n"):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or "/" in entry["name"]:
            continue
        if isinstance(entry.get("bytes"), int):
            found[entry["name"]] = entry
        else:
            found.pop(entry["name"], None)
    return found


def append_line(folder: Path | int, entry: dict[str, Any]) -> None:
    """Add a line to the index of a folder (its path, or a descriptor of it), in one writing.

    Raises:
        OSError: if it cannot be written.
    """
    at, name = (folder, INDEX) if isinstance(folder, int) else (None, str(folder / INDEX))
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=at)
    try:
        size = os.fstat(descriptor).st_size
        begin = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
        os.write(descriptor, begin + _line_of(entry))
    finally:
        os.close(descriptor)


def _entry(name: str, status: os.stat_result, digest: str) -> dict[str, Any]:
    return {
        "name": name,
        "bytes": status.st_size,
        "sha256": digest,
        "seen_wall_nanoseconds": time.time_ns(),
        "modified_nanoseconds": status.st_mtime_ns,
    }


def _line_of(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _status_of(path: Path) -> os.stat_result | None:
    """The status of a regular file; None for what is none, links included."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _bytes_of(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
