"""Shared memory: bus errors of data-loading workers, /dev/shm that is full, and NCCL's segments in it.

Several of these messages look alike and are no lack of memory: too many open files (24), "received 0 items of ancdata" (descriptors
sent between processes), and a full disk, whose "No space left on device (28)" is the same error as that of a full /dev/shm.
"""

import re

from advisor.ingest.failure_message import FailureText, Recognizer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

_BUS = LazyPattern(
    r"killed by signal: Bus error|^\s{0,8}Bus error(?: \(core dumped\))?|[Uu]nexpected bus error encountered in worker|"
    r"insufficient shared memory \(shm\)|workers are out of shared memory|: line \d{1,7}:\s{1,4}\d{1,9} Bus error|\bSIGBUS\b",
    re.MULTILINE,
)
_SEGMENT = LazyPattern(
    r"unable to (?:open|mmap|write to|resize|allocate|truncate)[^\n]{0,40}(?:shared memory|file)[^\n]{0,8}(?: object|"
    r" for file)? ?<[^>\n]{1,80}>[^\n]{0,160}"
)
_NCCL_SEGMENT = LazyPattern(r"Error while creating shared memory segment[^\n]{0,160}")
_SEGMENT_SIZE = LazyPattern(r"\(size (\d{1,20})\)")
_NO_SPACE = LazyPattern(r"\[Errno 28\] No space left on device|No space left on device(?: \(28\))?")
_TOO_MANY_FILES = LazyPattern(r"Too many open files|\(24\)")
_ANCDATA = LazyPattern(r"received \d{1,6} items of ancdata")
_SHM_WORDS = LazyPattern(r"/dev/shm|\bshm\b|shared memory|torch_\d|psm_|multiprocessing|nccl-")  # noqa: S108 - a word in messages, not a path that is used


def recognize(text: str) -> FailureText | None:
    """A message about shared memory, or one that is mistaken for it."""
    first_line = text.split("\n", 1)[0]
    ancdata = _ANCDATA.search(first_line)
    if ancdata is not None:
        return _other("file descriptors", "the limit of open files, not memory", ancdata.end())
    segment = _SEGMENT.search(first_line)
    if segment is not None:
        return _segment(segment)
    nccl = _NCCL_SEGMENT.search(first_line)
    if nccl is not None:
        size = _SEGMENT_SIZE.search(nccl[0])
        figures = {"requested_bytes": int(size[1])} if size else {}
        return _exhausted("NCCL segment", nccl[0], nccl.end(), figures)
    bus = _BUS.search(first_line)
    if bus is not None:
        return _exhausted("bus error", bus[0].strip(), bus.end())
    return _no_space(text, first_line)


def _no_space(text: str, first_line: str) -> FailureText | None:
    """No space on a device: /dev/shm where it is named nearby, else a disk."""
    space = _NO_SPACE.search(first_line)
    if space is None:
        return None
    if _SHM_WORDS.search(text[: space.end() + 200]):
        return _exhausted("no space left", space[0], space.end())
    return _other("disk full", "no space on a disk; /dev/shm is not named", space.end())


def _segment(match: re.Match[str]) -> FailureText:
    """PyTorch's own message; the errno at its end tells what was missing."""
    said = match[0]
    if _TOO_MANY_FILES.search(said):
        return _other("file descriptors", "the limit of open files, not memory", match.end())
    if "Cannot allocate memory" in said or "(12)" in said:
        return FailureText(
            kind=FailureKind.HOST_OUT_OF_MEMORY,
            backend="host",
            generation="shared mapping",
            detail=said[:240],
            end=match.end(),
        )
    return _exhausted("torch segment", said, match.end())


def _exhausted(generation: str, detail: str, end: int, figures: dict[str, int] | None = None) -> FailureText:
    return FailureText(
        kind=FailureKind.SHARED_MEMORY_EXHAUSTED,
        backend="host",
        generation=generation,
        figures=figures or {},
        resolution_bytes=0 if figures else None,
        detail=detail[:240],
        end=end,
    )


def _other(generation: str, detail: str, end: int) -> FailureText:
    return FailureText(
        kind=FailureKind.NOT_OUT_OF_MEMORY,
        backend="host",
        generation=generation,
        detail=detail,
        end=end,
    )


SHARED_MEMORY = Recognizer(
    (
        b"bus error",
        b"shared memory",
        b"unable to mmap",
        b"unable to write to file",
        b"unable to resize",
        b"no space left",
        b"ancdata",
        b"sigbus",
    ),
    recognize,
)
