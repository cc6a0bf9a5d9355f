"""Read an allocator snapshot of torch 2.0 to 2.15, a pickle or JSON, to columns.

Every key but an event's `action` and `size` and a segment's `address`, `total_size` and `blocks` is optional: each came with some
version and is missing from others. What is of a wrong type is left out and counted in the snapshot's gaps.
"""

import io
from collections import Counter
from typing import BinaryIO

import msgspec
import numpy as np

from advisor.ingest.pickle_source import READ_AHEAD_BYTES
from advisor.ingest.pickle_values import NotStreamableError
from advisor.ingest.snapshot_budget import Budget
from advisor.ingest.snapshot_columns import (
    LARGEST_ADDRESS,
    Names,
    entries_of,
    event_table,
    whole,
)
from advisor.ingest.snapshot_contents import REMEDY, SnapshotContents, loaded_contents
from advisor.ingest.snapshot_pickle import garbage_collector_off, load_plain_pickle
from advisor.ingest.snapshot_segments import LARGEST_DEVICE_INDEX, DeviceRows
from advisor.ingest.snapshot_stacks import StackTable
from advisor.ingest.snapshot_stream import streamed_contents
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Source
from advisor.model.snapshot import (
    NOT_RECORDED,
    AllocatorSnapshot,
    Annotation,
    DeviceSnapshot,
    EventTable,
)

STREAMED_FROM_BYTES = 16 * 1024 * 1024
"""Smaller pickles are loaded whole: that takes less than 100 MB, and everybody's unpickler has done it before."""

MOST_BYTES = 1 << 60
"""Sizes that add up to more than this (1 EiB over a whole history) are damage, and would overflow 64-bit sums."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

BETWEEN_VALUES = (b",", b":", b"[", b"]", b"{", b"}", b" ", b"\n")
"""Characters of JSON that stand outside of numbers and words (or within texts)."""

HEAD_BYTES = 64 * 1024
"""How much of JSON must be sound before the rest is read."""

MOST_ANNOTATIONS = 1_000_000

MOST_SETTINGS = 200


def read_snapshot(data: bytes | BinaryIO, path: str) -> AllocatorSnapshot:
    """Read a snapshot.

    Args:
        data: the whole file, decompressed: a seekable stream, which saves holding a pickle's bytes beside what they become, or the
            bytes. The caller limits the address space of the process while this runs.
        path: how to call it in messages.

    Returns:
        The snapshot; its gaps say what was left out.

    Raises:
        UnreadableInput: it is damaged, is something else, or holds more than plain data.
    """
    try:
        with garbage_collector_off():
            return _snapshot(_contents(io.BytesIO(data) if isinstance(data, bytes) else data, path), path)
    except (MemoryError, RecursionError, OverflowError) as error:
        raise UnreadableInput(
            f"{path} cannot be read as an allocator snapshot ({type(error).__name__})",
            "it is damaged or hostile; " + REMEDY,
        ) from None


def _contents(stream: BinaryIO, path: str) -> SnapshotContents:
    begin = stream.tell()
    input_bytes = stream.seek(0, io.SEEK_END) - begin
    stream.seek(begin)
    first = stream.read(1)
    stream.seek(begin)
    if not first:
        raise UnreadableInput(f"{path} is empty", REMEDY)
    if first not in b"\x80(]}":
        return loaded_contents(_loaded_json(stream, path), path, Budget(input_bytes, path))
    if input_bytes >= STREAMED_FROM_BYTES:
        try:
            return streamed_contents(stream, input_bytes, Budget(input_bytes, path))
        except NotStreamableError:
            stream.seek(begin)
    return loaded_contents(load_plain_pickle(stream, path), path, Budget(input_bytes, path))


def _loaded_json(stream: BinaryIO, path: str) -> object:
    _check_json(stream, path)
    body = stream.read()
    try:
        return msgspec.json.decode(memoryview(body)[len(BYTE_ORDER_MARK) :] if body.startswith(BYTE_ORDER_MARK) else body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UnreadableInput(f"{path} is damaged JSON ({str(error)[:80]})", "copy it again, or save it again") from None


def _check_json(stream: BinaryIO, path: str) -> None:
    """Refuse what cannot be JSON before gigabytes of it are held in memory; the stream is left where it was."""
    begin = stream.tell()
    piece = head = stream.read(HEAD_BYTES)
    start = head.removeprefix(BYTE_ORDER_MARK)
    if start.lstrip()[:1] not in (b"{", b"["):
        raise UnreadableInput(f"{path} is no allocator snapshot: neither a pickle nor JSON", REMEDY)
    try:
        # Up to what no number goes across, lest half of one be taken for a wrong one.
        msgspec.json.decode(start[: max(start.rfind(mark) for mark in BETWEEN_VALUES) + 1])
    except (msgspec.DecodeError, UnicodeError) as error:
        if "truncated" not in str(error):  # msgspec's word for what only ends too early
            raise UnreadableInput(f"{path} is damaged JSON ({str(error)[:80]})", "copy it again, or save it again") from None
    while piece:
        if b"\0" in piece:
            raise UnreadableInput(f"{path} is damaged JSON (it holds NUL bytes)", "copy it again, or save it again")
        piece = stream.read(READ_AHEAD_BYTES)
    stream.seek(begin)


def _snapshot(contents: SnapshotContents, path: str) -> AllocatorSnapshot:
    rows, tables, loaded = contents.segment_rows, contents.event_tables, contents.rest
    devices = [_device(index, rows.get(index), tables.get(index)) for index in sorted({*rows, *tables})]
    entry_count = contents.segment_count + contents.event_count
    if entry_count and not any(len(device.segments.address) or len(device.events.action) for device in devices):
        raise UnreadableInput(
            f"{path} holds {contents.segment_count} segments and {contents.event_count} events, and none can be read", REMEDY
        )
    _check_sums(devices, path)
    is_from_profiler = bool(contents.categories.names)
    gaps = [f"{count} {problem}, left out" for problem, count in (contents.problems + contents.stacks.problems).items()]
    if is_from_profiler and contents.history_count:
        # The profiler appends the host behind the devices.
        devices = [device for device in devices if device.index < contents.history_count - 1]
        gaps.append("made by the profiler: it knows tensors, not segments, so reserved and cached memory are unknown")
    if loaded.get("host_segments") or loaded.get("host_traces"):
        gaps.append("the history of pinned host memory is not read")
    return AllocatorSnapshot(
        source=Source(path=path),
        gaps=tuple(gaps),
        devices=tuple(devices),
        frames=tuple(contents.stacks.frames),
        stacks=tuple(contents.stacks.stacks),
        categories=tuple(contents.categories.names),
        texts=tuple(contents.texts.names),
        settings=_settings(loaded.get("allocator_settings")),
        annotations=_annotations(loaded.get("external_annotations"), contents.problems),
        is_from_profiler=is_from_profiler,
    )


def _device(index: int, rows: DeviceRows | None, events: EventTable | None) -> DeviceSnapshot:
    rows = rows or DeviceRows()
    return DeviceSnapshot(
        index=index,
        events=events or event_table([], StackTable(Budget(0, "")), Names(0), Names(0), Counter()),
        segments=rows.segment_table(),
        blocks=rows.block_table(),
        pools=tuple(rows.pools),
    )


def _check_sums(devices: list[DeviceSnapshot], path: str) -> None:
    for device in devices:
        for table in (device.segments, device.blocks, device.events):
            if float(np.sum(table.size_bytes, dtype=np.float64)) > MOST_BYTES:
                raise UnreadableInput(f"{path} is damaged: its sizes add up to more than any machine has", REMEDY)


def _settings(value: object) -> tuple[tuple[str, str], ...]:
    """The allocator's settings as text; `roundup_power2_divisions` becomes one setting a size ("roundup_power2_divisions.16")."""
    if type(value) is not dict:
        return ()
    flat: dict[str, str] = {}
    for name, setting in list(value.items())[:MOST_SETTINGS]:
        if type(name) is not str:
            continue
        parts = setting.items() if type(setting) is dict else [(None, setting)]
        for part, scalar in list(parts)[:MOST_SETTINGS]:
            if type(scalar) in (str, int, float, bool) and (part is None or type(part) is str):
                flat[_clean(name if part is None else f"{name}.{part}")] = _clean(str(scalar) if _is_short(scalar) else "")
    return tuple(flat.items())


def _is_short(scalar: object) -> bool:
    # str() of an integer of more than 4,300 digits raises ValueError.
    return type(scalar) is not int or scalar.bit_length() <= 64  # noqa: PLR2004 - no setting is wider


def _clean(text: str) -> str:
    return text[:1_000].encode("utf-8", "replace").decode()


def _annotations(values: object, problems: Counter[str]) -> tuple[Annotation, ...]:
    marks = []
    for entry in entries_of(values, "annotations", problems)[:MOST_ANNOTATIONS]:
        name, stage = entry.get("name"), entry.get("stage")
        time_us = whole(entry.get("time_us"), LARGEST_ADDRESS)
        if type(name) is str and stage in ("START", "END") and time_us != NOT_RECORDED:
            device = max(0, whole(entry.get("device"), LARGEST_DEVICE_INDEX))
            marks.append(
                Annotation(
                    name=_clean(name),
                    is_start=stage == "START",
                    device_index=device,
                    time_us=time_us,
                )
            )
    return tuple(marks)
