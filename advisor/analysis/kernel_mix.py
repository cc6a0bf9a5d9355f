"""A device's kernels → what they do, by their names: kinds, precisions, and the largest of them."""

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, device_timeline
from advisor.analysis.distinct import distinct, median
from advisor.model.kernels import TINY_MATMUL_SECONDS, KernelMix, KernelRow
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import KinetoTrace

TOP_COUNT = 20
"""Kernels that a mix lists; the rest is in the sums."""


def kernel_mix(trace: KinetoTrace, breakdown: StepBreakdown) -> KernelMix | None:
    """The kernels of the breakdown's device; None where it has none."""
    if breakdown.device_index is None:
        return None
    timeline = device_timeline(trace, breakdown.device_index)
    kernels = timeline.rows[timeline.is_kernel]
    if not len(kernels):
        return None
    position, names = timeline.kernel_names()
    codes = distinct(trace.name[kernels])
    seconds = trace.duration_ns[kernels] / SECOND_NS
    per_name = np.bincount(position, weights=seconds, minlength=len(names))
    count_per_name = np.bincount(position, minlength=len(names))
    is_tiny = np.fromiter((name.kind == "matmul" for name in names), bool, len(names))[position]
    is_tiny &= seconds < TINY_MATMUL_SECONDS
    is_collective = np.fromiter((name.kind == "communication" for name in names), bool, len(names))[position]
    computing = seconds[~is_collective]

    def total(attribute: str) -> tuple[float, int]:
        chosen = np.fromiter((getattr(name, attribute) for name in names), bool, len(names))
        return float(per_name[chosen].sum()), int(count_per_name[chosen].sum())

    kinds = sorted({name.kind for name in names})
    by_kind = {kind: np.fromiter((name.kind == kind for name in names), bool, len(names)) for kind in kinds}
    fp32_seconds, fp32_count = total("is_fp32_product")
    bf16_seconds, bf16_count = total("is_bf16")
    layout_seconds, layout_count = total("is_layout")
    backward_count = total("is_backward")[1]
    properties = trace.device_properties(breakdown.device_index)
    return KernelMix(
        source=trace.source.at(f"device {breakdown.device_index}"),
        rank=trace.rank,
        device_index=breakdown.device_index,
        device_name=properties.name if properties is not None else "",
        capability=_capability(trace, breakdown.device_index),
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        kernel_count=len(kernels),
        device_seconds=float(seconds.sum()),
        median_kernel_seconds=median(computing) if len(computing) else 0.0,
        seconds=tuple((kind, float(per_name[chosen].sum())) for kind, chosen in by_kind.items()),
        counts=tuple((kind, int(count_per_name[chosen].sum())) for kind, chosen in by_kind.items()),
        fp32_matmul_seconds=fp32_seconds,
        fp32_matmul_count=fp32_count,
        tensor_core_seconds=total("uses_tensor_cores")[0],
        tiny_matmul_seconds=float(seconds[is_tiny].sum()),
        tiny_matmul_count=int(is_tiny.sum()),
        layout_seconds=layout_seconds,
        layout_count=layout_count,
        fused_attention_count=int(count_per_name[by_kind["attention"]].sum() if "attention" in by_kind else 0),
        bf16_seconds=bf16_seconds,
        bf16_count=bf16_count,
        backward_ratio=backward_count / len(kernels),
        top=tuple(
            KernelRow(
                name=trace.names[codes[place]],
                kind=names[place].kind,
                count=int(count_per_name[place]),
                device_seconds=float(per_name[place]),
            )
            for place in per_name.argsort(kind="stable")[::-1][:TOP_COUNT]
        ),
    )


_ARCHITECTURES = (
    ("sm100", "10.0"),
    ("sm90", "9.0"),
    ("ampere_", "8.0"),
    ("sm80", "8.0"),
    ("cutlass_80", "8.0"),
    ("turing_", "7.5"),
    ("volta_", "7.0"),
)
"""What libraries write into the names of kernels that a card of at least this capability runs."""


def _capability(trace: KinetoTrace, device: int) -> str:
    """The capability by the device's properties, else the least that its kernels' names show; empty if none.

    AMD's properties carry two such numbers too (9, 4 of gfx942); they are no compute capability and
    left out.
    """
    properties = trace.device_properties(device)
    if properties is not None and properties.name and properties.compute_major is not None:
        is_amd = any(word in properties.name for word in ("AMD", "Radeon", "Instinct"))
        return "" if is_amd else f"{properties.compute_major}.{properties.compute_minor or 0}"
    if any("Cijk_" in name or name.startswith("hip") for name in trace.names):
        return ""
    shown = [capability for part, capability in _ARCHITECTURES if any(part in name for name in trace.names)]
    return shown[0] if shown else ""
