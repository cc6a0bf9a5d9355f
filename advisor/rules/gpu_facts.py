"""What the rules about devices share: how a GPU is named, where it was read, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.device_load import clock_ratio, power_ratio
from advisor.model.finding import Impact, Observation
from advisor.rules.step_evidence import step_impact
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.evidence import Source
    from advisor.model.node import GpuReading, NodeReading
    from advisor.model.step_time import StepBreakdown

MOST_FACTS = 8
"""GPUs whose facts are listed one by one; a node has eight as a rule."""


def gpu_text(gpu: GpuReading) -> str:
    """Name a GPU: "GPU 3 (NVIDIA H100 80GB HBM3)"."""
    return f"GPU {gpu.index} ({gpu.name})" if gpu.name else f"GPU {gpu.index}"


def gpus_text(gpus: Sequence[GpuReading]) -> str:
    """The first by name, the others by number: "GPU 3 (NVIDIA L4) and GPUs 5, 6"."""
    others = ", ".join(str(gpu.index) for gpu in gpus[1 : MOST_FACTS + 1])
    more = f" and {len(gpus) - MOST_FACTS - 1} more" if len(gpus) > MOST_FACTS + 1 else ""
    noun = "GPU" if len(gpus) == 2 else "GPUs"  # noqa: PLR2004 - one other is singular
    return gpu_text(gpus[0]) + (f" and {noun} {others}{more}" if others else "")


def gpu_source(reading: NodeReading, gpu: GpuReading) -> Source:
    """Where a GPU stands in its reading."""
    return reading.source.at(f"GPU {gpu.index}")


def clock_text(gpu: GpuReading) -> str:
    """Say "SM clock 1,200 of at most 1,980 MHz", or what of it is unknown."""
    if gpu.sm_clock_mhz is None:
        return "its clock is not in the reading"
    if gpu.max_sm_clock_mhz is None:
        return f"SM clock {gpu.sm_clock_mhz:,.0f} MHz"
    return f"SM clock {gpu.sm_clock_mhz:,.0f} of at most {gpu.max_sm_clock_mhz:,.0f} MHz"


def clock_facts(reading: NodeReading, gpus: Sequence[GpuReading]) -> tuple[Observation, ...]:
    """The clock of each GPU as a ratio of its maximum, where the reading has both."""
    return tuple(
        Observation(
            statement=f"GPU {gpu.index}: {clock_text(gpu)}",
            value=clock_ratio(gpu),
            unit="ratio",
            source=gpu_source(reading, gpu),
        )
        for gpu in gpus[:MOST_FACTS]
        if clock_ratio(gpu) is not None
    )


def power_text(gpu: GpuReading) -> str:
    """Say "412 of 700 W (59%)", or "power unknown"."""
    if gpu.power_watts is None or gpu.power_limit_watts is None:
        return "power unknown"
    ratio = power_ratio(gpu)
    share = f" ({ratio_text(ratio)})" if ratio is not None else ""
    return f"{gpu.power_watts:.0f} of {gpu.power_limit_watts:.0f} W{share}"


def clock_impact(gpu: GpuReading, breakdown: StepBreakdown | None) -> Impact:
    """The most that the full clock could win: computing time times what is missing of it.

    A ceiling: kernels that wait for memory do not follow the SM clock. Unknown without a trace of
    steps or without both clocks.
    """
    ratio = clock_ratio(gpu)
    if breakdown is None or ratio is None or "compute" not in breakdown.seconds:
        return Impact()
    return step_impact(breakdown, breakdown.seconds["compute"] * (1.0 - ratio))


def slowest_first(gpus: Sequence[GpuReading]) -> list[GpuReading]:
    """By their share of the highest clock, the slowest first; unknown ones last."""
    return sorted(gpus, key=lambda gpu: (clock_ratio(gpu) is None, clock_ratio(gpu) or 0.0, gpu.index))
