"""A device's copies → by kind: bytes, time, exposed time, and how long the host stood in them."""

import re
from typing import TYPE_CHECKING

from advisor.analysis.device_timeline import SECOND_NS, DeviceTimeline, device_timeline
from advisor.analysis.distinct import distinct
from advisor.analysis.time_sets import TimeSet
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import Category, KinetoTrace
from advisor.model.waits import CopyGroup, CopyProfile

if TYPE_CHECKING:
    import numpy as np

LARGE_BYTES = 8 * 1024**2
"""A copy from here on is a batch or a weight, and no scalar or index."""

_DIRECTION = re.compile(r"\b(HtoD|DtoH|DtoD|PtoP|HtoH|AtoD|DtoA)\b")
_PINNED = re.compile(r"\bPinned\b")
_PAGEABLE = re.compile(r"\bPageable\b")


def copies(trace: KinetoTrace, breakdown: StepBreakdown) -> CopyProfile | None:
    """The copies of the breakdown's device, fills left out; None where there is no device."""
    if breakdown.device_index is None:
        return None
    timeline = device_timeline(trace, breakdown.device_index)
    is_copy = trace.category[timeline.rows] == int(Category.COPY)
    kernels = timeline.rows[timeline.is_kernel]
    hiding = TimeSet.union(trace.start_ns[kernels], trace.ends_ns(kernels))
    codes = distinct(trace.name[timeline.rows[is_copy]])
    groups = [_group(timeline, is_copy & (trace.name[timeline.rows] == code), trace.names[code], hiding) for code in codes]
    return CopyProfile(
        source=trace.source.at(f"device {breakdown.device_index}"),
        rank=trace.rank,
        device_index=breakdown.device_index,
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        groups=tuple(sorted(groups, key=lambda group: -group.device_seconds)),
    )


def _group(timeline: DeviceTimeline, chosen: "np.typing.NDArray[np.bool_]", name: str, hiding: TimeSet) -> CopyGroup:
    """The copies of one name; exposed where no kernel ran beside them."""
    rows = timeline.rows[chosen]
    trace = timeline.trace
    when = TimeSet.union(trace.start_ns[rows], trace.ends_ns(rows))
    sizes = trace.moved_bytes[rows]
    known = sizes[sizes >= 0]
    calls = distinct(timeline.launch[chosen])
    calls = calls[calls >= 0]
    issuing = TimeSet.union(trace.start_ns[calls], trace.ends_ns(calls))
    direction = _DIRECTION.search(name)
    is_pinned, is_pageable = bool(_PINNED.search(name)), bool(_PAGEABLE.search(name))
    return CopyGroup(
        name=name,
        direction=direction[1] if direction else "",
        is_pageable=is_pageable if is_pinned or is_pageable else None,
        count=len(rows),
        device_seconds=float(trace.duration_ns[rows].sum()) / SECOND_NS,
        exposed_seconds=float(when.total_ns - hiding.within(when.start_ns, when.end_ns).sum()) / SECOND_NS,
        moved_bytes=int(known.sum()) if len(known) else None,
        largest_bytes=int(known.max()) if len(known) else None,
        large_count=int((known >= LARGE_BYTES).sum()),
        blocked_seconds=float(trace.duration_ns[calls].sum()) / SECOND_NS,
        stalled_seconds=float(timeline.idle.within(issuing.start_ns, issuing.end_ns).sum()) / SECOND_NS,
    )
