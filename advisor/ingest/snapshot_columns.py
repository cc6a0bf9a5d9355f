"""Turn lists of dictionaries from an untrusted snapshot into numpy columns."""

from collections import Counter
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.ingest.snapshot_stacks import StackTable
from advisor.model.snapshot import NOT_RECORDED, Action, EventTable

N = TypeVar("N", bound=np.generic)

Entries: TypeAlias = list[dict[str, object]]

LARGEST_BYTES = 1 << 44
"""16 TiB: no allocation, segment or device is as large; a larger number is damage."""

LARGEST_ADDRESS = (1 << 63) - 1

ACTIONS = {
    "alloc": Action.ALLOC,
    "free_requested": Action.FREE_REQUESTED,
    "free_completed": Action.FREE_COMPLETED,
    "segment_alloc": Action.SEGMENT_ALLOC,
    "segment_free": Action.SEGMENT_FREE,
    "segment_map": Action.SEGMENT_MAP,
    "segment_unmap": Action.SEGMENT_UNMAP,
    "snapshot": Action.SNAPSHOT,
    "oom": Action.OOM,
    "annotate": Action.ANNOTATE,
}

INTERNAL = "internal_metadata"
"""Key of what the allocator tags as its own (torch 2.15: blocks that it makes and frees for itself): no memory that the program asked
for, so that the pair counts neither as an allocation nor as a free."""

MOST_CATEGORIES = 100
"""Distinct categories that are kept; the profiler has eight."""

CHUNK = 50_000
"""Events that are turned into columns, and let go, at a time: 30 MB of dictionaries."""

MOST_TEXTS = 1_000_000
"""Distinct `user_metadata` that are kept; at most one an event."""


def whole(value: object, most: int) -> int:
    """A number of 0 to `most`, or NOT_RECORDED for anything else."""
    return value if type(value) is int and 0 <= value <= most else NOT_RECORDED


def entries_of(values: object, what: str, problems: Counter[str]) -> Entries:
    """The dictionaries of a list; anything else is counted as a problem and left out."""
    if type(values) is not list:
        if values is not None:
            problems[f"{what} that are no lists"] += 1
        return []
    if set(map(type, values)) <= {dict}:
        return values
    kept = [value for value in values if type(value) is dict]
    problems[f"{what} that are no dictionaries"] += len(values) - len(kept)
    return kept


def numbers(entries: Entries, key: str, most: int, problems: Counter[str]) -> NDArray[np.int64]:
    """One column of whole numbers from 0 to `most`; NOT_RECORDED where missing or wrong, and the wrong ones counted."""
    values = _values(entries, key)
    if set(map(type, values)) <= {int}:
        try:
            column = np.fromiter(values, np.int64, len(values))
        except OverflowError:
            pass
        else:
            wrong = (column < 0) | (column > most)
            if wrong.any():
                problems[f"values of `{key}` that cannot be"] += int(wrong.sum())
                column[wrong] = NOT_RECORDED
            return column
    checked = [whole(value, most) for value in values]
    bad = sum(1 for value, number in zip(values, checked, strict=True) if number == NOT_RECORDED and value is not None)
    if bad:
        problems[f"values of `{key}` that cannot be"] += bad
    return np.fromiter(checked, np.int64, len(checked))


def _values(entries: Entries, key: str) -> list[object]:
    """What every entry has under a key; None where it lacks it."""
    try:
        return list(map(itemgetter(key), entries))
    except KeyError:
        return [entry.get(key) for entry in entries]


class Names:
    """Distinct short texts, numbered in the order in which they were first seen."""

    def __init__(self, most: int) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}
        self._most = most

    def index(self, value: object) -> int:
        """The number of a text; NOT_RECORDED for anything else, for an empty one, and beyond the most that is kept."""
        if type(value) is not str or not value:
            return NOT_RECORDED
        found = self._index.get(value)
        if found is None:
            if len(self.names) >= self._most:
                return NOT_RECORDED
            found = self._index[value] = len(self.names)
            self.names.append(value[:1_000].encode("utf-8", "replace").decode())
        return found


def event_table(values: object, stacks: StackTable, categories: Names, texts: Names, problems: Counter[str]) -> EventTable:
    """The events of one device as columns; entries without an action or a size are left out and counted.

    The list is emptied on the way, so that columns and dictionaries are never in memory together.
    """
    if type(values) is not list:
        values = entries_of(values, "events", problems)
    pieces: list[tuple[dict[str, NDArray[Any]], dict[int, int]]] = []
    while values or not pieces:
        chunk, values[:CHUNK] = values[:CHUNK], []
        pieces.append(_piece(entries_of(chunk, "events", problems), stacks, categories, texts, problems))
    columns = {name: frozen(np.concatenate([piece[name] for piece, _ in pieces])) for name in pieces[0][0]}
    free: dict[int, int] = {}
    row = 0
    for piece, found in pieces:
        free |= {row + at: size for at, size in found.items()}
        row += len(piece["action"])
    return EventTable(**columns, device_free_bytes=free)


def _piece(
    entries: Entries, stacks: StackTable, categories: Names, texts: Names, problems: Counter[str]
) -> tuple[dict[str, NDArray[Any]], dict[int, int]]:
    action = _actions(entries)
    action[[row for row, entry in enumerate(entries) if entry.get(INTERNAL)]] = Action.OTHER
    size_bytes = numbers(entries, "size", LARGEST_BYTES, problems)
    size_bytes[(size_bytes == NOT_RECORDED) & (action == Action.ANNOTATE)] = 0  # a tag has no size of its own
    sound = (action != NOT_RECORDED) & (size_bytes != NOT_RECORDED)
    if not sound.all():
        problems["events without an action or a size"] += int((~sound).sum())
        entries = [entry for entry, good in zip(entries, sound.tolist(), strict=True) if good]
        action, size_bytes = action[sound], size_bytes[sound]
    stream = numbers(entries, "stream", LARGEST_ADDRESS, problems)
    columns: dict[str, NDArray[Any]] = {
        "action": action,
        "address": numbers(entries, "addr", LARGEST_ADDRESS, problems),
        "size_bytes": size_bytes,
        "stream": np.maximum(stream, 0),
        "stack": np.array(stacks.column(entries), np.int32),
        "time_us": numbers(entries, "time_us", LARGEST_ADDRESS, problems),
        "category": _named(entries, "category", categories).astype(np.int8),
        "text": _named(entries, "user_metadata", texts),
    }
    free = {
        int(row): size
        for row in np.flatnonzero(action == Action.OOM)
        if (size := whole(entries[row].get("device_free"), LARGEST_BYTES)) != NOT_RECORDED
    }
    return columns, free


def _actions(entries: Entries) -> NDArray[np.int8]:
    values = _values(entries, "action")
    if set(map(type, values)) <= {str}:
        code_of: dict[object, int] = {value: int(ACTIONS.get(str(value), Action.OTHER)) for value in set(values)}
        return np.fromiter(map(code_of.__getitem__, values), np.int8, len(values))
    # Only texts are looked up: hashing something else could be made to recurse without end.
    codes = (int(ACTIONS.get(value, Action.OTHER)) if type(value) is str else NOT_RECORDED for value in values)
    return np.fromiter(codes, np.int8, len(values))


def _named(entries: Entries, key: str, names: Names) -> NDArray[np.int32]:
    """A column of texts by their numbers."""
    column = np.full(len(entries), NOT_RECORDED, np.int32)
    values = _values(entries, key)
    kinds = set(map(type, values))
    if kinds <= {type(None)} or (kinds <= {str} and set(values) == {""}):
        return column
    for row, value in enumerate(values):
        if value is not None and value != "":
            column[row] = names.index(value)
    return column


def frozen(column: NDArray[N]) -> NDArray[N]:
    """The same array, read-only."""
    column.flags.writeable = False
    return column
