"""SHA-256 of a file, in pieces: the trainer's death must be seen while a snapshot of gigabytes is being hashed."""

import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

PIECE_BYTES = 256 * 1024

SMALL_BYTES = 4 * 1024 * 1024
"""A hundredth of a second with Python's own SHA-256."""


class Hashing:
    """The hash of one file, as far as it got.

    Attributes:
        is_done: whether the whole file is hashed, or as much of it as can be read.
    """

    def __init__(self, path: Path, status: os.stat_result) -> None:
        self._path, self._identity = path, (path.name, status.st_size, status.st_mtime_ns)
        self._digest = _new_sha256(status.st_size)
        self._offset = 0
        self.is_done = False

    def is_of(self, name: str, status: os.stat_result) -> bool:
        """Whether it is the hash of this file in this state."""
        return self._identity == (name, status.st_size, status.st_mtime_ns)

    def go_on(self, most_bytes: int | None = None) -> int:
        """Hash on, at most so many bytes; how many they were.

        Raises:
            OSError: if the file cannot be read.
        """
        begin = self._offset
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            while not self.is_done and (most_bytes is None or self._offset - begin < most_bytes):
                piece = os.pread(descriptor, PIECE_BYTES, self._offset)
                self._digest.update(piece)
                self._offset += len(piece)
                self.is_done = len(piece) < PIECE_BYTES
        finally:
            os.close(descriptor)
        return self._offset - begin

    def digest(self) -> str:
        """In hexadecimal digits."""
        return str(self._digest.hexdigest())


def _new_sha256(size_bytes: int) -> Any:  # noqa: ANN401 - an object of hashlib, or like it
    """A hash object; of Python's own code where the file is small, since OpenSSL's takes 4 MB of memory for its speed."""
    for name in ("_sha2", "_sha256"):
        with suppress(ImportError, AttributeError):
            if size_bytes <= SMALL_BYTES:
                return importlib.import_module(name).sha256()
    return importlib.import_module("hashlib").sha256()
