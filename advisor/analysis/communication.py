"""A device's collectives → by kind: how often, how long, and what no computation hides."""

import re

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, device_timeline
from advisor.analysis.distinct import distinct_places
from advisor.analysis.time_sets import TimeSet
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import KinetoTrace
from advisor.model.waits import CollectiveGroup, Communication

_COLLECTIVES = (
    ("all_reduce", r"all_?reduce|cross_device_reduce"),
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_gather", r"all_?gather"),
    ("all_to_all", r"all_?to_?all"),
    ("send_recv", r"send_?recv"),
    ("broadcast", r"broadcast"),
    ("reduce", r"reduce"),
)
_TESTS = tuple((name, re.compile(pattern, re.IGNORECASE).search) for name, pattern in _COLLECTIVES)


def communication(trace: KinetoTrace, breakdown: StepBreakdown) -> Communication | None:
    """The collectives of the breakdown's device; None where it has none."""
    if breakdown.device_index is None:
        return None
    timeline = device_timeline(trace, breakdown.device_index)
    rows = timeline.rows[timeline.is_collective]
    if not len(rows):
        return None
    hiding = timeline.computing
    codes, position = distinct_places(trace.name[rows])
    kinds = [collective_of(trace.names[code]) for code in codes]
    groups = []
    for kind in sorted(set(kinds)):
        chosen = rows[np.array([each == kind for each in kinds])[position]]
        when = TimeSet.union(trace.start_ns[chosen], trace.ends_ns(chosen))
        sizes = trace.moved_bytes[chosen]
        known = sizes[sizes >= 0]
        groups.append(
            CollectiveGroup(
                name=kind,
                count=len(chosen),
                device_seconds=when.total_ns / SECOND_NS,
                exposed_seconds=_exposed_seconds(when, hiding),
                moved_bytes=int(known.sum()) if len(known) else None,
            )
        )
    return Communication(
        source=trace.source.at(f"device {breakdown.device_index}"),
        rank=trace.rank,
        device_index=breakdown.device_index,
        world_size=trace.world_size,
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        device_seconds=timeline.communicating.total_ns / SECOND_NS,
        exposed_seconds=_exposed_seconds(timeline.communicating, hiding),
        groups=tuple(sorted(groups, key=lambda group: -group.exposed_seconds)),
    )


def _exposed_seconds(when: TimeSet, hiding: TimeSet) -> float:
    return float(when.total_ns - hiding.within(when.start_ns, when.end_ns).sum()) / SECOND_NS


def collective_of(kernel: str) -> str:
    """The collective that a kernel's name says; the name itself, cut, where it says none."""
    return next((name for name, test in _TESTS if test(kernel)), kernel[:60])
