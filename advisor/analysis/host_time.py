"""What the host did while a device idled: fetch a batch, wait for the device, or issue its work."""

import functools
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.blocking_calls import blocking_calls, held_until, moments
from advisor.analysis.device_timeline import DeviceTimeline
from advisor.analysis.distinct import distinct
from advisor.analysis.loader_marks import loader_rows
from advisor.analysis.time_sets import TimeSet
from advisor.model.dataclass import dataclass
from advisor.model.trace import HOST_CALLS, Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Flags

PAUSE_NS = 100_000
"""Nanoseconds: Python needs 10 to 100 µs to come from one operator to the next (attribute look-ups,
module calls, hooks). A longer pause is work of another kind."""

LATENCY_NS = 100_000
"""Nanoseconds: a kernel starts about 5 µs after its launch, under a profiler up to some tens. One
that starts later than this after its launch waits for something else."""


@dataclass(frozen=True, eq=False)
class HostTime:
    """Moments of the host, by what it did; they may overlap.

    Attributes:
        fetching: inside the data loader's marks.
        waiting: inside a call that waits for the device's results, and behind it; see `held_until`.
        copying: inside a call that copies to the device itself, from pageable memory.
        allocating: inside a call that obtains memory from the driver or gives it back.
        loading: inside a call that brings a kernel's code to the device.
        issuing: inside operators and calls of the threads that launch, pauses of Python between
            them included, and from a launch to its kernel's start.
    """

    fetching: TimeSet
    waiting: TimeSet
    copying: TimeSet
    allocating: TimeSet
    loading: TimeSet
    issuing: TimeSet


@functools.lru_cache(maxsize=8)  # the breakdown and the measure of waits take it from the same place
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
    calls = blocking_calls(trace, timeline)
    return HostTime(
        fetching=_fetching(trace, on_thread, issuing),
        waiting=TimeSet.union(trace.start_ns[calls.for_results], held_until(trace, calls)),
        copying=moments(trace, calls.for_copies),
        allocating=moments(trace, calls.for_memory),
        loading=moments(trace, calls.for_code),
        issuing=issuing,
    )


@functools.lru_cache(maxsize=8)  # the same
def starved(timeline: DeviceTimeline) -> TimeSet:
    """The device's idle intervals that end in work issued after they began, or in none.

    In the others the work that ends them had been issued before the device ran dry: it waited for
    another stream, another rank or the hardware, and the host could have done nothing. What ran in a
    stream before the first work whose launch is recorded was launched before the record began.
    """
    idle = timeline.idle
    if not len(timeline.rows):
        return idle
    place = np.searchsorted(timeline.start_ns, idle.end_ns, side="left")
    ends_in_work = place < len(timeline.rows)
    place = np.minimum(place, len(timeline.rows) - 1)
    launch = np.maximum(timeline.launch[place], 0)
    issued_before = timeline.trace.ends_ns(launch) <= idle.start_ns
    has_launch = timeline.has_launch
    queued = ends_in_work & np.where(has_launch[place], issued_before, _launched_before_record(timeline)[place])
    return TimeSet(idle.start_ns[~queued], idle.end_ns[~queued])


def _launched_before_record(timeline: DeviceTimeline) -> "Flags":
    """For the timeline's rows whether a later one of the same stream is the first whose launch is recorded."""
    streams, joined = timeline.trace.thread[timeline.rows], timeline.has_launch.nonzero()[0]
    first = np.zeros(len(timeline.trace.threads), dtype=np.intp)
    first[streams[joined[::-1]]] = joined[::-1]  # of several the last assignment stays: the earliest
    before: Flags = np.arange(len(streams)) < first[streams]
    return before


def idle_by_cause(trace: KinetoTrace, timeline: DeviceTimeline) -> dict[str, int]:
    """Nanoseconds in which the device idled, each counted once.

    Of those in which it had run dry by what the host did, a field of `HostTime` in their order; those that end in work issued before
    are "queued".
    """
    host, dry = host_time(trace, timeline), starved(timeline)
    found = {"queued": timeline.idle.total_ns - dry.total_ns}
    for name in ("fetching", "waiting", "copying", "allocating", "loading", "issuing"):
        times: TimeSet = getattr(host, name)
        found[name] = int(times.within(dry.start_ns, dry.end_ns).sum())
        dry = dry.minus(times)
    return found


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
    fetched = moments(trace, own)
    if not len(others):
        return fetched
    elsewhere = moments(trace, others).minus(issuing)
    return TimeSet.union(
        np.concatenate((fetched.start_ns, elsewhere.start_ns)),
        np.concatenate((fetched.end_ns, elsewhere.end_ns)),
    )
