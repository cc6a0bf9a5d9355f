"""The optimizer's marks → what updates cost on host and device, and in how many kernels."""

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, DeviceTimeline, device_timeline
from advisor.analysis.distinct import distinct_places
from advisor.analysis.kernel_names import read_kernel_name
from advisor.analysis.steps import OPTIMIZER_STEP, optimizer_rows
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import Category, KinetoTrace
from advisor.model.waits import OptimizerSteps


def optimizer_steps(trace: KinetoTrace, breakdown: StepBreakdown) -> OptimizerSteps | None:
    """The outermost updates; None where none is marked."""
    marks = optimizer_rows(trace)
    if not len(marks):
        return None
    start, end = trace.start_ns[marks], trace.ends_ns(marks)
    found = OPTIMIZER_STEP.match(trace.name_of(int(marks[0])))
    host_seconds = float(trace.duration_ns[marks].sum()) / SECOND_NS
    device_seconds = exposed_seconds = None
    many = fused = 0
    if breakdown.device_index is None:
        kernel_count = _operators_inside(trace, start, end)
    else:
        timeline = device_timeline(trace, breakdown.device_index)
        mark = _mark_of(timeline, start, end)
        issued = mark >= 0
        kernel_count = int(issued.sum())
        if timeline.has_launch.any():
            device_seconds = float(timeline.duration_ns[issued].sum()) / SECOND_NS
            exposed_seconds = _idle_seconds(timeline, mark)
        codes, position = distinct_places(trace.name[timeline.rows[issued]])
        counts = np.bincount(position, minlength=len(codes))
        names = [read_kernel_name(trace.names[code]) for code in codes]
        many = sum(int(n) for name, n in zip(names, counts, strict=True) if name.is_multi_tensor)
        fused = sum(int(n) for name, n in zip(names, counts, strict=True) if name.is_fused_optimizer)
    return OptimizerSteps(
        source=trace.source.at("host"),
        rank=trace.rank,
        name=found["name"] if found else "optimizer",
        count=len(marks),
        host_seconds=host_seconds,
        device_seconds=device_seconds,
        exposed_seconds=exposed_seconds,
        kernel_count=kernel_count,
        multi_tensor_count=many,
        fused_count=fused,
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
    )


def _mark_of(
    timeline: DeviceTimeline,
    start: "np.typing.NDArray[np.int64]",
    end: "np.typing.NDArray[np.int64]",
) -> "np.typing.NDArray[np.intp]":
    """For each kernel the update inside which it was launched; -1 for others."""
    launched = timeline.launch_start_ns
    place = np.searchsorted(start, launched, side="right") - 1
    inside = (place >= 0) & (launched < end[np.maximum(place, 0)])
    inside &= timeline.has_launch & timeline.is_kernel & ~timeline.is_collective
    return np.where(inside, place, -1)


def _idle_seconds(timeline: DeviceTimeline, mark: "np.typing.NDArray[np.intp]") -> float:
    """Idle time of the device between the first and the last kernel of each update."""
    chosen = (mark >= 0).nonzero()[0]
    if not len(chosen):
        return 0.0
    order = chosen[mark[chosen].argsort(kind="stable")]
    first = np.concatenate(([0], np.diff(mark[order]).nonzero()[0] + 1))
    starts = np.minimum.reduceat(timeline.start_ns[order], first)
    ends = np.maximum.reduceat(timeline.end_ns[order], first)
    return float(timeline.idle.within(starts, ends).sum()) / SECOND_NS


def _operators_inside(trace: KinetoTrace, start: "np.typing.NDArray[np.int64]", end: "np.typing.NDArray[np.int64]") -> int:
    operators = trace.mask_of(Category.OPERATOR).nonzero()[0]
    begun = trace.start_ns[operators]
    place = np.searchsorted(start, begun, side="right") - 1
    return int(((place >= 0) & (begun < end[np.maximum(place, 0)])).sum())
