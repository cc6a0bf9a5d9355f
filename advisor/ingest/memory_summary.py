"""The allocator's counters: `memory_summary()` as printed, `memory_stats()` as a dict or JSON."""

import re
from collections.abc import Callable

from advisor.ingest import quantities
from advisor.ingest.plain_text import LINE_LIMIT, decode
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source
from advisor.model.tables import MemorySummary

SUMMARY_LIMIT = 512
"""Summaries of one text that are read."""

SUMMARY_BYTES = 16 * 1024
"""How far a summary is followed; it has 3 KB, and a log may put a prefix before each line."""

STATS_REACH_BYTES = 1024**2
"""How far around their first name the counters of `memory_stats` are looked for; they have 6 KB."""

_TITLE_WORDS = b" memory summary"
_TITLE = re.compile(r"PyTorch \S{2,12} memory summary(?:, device ID (\d{1,4}))?")
_COUNTERS = re.compile(r"\S{2,12} OOMs: (\d{1,15})\s{0,40}\|\s{0,40}\S{2,20} retries: (\d{1,15})")
_STAT = re.compile(
    rb"""["']([a-z_0-9]{3,40}(?:\.(?:all|small_pool|large_pool))?(?:\.(?:current|peak|allocated|freed))?)["']\s{0,4}[:,]\s{0,4}(-?\d{1,20})"""
)

_METRICS = {
    "allocated memory": "allocated",
    "active memory": "active",
    "requested memory": "requested",
    "gpu reserved memory": "reserved",
    "xpu reserved memory": "reserved",
    "non-releasable memory": "inactive_split",
}
"""Rows of bytes → metrics of the model; what the table calls non-releasable is
`inactive_split_bytes` of `memory_stats`."""

_COUNT_ROWS = {
    "allocations": "allocation.all",
    "active allocs": "active.all",
    "gpu reserved segments": "segment.all",
    "non-releasable allocs": "inactive_split.all",
    "oversize allocations": "oversize_allocations",
    "oversize gpu segments": "oversize_segments",
}
"""Rows of counts → their names in `memory_stats`."""

_STAT_BYTES = {
    "allocated_bytes": "allocated",
    "active_bytes": "active",
    "reserved_bytes": "reserved",
    "requested_bytes": "requested",
    "inactive_split_bytes": "inactive_split",
}

_STAT_WORDS = (b"active.all.", b"allocated_bytes.all.", b"num_alloc_retries")
"""Where `memory_stats` shows itself."""

_COLUMNS = 5
"""Metric, current, peak, allocated in all, freed in all."""

_FEWEST_STATS = 3
"""So many counters named as PyTorch names them make a text `memory_stats`."""


def looks_like_memory_summary(head: bytes) -> bool:
    """Whether a text holds a memory summary early."""
    return b" memory summary" in head and b"PyTorch" in head


def looks_like_memory_stats(head: bytes) -> bool:
    """Whether a text holds `memory_stats()` early."""
    return b"allocated_bytes.all." in head or b"num_alloc_retries" in head


def read_memory_summaries(text: bytes, path: str) -> tuple[MemorySummary, ...]:
    """All summaries of a text, in order; empty where it holds none.

    Figures are the printed ones times their unit. PyTorch rounds them down, so each is true to
    within one unit (`resolution_bytes` is half of the coarsest); its old "MB" are MiB.
    """
    if b"PyTorch" not in text:
        return ()
    found: list[_Table] = []
    place, counted, number = text.find(_TITLE_WORDS), 0, 1
    while place >= 0 and len(found) < SUMMARY_LIMIT:
        start = text.rfind(b"\n", 0, place) + 1
        number, counted = number + text.count(b"\n", counted, start), start
        following = text.find(_TITLE_WORDS, place + len(_TITLE_WORDS))
        end = min(start + SUMMARY_BYTES, len(text) if following < 0 else following)
        table = _table(decode(text[start:end]), number)
        if table is not None:
            found.append(table)
        place = following
    return tuple(table.summary(path) for table in found)


def _table(text: str, number: int) -> "_Table | None":
    """A summary from its title on; None where the words stand in another sentence."""
    lines = text.splitlines()
    title = _TITLE.search(lines[0][:LINE_LIMIT]) if lines else None
    if title is None:
        return None
    table = _Table(line=number, device_index=int(title.group(1)) if title.group(1) else None)
    for offset, line in enumerate(lines[1:], start=1):
        if "|" in line:
            table.take(line[:LINE_LIMIT], number + offset)
    return table


def read_memory_summary(text: bytes, path: str) -> MemorySummary | None:
    """The summary with the most failed requests, the latest of equals; None without any."""
    found = read_memory_summaries(text, path)
    return max(reversed(found), key=lambda summary: summary.ooms or 0, default=None)


def read_memory_stats(text: bytes, path: str) -> MemorySummary | None:
    """`memory_stats()` as a printed dict, OrderedDict or JSON, anywhere in a text.

    None without. Where a name repeats, the first counts.
    """
    places = [place for place in (text.find(word) for word in _STAT_WORDS) if place >= 0]
    if not places:
        return None
    start = min(places)
    numbers: dict[str, int] = {}
    reach = text[max(0, start - STATS_REACH_BYTES) : start + STATS_REACH_BYTES]
    for name, printed in _STAT.findall(reach):
        value = int(printed)
        if abs(value) <= max(quantities.LARGEST_BYTES, quantities.LARGEST_COUNT) * 1024:
            numbers.setdefault(name.decode(), value)
    known = {name: value for name, value in numbers.items() if "." in name or name.startswith(("num_", "max_split"))}
    if len(known) < _FEWEST_STATS:
        return None
    current = {metric: known[f"{name}.all.current"] for name, metric in _STAT_BYTES.items() if f"{name}.all.current" in known}
    peak = {metric: known[f"{name}.all.peak"] for name, metric in _STAT_BYTES.items() if f"{name}.all.peak" in known}
    missing = [name for name in ("allocated_bytes", "reserved_bytes") if f"{name}.all.current" not in known]
    has_nul = b"\0" in reach
    return MemorySummary(
        source=Source(path=path, where=f"line {text.count(10, 0, start) + 1}" if start else ""),
        gaps=(
            *(f"{name}.all is missing: the text is cut" for name in missing),
            *(["NUL bytes stand in or next to the counters: the text was cut short or overwritten"] if has_nul else []),
        ),
        device_index=None,
        ooms=known.get("num_ooms"),
        retries=known.get("num_alloc_retries"),
        current=_with_both_names(current),
        peak=_with_both_names(peak),
        counts={name: value for name, value in known.items() if not name.startswith(tuple(_STAT_BYTES))},
        is_cut=bool(missing) or has_nul,
    )


@dataclass
class _Table:
    line: int
    device_index: int | None
    ooms: int | None = None
    retries: int | None = None
    current: dict[str, int] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    coarsest: int = 0
    torn: list[int] = field(default_factory=list)
    is_closed: bool = False

    def take(self, line: str, number: int) -> None:
        """One line below the title."""
        counters = _COUNTERS.search(line)
        if counters is not None:
            self.ooms, self.retries = int(counters.group(1)), int(counters.group(2))
            return
        if "|===" in line:
            self.is_closed = bool(self.counts)
            return
        cells = [cell.strip() for cell in line[line.index("|") + 1 :].rstrip().removesuffix("|").split("|")]
        metric = cells[0].lower()
        if metric in _METRICS:
            self._take_row(cells, number, _METRICS[metric], quantities.size_bytes, self.current, self.peak)
        elif metric in _COUNT_ROWS:
            counted = _COUNT_ROWS[metric]
            current: dict[str, int] = {}
            peak: dict[str, int] = {}
            self._take_row(cells, number, counted, _whole, current, peak)
            self.counts.update({f"{name}.current": value for name, value in current.items()})
            self.counts.update({f"{name}.peak": value for name, value in peak.items()})

    def _take_row(  # noqa: PLR0913, PLR0917 - a row, its place, and where its two figures go
        self,
        cells: list[str],
        number: int,
        metric: str,
        parse: Callable[[str], int | None],
        current: dict[str, int],
        peak: dict[str, int],
    ) -> None:
        if metric in current:
            return  # a repeated row is another table without its title
        complete = len(cells) >= _COLUMNS
        if not complete:
            self.torn.append(number)
        for printed, target in ((cells[1:2], current), (cells[2:3], peak)):
            is_last = not complete and printed == cells[-1:]
            value = parse(printed[0]) if printed and not is_last else None
            if value is not None:
                target[metric] = value
                if parse is quantities.size_bytes:
                    self.coarsest = max(self.coarsest, quantities.unit_bytes(printed[0]) or 0)

    def summary(self, path: str) -> MemorySummary:
        """What was read."""
        gaps = [f"line {number} is torn" for number in self.torn[:5]]
        missing = [metric for metric in ("allocated", "active", "reserved", "inactive_split") if metric not in self.current]
        if missing:
            gaps.append(f"the rows of {', '.join(missing)} memory are missing: the table is cut")
        return MemorySummary(
            source=Source(path=path, where=f"line {self.line}"),
            gaps=tuple(gaps),
            device_index=self.device_index,
            ooms=self.ooms,
            retries=self.retries,
            current=_with_both_names(self.current),
            peak=_with_both_names(self.peak),
            counts=self.counts,
            resolution_bytes=self.coarsest // 2,
            is_cut=bool(self.torn or missing) or not self.is_closed,
        )


def _with_both_names(sizes: dict[str, int]) -> dict[str, int]:
    """The same counter goes by two names: split off and free, and not to be given back."""
    return sizes | {"non_releasable": sizes["inactive_split"]} if "inactive_split" in sizes else sizes


def _whole(printed: str) -> int | None:
    """A count; torch ≥ 2.1 prints large ones as "12 K"."""
    parsed = quantities.number_and_unit(printed)
    scale = {"": 1, "K": 1000, "M": 10**6, "B": 10**9}.get(parsed[1]) if parsed else None
    if parsed is None or scale is None or abs(parsed[0]) > quantities.LARGEST_COUNT:
        return None
    return round(parsed[0] * scale)
