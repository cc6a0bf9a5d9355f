"""Where the time of each device went: a partition of the trace's window, and what sets the pace."""

import re

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, DeviceTimeline, device_timeline, window
from advisor.analysis.distinct import distinct, median
from advisor.analysis.host_time import idle_by_cause
from advisor.analysis.processor_breakdown import NOTE, processor_parts
from advisor.analysis.steps import steps
from advisor.analysis.time_sets import TimeSet
from advisor.model.step_time import PARTS, Bound, StepBreakdown
from advisor.model.trace import Category, KinetoTrace

LEAST_ACTIVITY_COUNT = 20
"""Kernels and copies: below this a trace shows a call or two and no loop."""

LEAST_WINDOW_SECONDS = 1e-3
"""Below a millisecond a trace shows less than a step of anything that is trained or served."""

BUSY_COMPUTING_RATIO = 0.7
"""Of the window: a device that computes for this share is paced by that, whatever else is lost."""

PACING_RATIO = 0.15
"""Of the window: a loss of this share, if it is half of all losses, sets the pace of a device that
computes less than that."""

LEAST_LAUNCHED_RATIO = 0.5
"""Of the kernels: with fewer launches recorded, the host's side of the trace is missing."""

LEAST_NOTED_RATIO = 0.01
"""Of the window, idle inside calls of one kind: less than a hundredth explains nothing."""

OTHER_CAUSES = {
    "queued": "with work already issued, so that the device waited for another stream, another rank or the hardware",
    "copying": "while the host copied from ordinary host memory",
    "allocating": "while the host obtained memory from the driver or gave it back",
    "loading": "while the host loaded kernels' code",
}
"""What counts as other idle time, of `idle_by_cause`, in words."""

_TO_DEVICE = re.compile(r"HtoD").search
_TO_HOST = re.compile(r"DtoH").search


def step_breakdown(trace: KinetoTrace) -> tuple[StepBreakdown, ...]:
    """One breakdown a device with activity, the busiest first; without activity one without parts.

    Every moment of the window (first start to last end of anything that is recorded, Python's
    frames and the profiler's own rows left out) is counted once, in this order: kernels that
    compute, collectives, copies and fills; of the moments without any of these and without work
    waiting on the device, those in which the host fetched a batch, waited for the device's results,
    issued work; and the rest, to which the calls belong in which it copied from pageable memory,
    obtained driver memory or loaded code: nothing was launched in them.
    """
    devices = trace.active_devices()
    if not devices:
        return (_without_device(trace),)
    found = [_of_device(trace, device_timeline(trace, device)) for device in devices]
    return tuple(sorted(found, key=lambda item: -(item.busy_ratio or 0)))


def _of_device(trace: KinetoTrace, timeline: DeviceTimeline) -> StepBreakdown:
    idle_ns = idle_by_cause(trace, timeline)
    parts_ns = _parts(timeline, idle_ns)
    window_ns = sum(parts_ns.values())
    parts = {name: parts_ns[name] / window_ns if window_ns else 0.0 for name in PARTS}
    notes = (*_notes(trace, timeline, window_ns), *_other_notes(idle_ns, window_ns))
    is_degenerate = _is_degenerate(timeline, window_ns)
    return StepBreakdown(
        source=trace.source.at(f"device {timeline.device}"),
        rank=trace.rank,
        gaps=trace.gaps,
        device_index=timeline.device,
        window_seconds=window_ns / SECOND_NS,
        step_count=len(steps(trace).start_ns),
        step_seconds=_step_seconds(trace),
        busy_ratio=timeline.busy.total_ns / window_ns if window_ns else None,
        parts=parts if window_ns else {},
        seconds={name: parts_ns[name] / SECOND_NS for name in PARTS} if window_ns else {},
        bound=Bound.UNKNOWN if is_degenerate else _bound(timeline, parts),
        notes=notes,
    )


def _parts(timeline: DeviceTimeline, idle_ns: dict[str, int]) -> dict[str, int]:
    """Nanoseconds by part; they sum to the window, none is negative."""
    computing = timeline.computing.total_ns
    kernels = _either(timeline.computing, timeline.communicating).total_ns
    busy = timeline.busy.total_ns
    return {
        "compute": computing,
        "exposed_communication": kernels - computing,
        "exposed_copies": busy - kernels,
        "input_wait": idle_ns["fetching"],
        "synchronization": idle_ns["waiting"],
        "launch": idle_ns["issuing"],
        "other_idle": timeline.idle.total_ns - idle_ns["fetching"] - idle_ns["waiting"] - idle_ns["issuing"],
    }


def _either(*sets: TimeSet) -> TimeSet:
    return TimeSet.union(
        np.concatenate([item.start_ns for item in sets]),
        np.concatenate([item.end_ns for item in sets]),
    )


def _bound(timeline: DeviceTimeline, parts: dict[str, float]) -> Bound:
    if parts["compute"] >= BUSY_COMPUTING_RATIO:
        return Bound.COMPUTE
    largest = max((name for name in PARTS if name != "compute"), key=lambda name: parts[name])
    if parts[largest] < max(PACING_RATIO, (1 - parts["compute"]) / 2):
        return Bound.UNKNOWN
    return {
        "exposed_communication": Bound.COMMUNICATION,
        "exposed_copies": _of_copies(timeline),
        "input_wait": Bound.INPUT,
        "synchronization": Bound.HOST,
        "launch": Bound.LAUNCH,
        "other_idle": Bound.HOST if timeline.has_launch.any() else Bound.UNKNOWN,
    }[largest]


def _of_copies(timeline: DeviceTimeline) -> Bound:
    """Copies to the device bring its input, to the host it waits for them; others move memory."""
    taken = {Bound.INPUT: 0, Bound.HOST: 0, Bound.MEMORY: 0}
    rows = timeline.rows[timeline.is_copy]
    trace = timeline.trace
    for code in distinct(trace.name[rows]).tolist():
        name = trace.names[code]
        kind = Bound.INPUT if _TO_DEVICE(name) else Bound.HOST if _TO_HOST(name) else Bound.MEMORY
        taken[kind] += int(trace.duration_ns[rows[trace.name[rows] == code]].sum())
    return max(taken, key=lambda kind: taken[kind])


def _is_degenerate(timeline: DeviceTimeline, window_ns: int) -> bool:
    few = len(timeline.rows) < LEAST_ACTIVITY_COUNT
    return few or window_ns < LEAST_WINDOW_SECONDS * SECOND_NS


def _notes(trace: KinetoTrace, timeline: DeviceTimeline, window_ns: int) -> tuple[str, ...]:
    notes = []
    if _is_degenerate(timeline, window_ns):
        notes.append(f"only {len(timeline.rows)} kernels and copies in {window_ns / 1e6:.3g} ms are recorded: too little to judge a job by")
    launched = timeline.has_launch[timeline.is_kernel]
    if not timeline.has_launch.any():
        notes.append("no launches are recorded, so idle time cannot be split by what the host did")
    elif len(launched) and launched.mean() < LEAST_LAUNCHED_RATIO:
        notes.append(f"launches are recorded for only {launched.mean():.0%} of the kernels, so the split of idle time is rough")
    if trace.is_truncated:
        notes.append("the trace is cut off, so its last steps are missing")
    return tuple(notes)


def _other_notes(idle_ns: dict[str, int], window_ns: int) -> tuple[str, ...]:
    """What the other idle time is, as far as it is known."""
    known = [(words, idle_ns[name]) for name, words in OTHER_CAUSES.items() if idle_ns[name] >= LEAST_NOTED_RATIO * window_ns > 0]
    return tuple(f"of the idle time for other reasons, {took_ns / 1e6:.3g} ms passed {words}" for words, took_ns in known)


def _step_seconds(trace: KinetoTrace) -> float | None:
    marked = steps(trace)
    if not len(marked.start_ns):
        return None
    return median(marked.end_ns - marked.start_ns) / SECOND_NS


def _without_device(trace: KinetoTrace) -> StepBreakdown:
    start, end = window(trace)
    parts_ns = processor_parts(trace) if end > start else {}
    if trace.has_launches and not trace.mask_of(Category.CONTROL).any():
        note = "launches are recorded and no kernels: the profiler could not read the device, so nothing can be said about how busy it was"
    elif parts_ns:
        note = NOTE
    else:
        note = "no device activity is recorded: nothing can be said about how busy a device was"
    return StepBreakdown(
        source=trace.source,
        rank=trace.rank,
        gaps=trace.gaps,
        device_index=None,
        window_seconds=(end - start) / SECOND_NS,
        step_count=len(steps(trace).start_ns),
        step_seconds=_step_seconds(trace),
        busy_ratio=None,
        parts={name: parts_ns[name] / (end - start) for name in parts_ns},
        seconds={name: parts_ns[name] / SECOND_NS for name in parts_ns},
        bound=Bound.UNKNOWN,
        notes=(note,),
    )
