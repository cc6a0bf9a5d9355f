"""Read an allocator snapshot of torch 2.0 to 2.15, a pickle or JSON, to columns.

Every key but an event's `action` and `size` and a segment's `address`, `total_size` and `blocks` is optional: each came with some
version and is missing from others. What is of a wrong type is left out and counted in the snapshot's gaps.
"""

import io
from collections import Counter
from typing import BinaryIO

import msgspec
import numpy as np

from advisor.ingest.snapshot_budget import Budget
from advisor.ingest.snapshot_columns import (
    LARGEST_ADDRESS,
    MOST_CATEGORIES,
    MOST_TEXTS,
    Names,
    entries_of,
    event_table,
    whole,
)
from advisor.ingest.snapshot_pickle import READ_AHEAD_BYTES, garbage_collector_off, load_plain_pickle
from advisor.ingest.snapshot_segments import LARGEST_DEVICE_INDEX, DeviceRows, device_rows
from advisor.ingest.snapshot_stacks import StackTable
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Source
from advisor.model.snapshot import (
    NOT_RECORDED,
    AllocatorSnapshot,
    Annotation,
    DeviceSnapshot,
    EventTable,
)

KEYS = ("segments", "device_traces")
"""A snapshot has at least one of these; `torch.cuda.memory_snapshot()` is the bare list under the first."""

MOST_BYTES = 1 << 60
"""Sizes that add up to more than this (1 EiB over a whole history) are damage, and would overflow 64-bit sums."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

BETWEEN_VALUES = (b",", b":", b"[", b"]", b"{", b"}", b" ", b"\n")
"""Characters of JSON that stand outside of numbers and words (or within texts)."""

HEAD_BYTES = 64 * 1024
"""How much of JSON must be sound before the rest is read."""

MOST_ANNOTATIONS = 1_000_000

MOST_SETTINGS = 200

REMEDY = "give what torch.cuda.memory._dump_snapshot('snapshot.pickle') writes"


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
            stream = io.BytesIO(data) if isinstance(data, bytes) else data
            begin = stream.tell()
            input_bytes = stream.seek(0, io.SEEK_END) - begin
            stream.seek(begin)
            return _snapshot(_loaded(stream, path), path, Budget(input_bytes, path))
    except (MemoryError, RecursionError, OverflowError) as error:
        raise UnreadableInput(
            f"{path} cannot be read as an allocator snapshot ({type(error).__name__})",
            "it is damaged or hostile; " + REMEDY,
        ) from None


def _loaded(stream: BinaryIO, path: str) -> object:
    begin = stream.tell()
    first = stream.read(1)
    stream.seek(begin)
    if not first:
        raise UnreadableInput(f"{path} is empty", REMEDY)
    if first in b"\x80(]}":
        return load_plain_pickle(stream, path)
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


def _count(values: object) -> int:
    """Elements that a list claims to have; what should be a list and is none counts as one."""
    return len(values) if type(values) is list else int(values is not None)


def _snapshot(loaded: object, path: str, budget: Budget) -> AllocatorSnapshot:
    if type(loaded) is list:
        loaded = {"segments": loaded}
    if type(loaded) is not dict or not any(type(loaded.get(key)) is list for key in KEYS):
        raise UnreadableInput(
            f"{path} holds no allocator snapshot: it has neither `segments` nor `device_traces`",
            REMEDY,
        )
    problems: Counter[str] = Counter()
    segment_count = _count(loaded.get("segments"))
    histories = loaded.get("device_traces")
    histories = histories[: LARGEST_DEVICE_INDEX + 1] if type(histories) is list else []
    event_count = sum(map(_count, histories))
    budget.spend_entries(segment_count + event_count)
    stacks, categories, texts = StackTable(budget), Names(MOST_CATEGORIES), Names(MOST_TEXTS)
    rows = device_rows(loaded.get("segments"), stacks, problems)
    tables = {index: event_table(history, stacks, categories, texts, problems) for index, history in enumerate(histories) if history}
    devices = [_device(index, rows.get(index), tables.get(index)) for index in sorted({*rows, *tables})]
    if segment_count + event_count and not any(len(device.segments.address) or len(device.events.action) for device in devices):
        raise UnreadableInput(f"{path} holds {segment_count} segments and {event_count} events, and none can be read", REMEDY)
    _check_sums(devices, path)
    is_from_profiler = bool(categories.names)
    gaps = [f"{count} {problem}, left out" for problem, count in (problems + stacks.problems).items()]
    if is_from_profiler and histories:
        # The profiler appends the host behind the devices.
        devices = [device for device in devices if device.index < len(histories) - 1]
        gaps.append("made by the profiler: it knows tensors, not segments, so reserved and cached memory are unknown")
    if loaded.get("host_segments") or loaded.get("host_traces"):
        gaps.append("the history of pinned host memory is not read")
    return AllocatorSnapshot(
        source=Source(path=path),
        gaps=tuple(gaps),
        devices=tuple(devices),
        frames=tuple(stacks.frames),
        stacks=tuple(stacks.stacks),
        categories=tuple(categories.names),
        texts=tuple(texts.names),
        settings=_settings(loaded.get("allocator_settings")),
        annotations=_annotations(loaded.get("external_annotations"), problems),
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
