"""What lies in the spool: the folders of ranks, whether their trainers live, and what may be dropped of them.

The root may be a folder that other things lie in as well (somebody sets ADVISOR_SPOOL to their home), and others may write to folders
above it. So nothing is followed that is a link, everything is reached through descriptors of folders already opened, and a folder is
ours only if attach() made it: by its name, its owner, and the ring or record in it.
"""

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from advisor.client.host_record import HOST
from advisor.client.identity import boot_id, start_ticks
from advisor.client.launch import SIDECAR_LOG
from advisor.client.layout import HEADER_BYTES
from advisor.client.ring_reader import NotARing, Trainer, read_ring
from advisor.client.sidecar.index import DROPPED, INDEX
from advisor.client.spool import END, NEW_PREFIX, RECORD, RING, RUN, STEPS

RANK_NAME = re.compile(r"rank-\d{5,}")

RECORDS = {RING, RUN, RECORD, STEPS, END, HOST, INDEX, DROPPED, SIDECAR_LOG}
"""What a run is remembered by; failures with their tracebacks belong to it. All other files are evidence, which may be large."""

FAILURE_NAME = re.compile(r"failure-\d+\.json")

QUIET_SECONDS = 3600.0
"""A trainer that cannot be seen here may live in another container of this host: its folder is left alone so long after its last change.
Its sidecar writes every few seconds."""

ELSEWHERE_SECONDS = 86400.0
"""The same for a trainer of another host (a spool in a shared home), whose clock may differ and whose files may come late."""


class StoredFile(NamedTuple):
    """A file of a rank's folder: its name, the bytes it takes on the disk, and when it was changed (seconds since 1970)."""

    name: str
    size_bytes: int
    changed_seconds: float

    @property
    def is_record(self) -> bool:
        """Whether the run is remembered by it, rather than explained."""
        return self.name in RECORDS or FAILURE_NAME.fullmatch(self.name) is not None


class StoredRank(NamedTuple):
    """The folder of a rank.

    Attributes:
        run / rank: names of the folders.
        files: regular files in it.
        changed_seconds: when something in it changed last.
        is_live: whether its trainer lives, or may.
    """

    run: str
    rank: str
    files: tuple[StoredFile, ...]
    changed_seconds: float
    is_live: bool

    @property
    def size_bytes(self) -> int:
        """Bytes it takes."""
        return sum(file.size_bytes for file in self.files)


@contextmanager
def opened_folder(name: str, parent: int | None = None) -> Iterator[int]:
    """A descriptor of a folder that is no link.

    Raises:
        OSError: if it is none, or cannot be read.
    """
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def survey(root: int) -> tuple[StoredRank, ...]:
    """The folders of ranks below a root, the longest unchanged first; what cannot be read is left out."""
    found: list[StoredRank] = []
    for run in _folders(root):
        with suppress(OSError), opened_folder(run, root) as run_folder:
            for rank in filter(RANK_NAME.fullmatch, _folders(run_folder)):
                with suppress(OSError), opened_folder(rank, run_folder) as folder:
                    found.extend(_stored(run, rank, folder))
    return tuple(sorted(found, key=lambda stored: stored.changed_seconds))


def _folders(parent: int) -> list[str]:
    with os.scandir(parent) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."))


def _stored(run: str, rank: str, folder: int) -> Iterator[StoredRank]:
    own = os.fstat(folder)
    if own.st_uid != os.geteuid():
        return
    files = []
    for name in os.listdir(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            files.append(StoredFile(name, status.st_blocks * 512, status.st_mtime))
    names = {file.name for file in files}
    if RING not in names and RUN not in names:
        return
    # Dropping evidence writes to these two; it must not make an old run a new one.
    changed = max((file.changed_seconds for file in files if file.name not in {INDEX, DROPPED}), default=own.st_mtime)
    trainer = _trainer_of(folder)
    if RING in names and trainer is None and RUN not in names:
        return  # a file of that name which is no ring
    is_live = END not in names and _may_live(trainer, time.time() - changed)
    yield StoredRank(run, rank, tuple(files), changed, is_live)


def _trainer_of(folder: int) -> Trainer | None:
    try:
        ring = os.open(RING, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        return read_ring(os.pread(ring, HEADER_BYTES, 0)).trainer
    except (OSError, NotARing):
        return None
    finally:
        os.close(ring)


def _may_live(trainer: Trainer | None, quiet_seconds: float) -> bool:
    """Whether the trainer lives, or could where it cannot be seen."""
    if trainer is not None and trainer.boot_id == boot_id():
        ticks = start_ticks(trainer.pid)
        if ticks and ticks == trainer.start_ticks:
            return True
        return quiet_seconds < QUIET_SECONDS
    return quiet_seconds < ELSEWHERE_SECONDS


def is_leftover(name: str, age_seconds: float) -> bool:
    """Whether a file in the making was left by a writer that died: its number stands in the name."""
    match = re.match(re.escape(NEW_PREFIX) + r"(\d+)-", name)
    if match is None:
        return False
    return age_seconds > ELSEWHERE_SECONDS or (age_seconds >= 0 and not start_ticks(int(match[1])))
