"""The host's waits for the device → where they are, and how long the device idled behind each."""

import re
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.blocking_calls import BlockingCalls, blocking_calls, held_until
from advisor.analysis.device_timeline import SECOND_NS, DeviceTimeline, device_timeline
from advisor.analysis.distinct import distinct_places
from advisor.analysis.host_time import host_time, starved
from advisor.analysis.nesting import parents
from advisor.analysis.operator_rows import by_external_id
from advisor.analysis.step_times import steady_steps
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import Category, KinetoTrace
from advisor.model.waits import Synchronizations, SynchronizationSite

if TYPE_CHECKING:
    from advisor.model.trace import Flags, Indices, Times

SITE_COUNT = 20
"""Sites that are listed; the rest is in the sums."""

COSTLY_CALLS = 200
"""A call with more than one in so many parts of the idle time is worth a name."""

LINED_COUNT = 5
"""Sites whose line is looked up: each look-up goes over all Python frames."""

_LIBRARY = re.compile(r"site-packages|dist-packages|lib/python|(?:^|/)torch/|<built-in|<string>|<frozen|nn\.Module:").search

_USERS_NAME = {
    "aten::_local_scalar_dense": "aten::item",
    "aten::copy_": "aten::to",
    "aten::_to_copy": "aten::to",
}
"""Inner operators, and the outer ones that people write."""


def synchronizations(trace: KinetoTrace, breakdown: StepBreakdown) -> Synchronizations | None:
    """The waits inside the steps, or inside the window where no step is marked.

    A wait is a synchronizing call, or a copy to the host that blocks, of a thread that launches work;
    see `BlockingCalls.for_results`. Exposed is the time in which the device had run dry inside the
    call and behind it (see `held_until`); idle time inside the loader's marks is the input's and left
    out. Together they are the breakdown's part for synchronization, but that those in leading slow
    steps belong to the warm-up and do not count.

    Returns:
        None where no launches are recorded, or no device.
    """
    if breakdown.device_index is None or not trace.has_launches:
        return None
    timeline = device_timeline(trace, breakdown.device_index)
    waits = blocking_calls(trace, timeline)
    counts = _inside_steps(trace, waits.for_results)
    calls, idle_ns = waits.for_results[counts], _idle_behind(trace, timeline, waits)[counts]
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


def _inside_steps(trace: KinetoTrace, calls: "Indices") -> "Flags":
    """Those that begin in a step that is no warm-up; all of them where no step is marked."""
    marked = steady_steps(trace)
    if not len(marked.start_ns):
        return np.ones(len(calls), dtype=bool)
    place = np.searchsorted(marked.start_ns, trace.start_ns[calls], side="right") - 1
    inside: Flags = (place >= 0) & (trace.start_ns[calls] < marked.end_ns[np.maximum(place, 0)])
    return inside


def _idle_behind(trace: KinetoTrace, timeline: DeviceTimeline, waits: BlockingCalls) -> "Times":
    """Idle time of the device that each wait leaves, nanoseconds; where waits overlap it is the earlier one's."""
    start, until = trace.start_ns[waits.for_results], held_until(trace, waits)
    reached = np.maximum.accumulate(until)
    since = np.maximum(start, np.concatenate((start[:1], reached[:-1])))
    dry = starved(timeline).minus(host_time(trace, timeline).fetching)
    behind: Times = np.maximum(0, dry.within(np.minimum(since, until), until))
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
