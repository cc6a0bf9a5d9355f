"""Marks and kernels of a trace → whether it shows token generation, and of how many sequences."""

import re

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, device_timeline
from advisor.analysis.steps import annotations
from advisor.model.kernels import DecodeSigns, OperatorCosts
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import KinetoTrace

FEW_ROWS = 64
"""Rows of a product up to which it is limited by reading its weights on every card in use."""

_ENGINE_MARK = re.compile(
    r"\bDECODE\b.{0,40}?\bbs=(?P<batch>\d+)|"  # SGLang
    r"^execute_.{0,40}?context_(?P<prompts>\d+)\(.*?generation_(?P<sequences>\d+)\("  # vLLM
)


def decode_signs(trace: KinetoTrace, breakdown: StepBreakdown, costs: OperatorCosts | None) -> DecodeSigns | None:
    """What of the breakdown's device shows generation; None without a device."""
    if breakdown.device_index is None:
        return None
    timeline = device_timeline(trace, breakdown.device_index)
    position, names = timeline.kernel_names()
    seconds = timeline.duration_ns[timeline.is_kernel] / SECOND_NS
    mark, batch, count, prompts = _marks(trace)
    by_name = np.bincount(position, weights=seconds, minlength=len(names)).tolist()
    counts = np.bincount(position, minlength=len(names)).tolist()

    def total(kind: str, attribute: str = "") -> float:
        return sum(
            float(spent)
            for name, spent in zip(names, by_name, strict=True)
            if name.kind == kind and (not attribute or getattr(name, attribute))
        )

    few = sum(
        product.device_seconds
        for product in (costs.matmuls if costs is not None and costs.is_device_time else ())
        if product.rows <= FEW_ROWS
    )
    return DecodeSigns(
        source=trace.source.at(f"device {breakdown.device_index}"),
        rank=trace.rank,
        mark=mark,
        sequence_count=batch,
        step_count=count,
        has_prefill=prompts,
        paged_attention_count=sum(count for name, count in zip(names, counts, strict=True) if name.is_paged),
        vector_matmul_seconds=max(few, total("matmul", "is_vector_product")),
        matmul_seconds=total("matmul"),
        attention_seconds=total("attention"),
        device_seconds=float(seconds.sum()),
    )


def _marks(trace: KinetoTrace) -> tuple[str, int | None, int, bool]:
    """The first mark of generation, its sequences, how many marks, and whether prompts are marked."""
    first, batch, count, prompts = "", None, 0, False
    for row in annotations(trace, _ENGINE_MARK.search).tolist():
        text = trace.name_of(row)
        found = _ENGINE_MARK.search(text)
        if found is None:
            continue
        prompts |= int(found["prompts"] or 0) > 0
        sequences = int(found["batch"] or found["sequences"] or 0)
        if sequences:
            count += 1
            if not first:
                first, batch = text, sequences
    return first, batch, count, prompts
