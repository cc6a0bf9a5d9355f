"""An operator table → what share of its time some rows take, by its footer or its percentages."""

import re
from collections.abc import Callable, Iterable

from advisor.model.dataclass import dataclass
from advisor.model.tables import OperatorRow, OperatorTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShare:
    """Some rows of a table together.

    Attributes:
        names: of the rows.
        seconds: their self time.
        calls: of all of them; None where the table does not say.
        ratio: of all self time of the table; where only a part of the table is there and it prints
            no percentages, of the rows that are there.
        is_of_listed: the ratio is of the listed rows only, so it may be too large.
    """

    names: tuple[str, ...]
    seconds: float
    calls: int | None
    ratio: float
    is_of_listed: bool


_OF_A_DEVICE = re.compile(r"^(?:cuda|hip|cu)[A-Z]\w+$|^aten::(?:cudnn_|miopen_)|nccl|Memcpy (?:HtoD|DtoH)|\bcuda\b").search
"""Names that only a job on a device has: calls of the runtime, its libraries' operators."""


def has_device(table: OperatorTable) -> bool:
    """Whether the job used a device as far as the table shows: it has the device's columns, or names of the runtime or its libraries."""
    return bool(table.device) or any(_OF_A_DEVICE(row.name) for row in table.rows)


def self_cpu_total_seconds(table: OperatorTable) -> float | None:
    """All self CPU time: the footer's, else as the printed percentages imply; None without both."""
    return _total(
        table.self_cpu_total_seconds,
        ((row.self_cpu_seconds, row.self_cpu_ratio) for row in table.rows),
    )


def self_device_total_seconds(table: OperatorTable) -> float | None:
    """All self device time: the footer's, else what the printed percentages imply; None without."""
    return _total(
        table.self_device_total_seconds,
        ((row.self_device_seconds, row.self_device_ratio) for row in table.rows),
    )


def cpu_share(table: OperatorTable, test: Callable[[str], object]) -> TableShare | None:
    """The self CPU time of the rows whose name passes a test; None where no such row has a time."""
    total = self_cpu_total_seconds(table)
    return _share(table.rows, test, lambda row: row.self_cpu_seconds, total)


def device_share(table: OperatorTable, test: Callable[[str], object]) -> TableShare | None:
    """The self device time of the rows whose name passes a test; None where none has a time."""
    total = self_device_total_seconds(table)
    return _share(table.rows, test, lambda row: row.self_device_seconds, total)


def _total(footer_seconds: float | None, printed: Iterable[tuple[float | None, float | None]]) -> float | None:
    if footer_seconds:
        return footer_seconds
    # The largest percentage is the one that rounding spoils least.
    pairs = [(ratio, seconds) for seconds, ratio in printed if seconds and ratio]
    ratio, seconds = max(pairs, default=(0.0, 0.0))
    return seconds / ratio if ratio else None


def _share(
    rows: tuple[OperatorRow, ...],
    test: Callable[[str], object],
    seconds_of: Callable[[OperatorRow], float | None],
    total_seconds: float | None,
) -> TableShare | None:
    chosen = [row for row in rows if test(row.name) and seconds_of(row) is not None]
    seconds = sum(seconds_of(row) or 0.0 for row in chosen)
    whole = total_seconds or sum(seconds_of(row) or 0.0 for row in rows)
    if not chosen or not whole:
        return None
    calls = [row.calls for row in chosen if row.calls is not None]
    return TableShare(
        names=tuple(row.name for row in chosen),
        seconds=seconds,
        calls=sum(calls) if calls else None,
        ratio=min(1.0, seconds / whole),
        is_of_listed=total_seconds is None,
    )
