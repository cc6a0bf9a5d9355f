"""Calls that obtain device memory from the driver or free it → how many lie in steady steps."""

import re
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.blocking_calls import moments
from advisor.analysis.device_timeline import SECOND_NS, device_timeline
from advisor.analysis.distinct import distinct
from advisor.analysis.named_events import named_rows
from advisor.analysis.steps import steps
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import HOST_CALLS, KinetoTrace
from advisor.model.waits import DriverAllocations

if TYPE_CHECKING:
    from advisor.model.trace import Indices

_OBTAINS = re.compile(r"^(?:cuda|hip)Malloc(?:Async|Managed)?$|^cuMem(?:Create|Alloc\w*)$").match
_EITHER = re.compile(r"^(?:cuda|hip)(?:Malloc|Free)(?:Async|Managed)?$|^cuMem(?:Create|Alloc|Release|Free)\w*$").match


def driver_allocations(trace: KinetoTrace, breakdown: StepBreakdown) -> DriverAllocations | None:
    """Driver allocations in the window and in the steps after the first; None without host calls."""
    if not trace.has_launches:
        return None
    host = named_rows(trace, _EITHER, *HOST_CALLS)
    obtains = np.fromiter((bool(_OBTAINS(name)) for name in trace.names), bool)[trace.name[host]]
    marked = steps(trace)
    count = len(marked.start_ns)
    begun = trace.start_ns[host]
    place = np.searchsorted(marked.start_ns, begun, side="right") - 1
    inside = (place >= 1) & (begun < marked.end_ns[np.maximum(place, 0)]) if count else place > 0
    durations = trace.duration_ns[host]
    return DriverAllocations(
        source=trace.source.at("host"),
        rank=trace.rank,
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        alloc_count=int(obtains.sum()),
        free_count=int((~obtains).sum()),
        seconds=float(durations.sum()) / SECOND_NS,
        steady_step_count=max(0, count - 1),
        steady_alloc_count=int((obtains & inside).sum()) if count else None,
        steady_free_count=int((~obtains & inside).sum()) if count else None,
        steady_seconds=float(durations[inside].sum()) / SECOND_NS if count else None,
        steady_exposed_seconds=_exposed_seconds(trace, breakdown, host[inside]) if count else None,
        steady_steps_hit=len(distinct(place[inside])),
    )


def _exposed_seconds(trace: KinetoTrace, breakdown: StepBreakdown, calls: "Indices") -> float | None:
    if breakdown.device_index is None:
        return None
    inside = moments(trace, calls)
    return float(device_timeline(trace, breakdown.device_index).idle.within(inside.start_ns, inside.end_ns).sum()) / SECOND_NS
