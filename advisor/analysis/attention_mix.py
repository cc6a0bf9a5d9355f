"""A trace's operators → how attention was computed: fused, or as product, softmax, product."""

import re
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, DeviceTimeline, device_timeline
from advisor.analysis.distinct import distinct
from advisor.analysis.named_events import named_rows, passing
from advisor.analysis.operator_work import tensor_bytes
from advisor.analysis.time_sets import TimeSet
from advisor.model.kernels import AttentionMix
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Indices

_BATCHED = re.compile(r"^aten::(?:bmm|baddbmm)$").match
_EITHER = re.compile(r"^aten::(?:mm|addmm|bmm|baddbmm|_softmax|_softmax_backward_data)$").match
_SOFTMAX = re.compile(r"^aten::(?:_softmax|_softmax_backward_data)$").match
_FUSED = re.compile(
    r"^aten::_scaled_dot_product_(?:flash|efficient|cudnn|fused)\w*attention(?:_for_cpu)?(?:_backward)?$|"
    r"^flash_attn::|efficient_attention|flash_attention"
).search
_MATH = re.compile(r"^aten::_scaled_dot_product_attention_math\w*$").match


def attention_mix(trace: KinetoTrace, breakdown: StepBreakdown) -> AttentionMix | None:
    """Attention as the operators show it; None where no operators are recorded.

    A softmax counts as attention where the nearest matrix product before it and the nearest after it,
    on its thread, are both batched: a router or a loss has linear layers around it.
    """
    if not trace.mask_of(Category.OPERATOR).any():
        return None
    rows = named_rows(trace, _EITHER, Category.OPERATOR)
    rows = rows[trace.thread[rows].argsort(kind="stable")]
    is_softmax = passing(trace, _SOFTMAX)[trace.name[rows]]
    is_batched = passing(trace, _BATCHED)
    before, after = _nearest(~is_softmax)
    middle = (is_softmax & (before >= 0) & (after >= 0)).nonzero()[0]
    first, last = rows[before[middle]], rows[after[middle]]
    thread = trace.thread[rows[middle]]
    attends = is_batched[trace.name[first]] & is_batched[trace.name[last]]
    attends &= (trace.thread[first] == thread) & (trace.thread[last] == thread)
    softmaxes = rows[middle][attends]
    spent, whole = _seconds(trace, breakdown, first[attends], last[attends])
    return AttentionMix(
        source=trace.source.at("operators"),
        rank=trace.rank,
        unfused_count=len(softmaxes),
        unfused_seconds=spent,
        fused_count=len(named_rows(trace, _FUSED, Category.OPERATOR)),
        math_count=len(named_rows(trace, _MATH, Category.OPERATOR)),
        scores_bytes=_scores_bytes(trace, softmaxes),
        device_seconds=whole,
    )


def _nearest(is_product: "np.typing.NDArray[np.bool_]") -> tuple["Indices", "Indices"]:
    """For each position the nearest product before and after it; -1 without one."""
    positions = np.arange(len(is_product))
    before = np.maximum.accumulate(np.where(is_product, positions, -1))
    far = len(is_product)
    after = np.minimum.accumulate(np.where(is_product, positions, far)[::-1])[::-1]
    return before, np.where(after < far, after, -1)


def _seconds(
    trace: KinetoTrace,
    breakdown: StepBreakdown,
    first: "Indices",
    last: "Indices",
) -> tuple[float, float]:
    """Time between first and last products, and of everything; of kernels, else of operators."""
    if breakdown.device_index is None:
        spans = TimeSet.union(trace.start_ns[first], trace.ends_ns(last))
        operators = trace.mask_of(Category.OPERATOR).nonzero()[0]
        whole = TimeSet.union(trace.start_ns[operators], trace.ends_ns(operators))
        return spans.total_ns / SECOND_NS, whole.total_ns / SECOND_NS
    timeline = device_timeline(trace, breakdown.device_index)
    durations = timeline.duration_ns
    computes = timeline.is_kernel & ~timeline.is_collective
    whole_seconds = float(durations[computes].sum()) / SECOND_NS
    inside = np.zeros(len(durations), dtype=bool)
    for thread in distinct(trace.thread[first]).tolist():
        chosen = trace.thread[first] == thread
        inside |= _launched_in(timeline, thread, first[chosen], last[chosen])
    return float(durations[inside & computes].sum()) / SECOND_NS, whole_seconds


def _launched_in(timeline: DeviceTimeline, thread: int, first: "Indices", last: "Indices") -> "np.typing.NDArray[np.bool_]":
    """Which of the device's activities one thread launched between the first and last products."""
    trace = timeline.trace
    spans = TimeSet.union(trace.start_ns[first], trace.ends_ns(last))
    launched = timeline.launch_start_ns
    place = np.searchsorted(spans.start_ns, launched, side="right") - 1
    inside = (place >= 0) & (launched < spans.end_ns[np.maximum(place, 0)])
    own = timeline.has_launch & (trace.thread[np.maximum(timeline.launch, 0)] == thread)
    launched_inside: np.typing.NDArray[np.bool_] = inside & own
    return launched_inside


def _scores_bytes(trace: KinetoTrace, softmaxes: "Indices") -> int | None:
    """The largest first argument of the softmaxes; None without recorded shapes."""
    recorded = softmaxes[(trace.shapes[softmaxes] >= 0) & (trace.types[softmaxes] >= 0)]
    pairs = set(zip(trace.shapes[recorded].tolist(), trace.types[recorded].tolist(), strict=True))
    sizes = (tensor_bytes(trace.shape_texts[shape], trace.type_texts[kind]) for shape, kind in pairs)
    return max((size for size in sizes if size is not None), default=None)
