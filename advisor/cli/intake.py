"""Open what the user named, find out what each file is, and read it to evidence."""

import collections
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from advisor.cli.limits import address_space_limit
from advisor.cli.run_folder import KNOWN, is_rank_folder, read_rank_folder
from advisor.ingest.formats import HEAD_BYTES, Format, detect
from advisor.model.case import Case, Unreadable
from advisor.model.dataclass import dataclass, replace
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Evidence

LARGEST_LOG_BYTES = 64 * 1024**2
"""Of a longer log the first quarter and the last three of this size are read: settings stand at its start, the failure at its end."""

CHUNK_BYTES = 1024**2

LEFT_OUT = b"\n[...]\n"

LARGEST_DOCUMENT_BYTES = 8 * 1024**3
"""Largest snapshot or table that is loaded whole."""

COMPRESSION_OF_TRACES = 20
"""Bytes that a byte of a compressed trace holds, about: real ones compress 12 to 35 times."""

LARGEST_PIPED_BYTES = 1024**3
"""Largest document that is taken from standard input: it has to be held, where a file is read in place."""

MOST_FILES = 10_000
"""Files taken from one folder."""

RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
"""A rank in a file's name; only used where the content names none."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The case, and a line for each input that was read."""

    case: Case
    read: tuple[str, ...]


def gather(paths: list[str], *, progress: Callable[[str], None] = lambda _: None) -> Gathered:
    """Read files and folders to one case; what cannot be read is named in it, the rest is kept."""
    evidence: list[Evidence] = []
    unreadable: list[Unreadable] = []
    lines: list[str] = []
    for path in _files(paths, unreadable):
        progress(path)
        try:
            found = _read(path)
        except UnreadableInput as error:
            unreadable.append(Unreadable(path=path, because=str(error).removeprefix(path).lstrip(": ")))
            continue
        evidence.extend(found)
        lines.append(_line(path, found))
    return Gathered(case=Case(evidence=tuple(evidence), unreadable=tuple(unreadable)), read=tuple(lines))


def _files(paths: list[str], unreadable: list[Unreadable]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        if path == "-" or not os.path.isdir(path):  # noqa: PTH112 - the user's spelling is kept
            yield path
            continue
        inside = _walk(path)
        if not inside:
            unreadable.append(Unreadable(path=path, because="the folder holds no file; name a file or a folder with files"))
        if len(inside) > MOST_FILES:
            because = f"the folder holds {len(inside)} files, only the first {MOST_FILES} were read; name smaller folders"
            unreadable.append(Unreadable(path=path, because=because))
        yield from inside[:MOST_FILES]


def _walk(folder: str) -> list[str]:
    """Regular files and ranks of runs below a folder, sorted; hidden ones and links are left out, so that nothing outside it is read."""
    found = []
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if is_rank_folder(parent):
            found.append(parent)
            names = [name for name in names if not KNOWN.fullmatch(name)]  # noqa: PLW2901 - what the folder's own reader leaves
        for name in sorted(names):
            path = os.path.join(parent, name)  # noqa: PTH118 - the user's spelling is kept
            if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114 - the same
                found.append(path)
    return found


def _read(path: str) -> tuple[Evidence, ...]:
    try:
        if path != "-" and is_rank_folder(path):
            return read_rank_folder(path)
        with _open(path) as stream:
            found = _parse(stream, path)
    except FileNotFoundError:
        raise UnreadableInput("no such file", "check the path") from None
    except IsADirectoryError:
        raise UnreadableInput("it is a folder that cannot be listed", "check its permissions") from None
    except PermissionError:
        raise UnreadableInput("no permission to read it", "copy it, or run as its owner") from None
    except OSError as error:
        raise UnreadableInput(f"the system cannot read it ({error.strerror})", "check the disk and the path") from None
    except (MemoryError, RecursionError) as error:
        raise UnreadableInput(f"it exhausts the reader ({type(error).__name__})", "it is damaged or hostile; save it again") from None
    match = RANK_IN_NAME.search(os.path.basename(path))  # noqa: PTH119 - pathlib costs start-up time
    if match and len({item.rank for item in found} - {None}) == 0:
        found = tuple(replace(item, rank=int(match.group(1))) for item in found)
    return found


def _open(path: str) -> BinaryIO:
    if path == "-":
        return _piped(sys.stdin.buffer)
    if not os.path.isfile(path) and os.path.exists(path):  # noqa: PTH110, PTH113 - a device or a pipe could block for ever
        raise UnreadableInput("it is not a regular file", "save it to a file, or pipe it in and name -")
    if os.stat(path).st_size == 0:  # noqa: PTH116 - files of /proc say so too, and reading one of them can wait for ever
        raise UnreadableInput("it is empty, or a file of the kernel without a size", "save what it holds to a file: cat it into one")
    return open(path, "rb")  # noqa: PTH123 - closed by the caller's with


def _piped(stream: BinaryIO) -> BinaryIO:
    """Standard input in bounded memory: of a log its start and its end, of a document all up to a limit, of noise its head alone."""
    head = stream.read(HEAD_BYTES)
    format_ = detect(head)
    if format_ in (Format.BINARY, Format.EMPTY, Format.ZIP):
        return io.BytesIO(head)
    if format_ is Format.TEXT:
        return io.BytesIO(head + _inflated(stream, is_log=True))
    document = head + stream.read(LARGEST_PIPED_BYTES)
    if len(document) > LARGEST_PIPED_BYTES:
        raise UnreadableInput("standard input is longer than 1 GiB", "save it to a file and name that")
    return io.BytesIO(document)


def _parse(stream: BinaryIO, path: str) -> tuple[Evidence, ...]:
    head = stream.read(HEAD_BYTES)
    size_bytes = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    format_ = detect(head)
    if format_ in (Format.GZIP, Format.ZSTD):
        from advisor.ingest.decompress import decompressed  # noqa: PLC0415 - only compressed inputs need it

        head = io.BufferedReader(decompressed(stream, path), HEAD_BYTES).read(HEAD_BYTES)
        format_ = detect(head)
        stream.seek(0)
        if format_ in (Format.KINETO, Format.JSON):
            size_bytes *= COMPRESSION_OF_TRACES
        elif format_ in (Format.PICKLE, Format.SNAPSHOT_JSON, Format.MEMORY_STATS_JSON, Format.TEXT, Format.XML):
            stream = io.BytesIO(_inflated(io.BufferedReader(decompressed(stream, path), CHUNK_BYTES), is_log=format_ is Format.TEXT))
            size_bytes = len(stream.getbuffer())
    with address_space_limit(path, size_bytes):
        return _by_format(format_, stream, path, size_bytes)


def _by_format(format_: Format, stream: BinaryIO, path: str, size_bytes: int) -> tuple[Evidence, ...]:
    if format_ is Format.EMPTY:
        raise UnreadableInput("it is empty", "save it again")
    if format_ is Format.ZIP:
        raise UnreadableInput(
            "it is a zip archive, perhaps a checkpoint of torch.save, and holds no record of memory or time",
            "give a log, an allocator snapshot (torch.cuda.memory._dump_snapshot) or a profiler trace",
        )
    if format_ in (Format.BINARY, Format.GZIP, Format.ZSTD):
        raise UnreadableInput(
            "it is binary and of no kind that is known here",
            "give a log, an allocator snapshot, a profiler trace, a profiler table or an nvidia-smi output",
        )
    if format_ in (Format.KINETO, Format.JSON):
        from advisor.ingest.kineto import read_kineto  # noqa: PLC0415 - numpy and msgspec load only for traces

        return (read_kineto(stream, path),)
    if format_ in (Format.PICKLE, Format.SNAPSHOT_JSON):
        if size_bytes > LARGEST_DOCUMENT_BYTES:
            raise UnreadableInput("it is larger than 8 GiB", "record fewer events (max_entries=100_000)")
        from advisor.ingest.snapshot import read_snapshot  # noqa: PLC0415 - numpy loads only for snapshots

        return (read_snapshot(stream, path),)
    from advisor.ingest.text_inputs import read_text  # noqa: PLC0415 - text readers load only for texts

    return read_text(_bounded(stream, size_bytes), path)


def _inflated(stream: BinaryIO, *, is_log: bool) -> bytes:
    """All of a decompressed stream; of a log its start and its end, so that its length costs no memory."""
    if not is_log:
        return stream.read()
    start = stream.read(LARGEST_LOG_BYTES // 4)
    tail: collections.deque[bytes] = collections.deque(maxlen=3 * (LARGEST_LOG_BYTES // 4) // CHUNK_BYTES)
    dropped = False
    while chunk := stream.read(CHUNK_BYTES):
        dropped = dropped or len(tail) == tail.maxlen
        tail.append(chunk)
    return start + (LEFT_OUT if dropped else b"") + b"".join(tail)


def _bounded(stream: BinaryIO, size_bytes: int) -> bytes:
    if size_bytes <= LARGEST_LOG_BYTES:
        return stream.read()
    start = stream.read(LARGEST_LOG_BYTES // 4)
    stream.seek(-3 * (LARGEST_LOG_BYTES // 4), os.SEEK_END)
    return start + LEFT_OUT + stream.read()


def _line(path: str, found: tuple[Evidence, ...]) -> str:
    from advisor.engine.collecting import what_it_is  # noqa: PLC0415 - words, needed last

    kinds: dict[str, int] = {}
    for item in found:
        name = what_it_is(item)
        kinds[name] = kinds.get(name, 0) + 1
    described = ", ".join(name if number == 1 else f"{number} × {name}" for name, number in kinds.items())
    return f"{path}: {described}"
