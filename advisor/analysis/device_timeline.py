"""One device's side of a trace: when it computed, communicated, copied, idled, and who launched it."""

import functools
import re
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.distinct import distinct_places
from advisor.analysis.kernel_names import KernelName, is_communication, read_kernel_name
from advisor.analysis.time_sets import TimeSet
from advisor.model.dataclass import dataclass
from advisor.model.trace import HOST_CALLS, Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Flags, Indices, Times

SECOND_NS = 1_000_000_000
"""Nanoseconds in a second."""

SPARSE_RATIO = 16
"""Correlations up to so many times the calls are looked up in a table (8 bytes each), others by sorting."""

_GRAPH_LAUNCH = re.compile(r"GraphLaunch").search


@dataclass(frozen=True, eq=False)
class DeviceTimeline:
    """A device's activity, its kernels told apart by name, and the host calls that issued it.

    Attributes:
        trace: the trace.
        device: the ordinal.
        rows: its kernels, copies and fills, in order of their start.
        launch: for each of `rows` the row of the host call with its correlation; -1 without one.
        is_kernel / is_collective / is_copy: of `rows`.
        window_start_ns / window_end_ns: first start and last end of anything in the trace that
            has a duration, the profiler's own rows left out.
        busy / computing / communicating / copying: when any activity, a kernel that is no
            collective, a collective, a copy or fill was under way.
        idle: the window's moments in which it did nothing.
    """

    trace: KinetoTrace
    device: int
    rows: "Indices"
    launch: "Indices"
    is_kernel: "Flags"
    is_collective: "Flags"
    is_copy: "Flags"
    window_start_ns: int
    window_end_ns: int
    busy: TimeSet
    computing: TimeSet
    communicating: TimeSet
    copying: TimeSet
    idle: TimeSet

    @property
    def start_ns(self) -> "Times":
        """Starts of `rows`."""
        return self.trace.start_ns[self.rows]

    @property
    def end_ns(self) -> "Times":
        """Ends of `rows`."""
        return self.start_ns + self.duration_ns

    @property
    def duration_ns(self) -> "Times":
        """Durations of `rows`."""
        return self.trace.duration_ns[self.rows]

    @property
    def has_launch(self) -> "Flags":
        """Whether the host call is recorded, for `rows`."""
        found: Flags = self.launch >= 0
        return found

    @property
    def launch_start_ns(self) -> "Times":
        """When the host call began, for `rows`; where it is not recorded, when the activity did."""
        at = np.maximum(self.launch, 0)
        begun: Times = np.where(self.has_launch, self.trace.start_ns[at], self.start_ns)
        return begun

    @property
    def from_graph(self) -> "Flags":
        """Whether a replay of a graph issued it, for `rows`."""
        graphs = np.fromiter((bool(_GRAPH_LAUNCH(name)) for name in self.trace.names), bool, len(self.trace.names))
        at = np.maximum(self.launch, 0)
        issued: Flags = self.has_launch & graphs[self.trace.name[at]]
        return issued

    def kernel_names(self) -> tuple["Indices", tuple[KernelName, ...]]:
        """For the kernels among `rows` a position each, into what their distinct names tell."""
        codes, position = distinct_places(self.trace.name[self.rows[self.is_kernel]])
        return position, tuple(read_kernel_name(self.trace.names[code]) for code in codes)


@functools.lru_cache(maxsize=8)  # a trace's measures all start here; the case keeps the traces alive anyway
def device_timeline(trace: KinetoTrace, device: int) -> DeviceTimeline:
    """The timeline of one device of a trace.

    Args:
        trace: the trace.
        device: its ordinal, one of `trace.active_devices()`.
    """
    rows = trace.activity(device)
    start, end = trace.start_ns[rows], trace.ends_ns(rows)
    is_kernel = trace.category[rows] == int(Category.KERNEL)
    is_collective = np.zeros(len(rows), dtype=bool)
    codes, position = distinct_places(trace.name[rows[is_kernel]])
    says_so = [is_communication(trace.names[code]) for code in codes]
    is_collective[is_kernel] = np.array(says_so, bool)[position]
    computes = is_kernel & ~is_collective
    busy = TimeSet.union(start, end)
    window_start, window_end = window(trace)
    return DeviceTimeline(
        trace=trace,
        device=device,
        rows=rows,
        launch=launches(trace, rows),
        is_kernel=is_kernel,
        is_collective=is_collective,
        is_copy=~is_kernel,
        window_start_ns=window_start,
        window_end_ns=window_end,
        busy=busy,
        computing=TimeSet.union(start[computes], end[computes]),
        communicating=TimeSet.union(start[is_collective], end[is_collective]),
        copying=TimeSet.union(start[~is_kernel], end[~is_kernel]),
        idle=busy.complement(window_start, window_end),
    )


def launches(trace: KinetoTrace, rows: "Indices") -> "Indices":
    """The host call that issued each of some rows of device activity; -1 where none is recorded.

    Where one correlation stands on several calls (a driver call inside a runtime call), the last wins.
    """
    calls = (trace.mask_of(*HOST_CALLS) & (trace.correlation >= 0)).nonzero()[0]
    found = np.full(len(rows), -1, dtype=np.intp)
    if not len(calls) or not len(rows):
        return found
    wanted = trace.correlation[rows]
    if int(trace.correlation[calls].max()) < SPARSE_RATIO * len(calls):
        return _by_table(trace, calls, wanted)
    order = calls[trace.correlation[calls].argsort(kind="stable")]
    keys = trace.correlation[order]
    place = np.searchsorted(keys, wanted, side="right") - 1
    hit = (place >= 0) & (wanted >= 0) & (keys[np.maximum(place, 0)] == wanted)
    found[hit] = order[place[hit]]
    return found


def _by_table(trace: KinetoTrace, calls: "Indices", wanted: "Times") -> "Indices":
    """The same by a table over all correlations: they are counted up, so it is short."""
    keys = trace.correlation[calls]
    table = np.full(int(keys.max()) + 1, -1, dtype=np.intp)
    table[keys] = calls
    known = (wanted >= 0) & (wanted < len(table))
    found: Indices = np.where(known, table[np.where(known, wanted, 0)], -1)
    return found


def window(trace: KinetoTrace) -> tuple[int, int]:
    """First start and last end of what the trace holds besides the profiler's own rows.

    Python's frames are left out too: those open when the profiler starts and stops reach as far
    as it does.
    """
    own = (Category.OVERHEAD, Category.SPAN, Category.COUNTERS, Category.PYTHON)
    counts = ~trace.mask_of(*own)
    if not counts.any():
        return 0, 0
    return int(trace.start_ns[counts].min()), int(trace.ends_ns(counts).max())
