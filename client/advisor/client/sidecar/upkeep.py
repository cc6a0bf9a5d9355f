"""Keep the spool within its limits: the oldest evidence is dropped first, and counted.

Each rank has a sidecar, so several may want to do this at once: whoever gets the lock does it, the others go on. Runs are taken from the
one that was longest unchanged; of each first its evidence (profiles, snapshots), then, if that is not enough, its records. Of a run whose
trainer lives only the evidence may go, and last of all.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from advisor.client.sidecar.index import DROPPED, INDEX, append_line
from advisor.client.sidecar.spool_survey import StoredFile, StoredRank, is_leftover, opened_folder, survey
from advisor.client.spool import NEW_PREFIX, RING

LOCK = ".advisor-lock"

MOST_BYTES = 2 * 1024**3
MOST_DAYS = 14.0

MOST_OF_ONE_RATIO = 0.5
"""Share of the spool that the evidence of one rank may take: a run that writes profiles for days must not push out all the others."""

DAY_SECONDS = 86400.0


class Limits(NamedTuple):
    """Of the whole spool: bytes on the disk, and the age of its runs."""

    most_bytes: int = MOST_BYTES
    most_days: float = MOST_DAYS


class Kept(NamedTuple):
    """What upkeep did.

    Attributes:
        size_bytes: of the spool now.
        dropped_count / dropped_bytes: files dropped.
        dropped_run_count: folders of ranks that went as a whole.
    """

    size_bytes: int
    dropped_count: int = 0
    dropped_bytes: int = 0
    dropped_run_count: int = 0


def limits_of(environment: Mapping[str, str]) -> Limits:
    """The limits set by ADVISOR_SPOOL_MAX_BYTES and ADVISOR_SPOOL_MAX_DAYS; what is no positive number counts as not set."""
    chosen = []
    for name, default in (("ADVISOR_SPOOL_MAX_BYTES", float(MOST_BYTES)), ("ADVISOR_SPOOL_MAX_DAYS", MOST_DAYS)):
        try:
            value = float(environment.get(name, ""))
        except ValueError:
            value = default
        chosen.append(value if 0 < value < float("inf") else default)
    return Limits(int(chosen[0]), chosen[1])


def keep(root: Path, limits: Limits, *, by_age: bool = True) -> Kept | None:
    """Bring a spool within its limits.

    Args:
        root: of the spool.
        limits: what it may take.
        by_age: drop what is too old; not to be trusted after a jump of the clock.

    Returns:
        What was done; None if another process is at it.

    Raises:
        OSError: if the root cannot be opened.
    """
    with opened_folder(str(root)) as folder, _lock(folder) as is_ours:
        if not is_ours:
            return None
        return _Upkeep(folder).run(limits, by_age=by_age)


@contextmanager
def _lock(root: int) -> Iterator[bool]:
    descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=root)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # taken; or a file system without locks, on which nothing is dropped rather than by two at once
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


class _Upkeep:
    def __init__(self, root: int) -> None:
        self._root = root
        self._count = self._bytes = self._run_count = 0

    def run(self, limits: Limits, *, by_age: bool) -> Kept:
        ranks = survey(self._root)
        now = time.time()
        for rank in ranks:
            self._remove_leftovers(rank, now)
        gone = set()
        if by_age:
            for rank in ranks:
                if not rank.is_live and now - rank.changed_seconds > limits.most_days * DAY_SECONDS:
                    self._drop(rank, rank.files)
                    gone.add((rank.run, rank.rank))
        left = [rank for rank in ranks if (rank.run, rank.rank) not in gone]
        size = sum(rank.size_bytes for rank in left)
        for rank in left:
            evidence = tuple(file for file in rank.files if not file.is_record and not file.name.startswith(NEW_PREFIX))
            excess = sum(file.size_bytes for file in evidence) - int(limits.most_bytes * MOST_OF_ONE_RATIO)
            if excess > 0:
                size -= self._drop_until(rank, evidence, excess)
        left = [rank for rank in survey(self._root) if (rank.run, rank.rank) not in gone] if self._count else left
        for rank, files in _in_order(left):
            if size <= limits.most_bytes:
                break
            size -= self._drop_until(rank, files, size - limits.most_bytes)
        if self._count:
            _count_dropped(self._root, self._count, self._bytes, self._run_count)
        return Kept(size, self._count, self._bytes, self._run_count)

    def _drop_until(self, rank: StoredRank, files: tuple[StoredFile, ...], excess_bytes: int) -> int:
        """Drop evidence file by file until it is enough, or records all together; the bytes won."""
        if any(file.is_record for file in files):
            return self._drop(rank, files)
        won = 0
        for file in sorted(files, key=lambda file: file.changed_seconds):
            if won >= excess_bytes:
                break
            won += self._drop(rank, (file,))
        return won

    def _drop(self, rank: StoredRank, files: Iterable[StoredFile]) -> int:
        won = 0
        try:
            with opened_folder(rank.run, self._root) as run, opened_folder(rank.rank, run) as folder:
                dropped = []
                # The ring is what a folder is known by: it goes last, so that a kill in between leaves a folder that can still be cleaned.
                for file in sorted(files, key=lambda file: file.name == RING):
                    os.unlink(file.name, dir_fd=folder)
                    dropped.append(file)
                    won += file.size_bytes
                self._note(rank, run, folder, dropped)
        except OSError:
            pass  # what could not be removed, or is no file of ours in its way, stays
        self._bytes += won
        return won

    def _note(self, rank: StoredRank, run: int, folder: int, dropped: list[StoredFile]) -> None:
        self._count += len(dropped)
        if any(file.is_record for file in dropped):
            self._run_count += 1
            for name in (INDEX, DROPPED):  # perhaps made when the evidence went, a moment ago
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            os.rmdir(rank.rank, dir_fd=run)  # fails where something is left that is not ours
            if not os.listdir(run):
                os.rmdir(rank.run, dir_fd=self._root)
            return
        for file in dropped:
            append_line(folder, {"name": file.name, "bytes": None, "dropped_wall_nanoseconds": time.time_ns()})
        _count_dropped(folder, len(dropped), sum(file.size_bytes for file in dropped), 0)

    def _remove_leftovers(self, rank: StoredRank, now: float) -> None:
        leftovers = [file.name for file in rank.files if is_leftover(file.name, now - file.changed_seconds)]
        if leftovers and not rank.is_live:
            try:
                with opened_folder(rank.run, self._root) as run, opened_folder(rank.rank, run) as folder:
                    for name in leftovers:
                        os.unlink(name, dir_fd=folder)
            except OSError:
                pass


def _in_order(ranks: list[StoredRank]) -> Iterator[tuple[StoredRank, tuple[StoredFile, ...]]]:
    """What may be dropped, in this order."""
    for rank in ranks:
        if not rank.is_live:
            yield rank, tuple(file for file in rank.files if not file.is_record)
            yield rank, tuple(file for file in rank.files if file.is_record)
    for rank in ranks:
        if rank.is_live:
            yield rank, tuple(file for file in rank.files if not file.is_record and not file.name.startswith(NEW_PREFIX))


def _count_dropped(folder: int, file_count: int, size_bytes: int, run_count: int) -> None:
    """Add to the counts in a folder's `dropped.json`; the caller holds the lock.

    Raises:
        OSError: if it cannot be written.
    """
    before: dict[str, int] = {}
    try:
        descriptor = os.open(DROPPED, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            before = json.loads(file.read(4096))
    except (OSError, ValueError):
        pass
    known = before if isinstance(before, dict) else {}
    added = {"file_count": file_count, "bytes": size_bytes, "run_count": run_count}
    counts = {name: value + (known[name] if isinstance(known.get(name), int) else 0) for name, value in added.items()}
    new = f"{NEW_PREFIX}{os.getpid()}-{DROPPED}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps({**counts, "last_wall_nanoseconds": time.time_ns()}).encode())
    os.replace(new, DROPPED, src_dir_fd=folder, dst_dir_fd=folder)
