"""What a log tells of data-loading workers and of what they read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.rules.clues import Clue, in_words

if TYPE_CHECKING:
    from advisor.model.failure import Failure, LogText, Mention

WORKER_SETTINGS = ("num_workers", "dataloader_num_workers", "num-workers", "workers")
"""Names under which programs print the number of workers."""

NO_WORKERS = re.compile(r"\b(?:num|dataloader_num)[_-]?workers\s{0,2}[=:]\s{0,2}0\b|\bnum-workers[ =]0\b", re.IGNORECASE)


_WORKER = re.compile(r"\bworkers?\b", re.IGNORECASE).search


def names_worker(failure: Failure) -> bool:
    """Whether the message itself says that it was a worker."""
    return _WORKER(failure.message) is not None


def mapped_file(log: LogText | None) -> Mention | None:
    """The line that speaks of files mapped into memory (lmdb, memmap)."""
    return log.mentioned("memory-mapped-file") if log is not None else None


def worker_count(log: LogText | None) -> int | None:
    """The number of workers that the log prints; None where it does not."""
    for name in WORKER_SETTINGS:
        value = (log.setting(name) or "").strip() if log is not None else ""
        if value.isdigit():
            return int(value)
    return None


def has_no_workers(failure: Failure | None, log: LogText | None) -> Clue | None:
    """The line that says that data is loaded without worker processes."""
    if log is not None and worker_count(log) == 0:
        return Clue(text="num_workers=0", found="num_workers=0", source=log.source, in_code=False)
    return in_words(NO_WORKERS, failure, log)
