"""The host's waits for the device → where they are, and how long the device idled behind each."""

import re
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, DeviceTimeline, device_timeline
from advisor.analysis.distinct import distinct_places
from advisor.analysis.loader_marks import loader_rows
from advisor.analysis.named_events import named_rows
from advisor.analysis.nesting import parents
from advisor.analysis.operator_rows import by_external_id
from advisor.analysis.step_times import steady_steps
from advisor.analysis.time_sets import TimeSet
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import HOST_CALLS, Category, KinetoTrace
from advisor.model.waits import Synchronizations, SynchronizationSite

if TYPE_CHECKING:
    from advisor.model.trace import Indices, Times

SITE_COUNT = 20
"""Sites that are listed; the rest is in the sums."""

COSTLY_CALLS = 200
"""A call with more than one in so many parts of the idle time is worth a name."""

LINED_COUNT = 5
"""Sites whose line is looked up: each look-up goes over all Python frames."""

_WAITING_CALL = re.compile(r"^(?:cuda|hip|cu)\w*Synchronize$").match
_TO_HOST = re.compile(r"DtoH").search
_LIBRARY = re.compile(r"site-packages|dist-packages|lib/python|(?:^|/)torch/|<built-in|<string>|<frozen|nn\.Module:").search

_USERS_NAME = {
    "aten::_local_scalar_dense": "aten::item",
    "aten::copy_": "aten::to",
    "aten::_to_copy": "aten::to",
}
"""Inner operators, and the outer ones that people write."""


def synchronizations(trace: KinetoTrace, breakdown: StepBreakdown) -> Synchronizations | None:
    """The waits inside the steps, or inside the window where no step is marked.

    A wait is a synchronizing call, or a copy to the host that blocks. Exposed is the device's idle
    time inside the call and from its end to the next launch, for as long at most as the call took;
    idle time inside the loader's marks is the input's and left out. Waits with no launch before or
    none after them are the profiler's or a benchmark's own, those in leading slow steps belong to
    the warm-up: neither counts.

    Returns:
        None where no launches are recorded, or no device.
    """
    if breakdown.device_index is None or not trace.has_launches:
        return None
    timeline = device_timeline(trace, breakdown.device_index)
    calls = _between_launches(timeline, _inside_steps(trace, _waiting_calls(trace, timeline)))
    idle_ns = _idle_behind(trace, timeline, calls)
    sites = _sites(trace, calls, idle_ns)
    return Synchronizations(
        source=trace.source.at("host"),
        rank=trace.rank,
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        count=len(calls),
        host_seconds=float(trace.duration_ns[calls].sum()) / SECOND_NS,
        exposed_seconds=float(idle_ns.sum()) / SECOND_NS,
        sites=sites,
    )


def _waiting_calls(trace: KinetoTrace, timeline: DeviceTimeline) -> "Indices":
    """Synchronizing calls, and the copying calls that brought something to the host."""
    waiting = named_rows(trace, _WAITING_CALL, *HOST_CALLS)
    to_host = np.fromiter((bool(_TO_HOST(name)) for name in trace.names), bool)
    brings = timeline.has_launch & to_host[trace.name[timeline.rows]]
    # An asynchronous copy to pinned memory returns before the copy is done and waits for nothing.
    copying = timeline.launch[brings]
    copying = copying[trace.ends_ns(copying) >= timeline.end_ns[brings]]
    return trace.in_order(np.concatenate((waiting, copying)))


def _inside_steps(trace: KinetoTrace, calls: "Indices") -> "Indices":
    """Those that begin in a step that is no warm-up; all of them where no step is marked."""
    marked = steady_steps(trace)
    if not len(marked.start_ns):
        return calls
    place = np.searchsorted(marked.start_ns, trace.start_ns[calls], side="right") - 1
    inside = (place >= 0) & (trace.start_ns[calls] < marked.end_ns[np.maximum(place, 0)])
    return calls[inside]


def _between_launches(timeline: DeviceTimeline, calls: "Indices") -> "Indices":
    """Those that begin after a first and end before a last launch of the device's work."""
    trace, issued = timeline.trace, timeline.launch[timeline.has_launch]
    if not len(issued):
        return calls[:0]
    launched = trace.start_ns[issued]
    after = trace.start_ns[calls] > launched.min()
    before = trace.ends_ns(calls) <= launched.max()
    between: Indices = calls[after & before]
    return between


def _idle_behind(trace: KinetoTrace, timeline: DeviceTimeline, calls: "Indices") -> "Times":
    """Idle time of the device that each wait leaves, nanoseconds."""
    if not len(calls):
        return np.zeros(0, dtype=np.int64)
    start, end = trace.start_ns[calls], trace.ends_ns(calls)
    launched = np.sort(timeline.launch_start_ns)
    following = np.searchsorted(launched, end, side="left")
    first = np.where(following < len(launched), launched[np.minimum(following, len(launched) - 1)], end)
    # Without the wait the host would be that much further on, and no more.
    until = np.minimum(np.maximum(first, end), end + (end - start))
    until[:-1] = np.minimum(until[:-1], np.maximum(start[1:], end[:-1]))
    loading = loader_rows(trace)
    loads = TimeSet.union(trace.start_ns[loading], trace.ends_ns(loading))
    idle = timeline.idle.minus(loads) if len(loading) else timeline.idle
    since = np.maximum(start, np.concatenate(([start[0]], np.maximum.accumulate(end)[:-1])))
    behind: Times = np.maximum(0, idle.within(np.minimum(since, until), until))
    return behind


def _sites(trace: KinetoTrace, calls: "Indices", idle_ns: "Times") -> tuple[SynchronizationSite, ...]:
    """The waits by operator and call, those that cost most first."""
    if not len(calls):
        return ()
    operator_row = _operators(trace, calls, idle_ns)
    operator = np.where(operator_row >= 0, trace.name[operator_row], len(trace.names))
    pairs = operator.astype(np.int64) * len(trace.names) + trace.name[calls]
    keys, position = distinct_places(pairs)
    cost = np.bincount(position, weights=idle_ns)
    found = []
    for rank, place in enumerate(cost.argsort(kind="stable")[::-1][:SITE_COUNT]):
        chosen = position == place
        worst = calls[chosen][idle_ns[chosen].argmax()]
        code, call = divmod(int(keys[place]), len(trace.names))
        name = trace.names[code] if code < len(trace.names) else ""
        found.append(
            SynchronizationSite(
                operator=_USERS_NAME.get(name, name),
                call=trace.names[call],
                line=user_line(trace, int(worst)) if rank < LINED_COUNT else "",
                count=int(chosen.sum()),
                host_seconds=float(trace.duration_ns[calls[chosen]].sum()) / SECOND_NS,
                exposed_seconds=float(idle_ns[chosen].sum()) / SECOND_NS,
            )
        )
    return tuple(found)


def _operators(trace: KinetoTrace, calls: "Indices", idle_ns: "Times") -> "Indices":
    """The operator around each call, by external id, else by time where it cost; -1 without."""
    found = by_external_id(trace, trace.external_id[calls])
    costly = (found < 0) & (idle_ns * COSTLY_CALLS > idle_ns.sum())
    if not costly.any():
        return found
    asking = calls[costly]
    # What contains a call lasts as long: short operators, nearly all, need not be looked at.
    may_contain = trace.mask_of(Category.OPERATOR)
    may_contain &= trace.duration_ns >= trace.duration_ns[asking].min()
    rows = np.concatenate((may_contain.nonzero()[0], asking))
    around = parents(trace.thread[rows], trace.start_ns[rows], trace.ends_ns(rows))[-len(asking) :]
    found[costly] = np.where(around >= 0, rows[around], -1)
    is_operator = trace.category[np.maximum(found, 0)] == int(Category.OPERATOR)
    return np.where(is_operator, found, -1)


def user_line(trace: KinetoTrace, row: int) -> str:
    """The innermost Python frame around an event that is not a library's: "train.py(12): step".

    Empty where the trace holds no Python frames, or none of the program's own.
    """
    frames = trace.mask_of(Category.PYTHON).nonzero()[0]
    at = trace.start_ns[row]
    frames = frames[(trace.thread[frames] == trace.thread[row]) & (trace.start_ns[frames] <= at)]
    around = trace.in_order(frames[trace.ends_ns(frames) >= at])[::-1]
    names = (trace.name_of(int(frame)) for frame in around)
    return next((name for name in names if not _LIBRARY(name)), "")
