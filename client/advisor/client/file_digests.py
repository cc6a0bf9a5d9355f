"""Digests of files that a run depends on: its script, the settings and data named on its command line. For the sidecar."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from advisor.client.git_changes import PRIVATE_NAMES

MOST_WHOLE_BYTES = 256 * 1024 * 1024
"""A quarter of a second at 1.2 GB/s; of a larger file samples are taken."""
SAMPLE_COUNT = 64
SAMPLE_BYTES = 1024 * 1024
PIECE_BYTES = 1024 * 1024
MOST_FILES = 200
MOST_LISTED_FILES = 200_000


def digest_files(paths: Iterable[str], *, deadline: float) -> dict[str, dict[str, Any]]:
    """Size, time of change and digest of each file that is there.

    Args:
        paths: absolute; what is no regular file, or private by its name, is left out.
        deadline: of `time.monotonic()`; what is not done by then has no digest.

    Returns:
        path → `size_bytes`, `modified_seconds` since 1970, and `sha256` of the whole content, or `sampled_sha256` of its size and 64
        samples of 1 MiB where it is larger than MOST_WHOLE_BYTES; both None where it could not be read in time.
    """
    found = {}
    for path in list(dict.fromkeys(paths))[:MOST_FILES]:
        if any(Path(path).match(name) for name in PRIVATE_NAMES):
            continue
        facts = _digest_file(path, deadline)
        if facts is not None:
            found[path] = facts
    return found


def _digest_file(path: str, deadline: float) -> dict[str, Any] | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        facts: dict[str, Any] = {"size_bytes": status.st_size, "modified_seconds": status.st_mtime, "sha256": None, "sampled_sha256": None}
        if status.st_size <= MOST_WHOLE_BYTES:
            facts["sha256"] = _whole(descriptor, deadline)
        else:
            facts["sampled_sha256"] = _sampled(descriptor, status.st_size, deadline)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return facts


def _whole(descriptor: int, deadline: float) -> str | None:
    digest = hashlib.sha256()
    while piece := os.read(descriptor, PIECE_BYTES):
        digest.update(piece)
        if time.monotonic() > deadline:
            return None
    return digest.hexdigest()


def _sampled(descriptor: int, size_bytes: int, deadline: float) -> str | None:
    digest = hashlib.sha256(str(size_bytes).encode())
    for index in range(SAMPLE_COUNT):
        # The first byte and the last are in a sample.
        digest.update(os.pread(descriptor, SAMPLE_BYTES, (size_bytes - SAMPLE_BYTES) * index // (SAMPLE_COUNT - 1)))
        if time.monotonic() > deadline:
            return None
    return digest.hexdigest()


def paths_in(argv: Sequence[str], cwd: str) -> tuple[list[str], list[str]]:
    """Files and folders that a command line names, absolute: words, values of options, and what follows `=` or `@`."""
    files, folders = [], []
    for word in argv:
        for text in {word, word.partition("=")[2], word.removeprefix("@")}:
            if not text or "\0" in text or "://" in text:
                continue
            path = os.path.join(cwd, text)  # noqa: PTH118 - a text
            if os.path.isfile(path):  # noqa: PTH113 - as above
                files.append(os.path.normpath(path))
            elif os.path.isdir(path):  # noqa: PTH112 - as above
                folders.append(os.path.normpath(path))
    return list(dict.fromkeys(files)), list(dict.fromkeys(folders))


def list_folder(folder: str, *, deadline: float) -> dict[str, Any]:
    """What is in a folder, by the names and sizes of its files: other names or sizes are other data, the same may still be other data.

    Returns:
        `file_count`, `size_bytes`, `newest_seconds` since 1970, `listing_sha256`; `is_cut` where it was not seen whole, without a digest.
    """
    lines, size, newest = [], 0, 0.0
    is_cut = False
    for place, inner, names in os.walk(folder):
        inner.sort()
        for name in names:
            try:
                status = os.lstat(os.path.join(place, name))  # noqa: PTH118 - two million of them
            except OSError:
                continue
            lines.append(f"{os.path.relpath(place, folder)}/{name}\0{status.st_size}")
            size += status.st_size
            newest = max(newest, status.st_mtime)
        if len(lines) > MOST_LISTED_FILES or time.monotonic() > deadline:
            is_cut = True
            break
    digest = hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()
    facts = {"file_count": len(lines), "size_bytes": size, "newest_seconds": newest or None}
    return {**facts, "listing_sha256": None if is_cut else digest, "is_cut": is_cut}
