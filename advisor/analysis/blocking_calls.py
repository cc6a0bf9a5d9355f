"""Host calls in which the threads that launch work stand still, by what holds them."""

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.device_timeline import DeviceTimeline
from advisor.analysis.distinct import distinct
from advisor.analysis.named_events import passing
from advisor.analysis.time_sets import TimeSet
from advisor.model.dataclass import dataclass
from advisor.model.trace import HOST_CALLS, Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Flags, Indices, Times

SYNCHRONIZES = re.compile(r"^(?:cuda|hip|cu)\w*Synchronize$").match
"""Calls that return only when the device is done."""

COPIES_AT_ONCE = re.compile(r"^(?:cuda|hip)Memcpy(?:2D|3D|WithStream|ToSymbol|FromSymbol)?$").match
"""Copies without "Async" in their name return when they are done."""

DRIVER_MEMORY = re.compile(
    r"^(?:cuda|hip)(?:Malloc|Free)(?:Managed|3D|Pitch|Array)?$|^(?:cuda|hip)(?:MallocHost|FreeHost|Host(?:Alloc|Malloc|Free|Register|Unregister))$"
    r"|^cuMem(?:Create|Release|Map|Unmap|SetAccess|Alloc|Free|HostAlloc|FreeHost)(?:_v2)?$"
).match
"""Calls that obtain memory from the driver or give it back: tens of microseconds to many milliseconds, and a free waits for the device.
The stream-ordered ones ("Async") only queue."""

CODE_LOADING = re.compile(r"^(?:cuda|hip|cu)(?:Module|Library)(?:Load|GetFunction|GetGlobal|Unload)\w*$").match
"""Calls that bring a kernel's code to the device, each kernel's once."""

_TO_HOST = re.compile(r"DtoH").search
_TO_DEVICE = re.compile(r"HtoD").search
_PAGEABLE = re.compile(r"\bPageable\b").search


@dataclass(frozen=True, eq=False)
class BlockingCalls:
    """Rows of the calls, each kind in order of its start; a call is of one kind.

    Attributes:
        for_results: synchronizing calls, and copies to the host that return when they are done, with work launched before and behind
            them: the others are the profiler's own, or a benchmark's.
        for_copies: copies to the device that the host makes itself: from pageable memory, or by a call that returns when they are done.
        for_memory: driver memory obtained or given back.
        for_code: code loaded.
        launches_ns: starts of the launches of the device's work, sorted.
    """

    for_results: "Indices"
    for_copies: "Indices"
    for_memory: "Indices"
    for_code: "Indices"
    launches_ns: "Times"


@functools.lru_cache(maxsize=8)  # the breakdown and the measures of waits start here, as they do with the timeline
def blocking_calls(trace: KinetoTrace, timeline: DeviceTimeline) -> BlockingCalls:
    """The calls of the threads that launch the device's work; a watchdog's or a loader's waits hold nobody up.

    An asynchronous copy to pinned memory returns before the copy is done and is none of them.
    """
    launched = distinct(timeline.launch[timeline.has_launch])
    launching = np.zeros(len(trace.threads), dtype=bool)
    launching[trace.thread[launched]] = True
    calls = trace.mask_of(*HOST_CALLS) & launching[trace.thread]
    to_host, to_device = _copying(timeline)
    ends_itself = _named(trace, calls, COPIES_AT_ONCE)
    waits = distinct(np.concatenate((_named(trace, calls, SYNCHRONIZES), to_host, _without(ends_itself, to_device))))
    waits = trace.in_order(waits[launching[trace.thread[waits]]])
    launches_ns = np.sort(trace.start_ns[launched])
    return BlockingCalls(
        for_results=waits[_has_work_around(trace, waits, launches_ns)],
        for_copies=trace.in_order(_without(to_device, to_host)),
        for_memory=trace.in_order(_named(trace, calls, DRIVER_MEMORY)),
        for_code=trace.in_order(_named(trace, calls, CODE_LOADING)),
        launches_ns=launches_ns,
    )


def held_until(trace: KinetoTrace, calls: BlockingCalls) -> "Times":
    """For each of the waits for results, until when idle time of the device is its doing, nanoseconds.

    That is up to the next launch, for as long at most as the call took: without the call the host would be that much further on.
    """
    end = trace.ends_ns(calls.for_results)
    following = np.searchsorted(calls.launches_ns, end, side="left")
    until: Times = np.minimum(calls.launches_ns[following], end + trace.duration_ns[calls.for_results])
    return until


def moments(trace: KinetoTrace, rows: "Indices") -> TimeSet:
    """The moments inside some events."""
    return TimeSet.union(trace.start_ns[rows], trace.ends_ns(rows))


def _copying(timeline: DeviceTimeline) -> tuple["Indices", "Indices"]:
    """Calls in which the host stood until a copy to it was done, and those in which it copied to the device itself."""
    trace = timeline.trace
    joined = timeline.has_launch & (trace.category[timeline.rows] == int(Category.COPY))
    names, calls = trace.name[timeline.rows[joined]], timeline.launch[joined]
    is_held = trace.ends_ns(calls) >= timeline.end_ns[joined]
    to_host: Flags = passing(trace, _TO_HOST)[names]
    to_device: Flags = passing(trace, _TO_DEVICE)[names]
    copies_itself = passing(trace, _PAGEABLE)[names] | is_held
    return distinct(calls[to_host & is_held]), distinct(calls[to_device & copies_itself])


def _has_work_around(trace: KinetoTrace, calls: "Indices", launches_ns: "Times") -> "Flags":
    before = np.searchsorted(launches_ns, trace.start_ns[calls]) > 0
    behind = np.searchsorted(launches_ns, trace.ends_ns(calls), side="left") < len(launches_ns)
    around: Flags = before & behind
    return around


def _named(trace: KinetoTrace, calls: "Flags", test: Callable[[str], object]) -> "Indices":
    found: Indices = (calls & passing(trace, test)[trace.name]).nonzero()[0]
    return found


def _without(rows: "Indices", others: "Indices") -> "Indices":
    """Rows that are not among some others, which are sorted."""
    if not len(others):
        return rows
    place = np.minimum(np.searchsorted(others, rows), len(others) - 1)
    rest: Indices = rows[others[place] != rows]
    return rest
