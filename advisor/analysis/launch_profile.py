"""A device's kernels and the host calls that launched them → whether launches set the pace."""

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, device_timeline
from advisor.analysis.distinct import distinct, median
from advisor.analysis.time_sets import TimeSet
from advisor.model.kernels import LaunchProfile
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import Category, KinetoTrace

LEAST_JOINED_RATIO = 0.5
"""Of the kernels: with fewer recorded launches the profile would be about a part of the device's
work."""

SAMPLE_COUNT = 100_000
"""Events of a kind that are looked up to estimate the profiler's share."""

BURST_NS = 1_000_000
"""Nanoseconds: launches of a thread farther apart than a millisecond have something else
between."""

PROFILER_NS = {Category.OPERATOR: 2_000, Category.RUNTIME: 2_000, Category.DRIVER: 2_000, Category.PYTHON: 300}
"""Nanoseconds that the profiler itself takes for each recorded event, about: one to three microseconds for an operator (with its
shapes) and for a call of the runtime, a third of one for a Python frame."""


def launch_profile(trace: KinetoTrace, breakdown: StepBreakdown) -> LaunchProfile | None:
    """The launches of the breakdown's device; None where most of its kernels have none recorded."""
    if breakdown.device_index is None:
        return None
    timeline = device_timeline(trace, breakdown.device_index)
    is_kernel = timeline.is_kernel
    joined = is_kernel & timeline.has_launch
    if not is_kernel.any() or joined.sum() < LEAST_JOINED_RATIO * is_kernel.sum():
        return None
    start, launched = timeline.start_ns, timeline.launch_start_ns
    # The device had nothing left from the end of all earlier work; before its first, it has no past.
    done = np.maximum.accumulate(timeline.end_ns)
    ran_dry = np.concatenate(([start[0]], done[:-1]))
    gap = np.maximum(0, start - ran_dry)
    starved = joined & (launched >= ran_dry) & (gap > 0)
    calls = distinct(timeline.launch[joined])
    graph_kernels = timeline.from_graph & joined
    short = starved & (gap < BURST_NS)
    return LaunchProfile(
        source=trace.source.at(f"device {breakdown.device_index}"),
        rank=trace.rank,
        device_index=breakdown.device_index,
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        kernel_count=int(joined.sum()),
        launch_count=len(calls),
        graph_launch_count=len(distinct(timeline.launch[graph_kernels])),
        graph_kernel_ratio=float(graph_kernels.sum() / joined.sum()),
        median_kernel_seconds=median(timeline.duration_ns[joined]) / SECOND_NS,
        median_launch_seconds=median(trace.duration_ns[calls]) / SECOND_NS,
        median_launch_interval_seconds=_median_interval(trace, calls),
        median_queue_seconds=median((start - launched)[joined]) / SECOND_NS,
        starved_ratio=float(starved.sum() / joined.sum()),
        starved_seconds=float(gap[starved].sum()) / SECOND_NS,
        short_gap_seconds=float(gap[short].sum()) / SECOND_NS,
        profiler_seconds=_profiler_seconds(trace, TimeSet.union(ran_dry[short], start[short])),
        unlaunched_count=int(is_kernel.sum() - joined.sum()),
        has_python=trace.has_python,
    )


def _profiler_seconds(trace: KinetoTrace, gaps: TimeSet) -> float:
    """What recording the events that begin in some gaps took, about; never more than the gaps."""
    taken = 0.0
    for category, each_ns in PROFILER_NS.items():
        begun = trace.start_ns[trace.mask_of(category)]
        # An estimate needs no more than a sample.
        each = max(1, len(begun) // SAMPLE_COUNT)
        begun = begun[::each]
        place = np.searchsorted(gaps.start_ns, begun, side="right") - 1
        inside = (place >= 0) & (begun < gaps.end_ns[np.maximum(place, 0)]) if len(gaps.start_ns) else place > 0
        taken += float(inside.sum()) * each * each_ns
    return min(taken, float(gaps.total_ns)) / SECOND_NS


def _median_interval(trace: KinetoTrace, calls: "np.typing.NDArray[np.intp]") -> float | None:
    """Between successive launches of one thread within a burst, seconds; None with no such pair."""
    order = calls[np.lexsort((trace.start_ns[calls], trace.thread[calls]))]
    apart = np.diff(trace.start_ns[order])
    counts = (np.diff(trace.thread[order]) == 0) & (apart < BURST_NS)
    return median(apart[counts]) / SECOND_NS if counts.any() else None
