"""What the host did while a device idled: fetch a batch, wait for the device, or issue its work."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.device_timeline import DeviceTimeline
from advisor.analysis.distinct import distinct
from advisor.analysis.loader_marks import loader_rows
from advisor.analysis.named_events import named
from advisor.analysis.time_sets import TimeSet
from advisor.model.trace import HOST_CALLS, Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Flags, Indices, Times

PAUSE_NS = 100_000
"""Nanoseconds: Python needs 10 to 100 µs to come from one operator to the next (attribute look-ups,
module calls, hooks). A longer pause is work of another kind."""

LATENCY_NS = 100_000
"""Nanoseconds: a kernel starts about 5 µs after its launch, under a profiler up to some tens. One
that starts later than this after its launch waits for something else."""

WAITING_CALL = re.compile(r"^(?:cuda|hip|cu)\w*Synchronize$|^(?:cuda|hip)Memcpy(?:2D|3D|WithStream|ToSymbol|FromSymbol)?$").search
"""Calls that return only when the device is done."""


@dataclass(frozen=True, eq=False)
class HostTime:
    """Moments of the host, by what it did; they may overlap.

    Attributes:
        fetching: inside the data loader's marks.
        waiting: inside a synchronizing call, and behind it up to the next launch, for as long at
            most as the call took: without the call the host would be that much further on.
        issuing: inside operators and calls of the threads that launch, pauses of Python between
            them included, and from a launch to its kernel's start.
    """

    fetching: TimeSet
    waiting: TimeSet
    issuing: TimeSet


def host_time(trace: KinetoTrace, timeline: DeviceTimeline) -> HostTime:
    """The host's side of a device's trace.

    Only the threads that launch work for the device count, so that neither a watchdog's waits nor a
    loader's workers are taken for the loop's. A loader that runs on another thread counts only
    while the launching ones do nothing.
    """
    launched = distinct(timeline.launch[timeline.has_launch])
    launching = np.zeros(len(trace.threads), dtype=bool)
    launching[trace.thread[launched]] = True
    on_thread: Flags = launching[trace.thread]
    issuing = _issuing(trace, timeline, on_thread)
    return HostTime(
        fetching=_fetching(trace, on_thread, issuing),
        waiting=_waiting(trace, on_thread, np.sort(trace.start_ns[launched])),
        issuing=issuing,
    )


def starved(timeline: DeviceTimeline) -> TimeSet:
    """The device's idle intervals that end in work issued after they began, or in none.

    In the others the work that ends them had been issued before the device ran dry: it waited for
    another stream, another rank or the hardware, and the host could have done nothing.
    """
    idle = timeline.idle
    if not len(timeline.rows):
        return idle
    place = np.searchsorted(timeline.start_ns, idle.end_ns, side="left")
    ends_in_work = place < len(timeline.rows)
    place = np.minimum(place, len(timeline.rows) - 1)
    launch = np.maximum(timeline.launch[place], 0)
    issued_before = timeline.trace.ends_ns(launch) <= idle.start_ns
    queued = ends_in_work & timeline.has_launch[place] & issued_before
    return TimeSet(idle.start_ns[~queued], idle.end_ns[~queued])


def _issuing(trace: KinetoTrace, timeline: DeviceTimeline, on_thread: "Flags") -> TimeSet:
    rows = (on_thread & trace.mask_of(Category.OPERATOR, *HOST_CALLS)).nonzero()[0]
    joined = timeline.has_launch
    begun = timeline.launch_start_ns[joined]
    starts = np.concatenate((trace.start_ns[rows], begun))
    latest = trace.ends_ns(timeline.launch[joined]) + LATENCY_NS
    ends = np.concatenate((trace.ends_ns(rows), np.minimum(timeline.start_ns[joined], latest)))
    return _without_pauses(TimeSet.union(starts, ends))


def _without_pauses(times: TimeSet) -> TimeSet:
    if not len(times.start_ns):
        return times
    opens = np.concatenate(([True], times.start_ns[1:] - times.end_ns[:-1] > PAUSE_NS))
    closes = np.concatenate((opens[1:], [True]))
    return TimeSet(times.start_ns[opens], times.end_ns[closes])


def _fetching(trace: KinetoTrace, on_thread: "Flags", issuing: TimeSet) -> TimeSet:
    marks = loader_rows(trace)
    own = marks[on_thread[marks]]
    others = marks[~on_thread[marks]]
    fetched = _union(trace, own)
    if not len(others):
        return fetched
    elsewhere = _union(trace, others).minus(issuing)
    return TimeSet.union(
        np.concatenate((fetched.start_ns, elsewhere.start_ns)),
        np.concatenate((fetched.end_ns, elsewhere.end_ns)),
    )


def _waiting(trace: KinetoTrace, on_thread: "Flags", launches_ns: "Times") -> TimeSet:
    """Waits before the first launch or behind the last are the profiler's own, or the program's."""
    calls = (on_thread & trace.mask_of(*HOST_CALLS) & named(trace, WAITING_CALL)).nonzero()[0]
    start, end = trace.start_ns[calls], trace.ends_ns(calls)
    following = np.searchsorted(launches_ns, end, side="left")
    between = (following < len(launches_ns)) & (np.searchsorted(launches_ns, start) > 0)
    start, end = start[between], end[between]
    until = np.minimum(launches_ns[following[between]], end + (end - start))
    return TimeSet.union(start, until)


def _union(trace: KinetoTrace, rows: "Indices") -> TimeSet:
    return TimeSet.union(trace.start_ns[rows], trace.ends_ns(rows))
