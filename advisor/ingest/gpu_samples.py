"""Repeated readings of the same GPUs (nvidia-smi -l) as one: the most telling sample of each."""

from advisor.model.dataclass import replace
from advisor.model.node import GpuReading

_TELLING = frozenset({"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake", "sw_thermal_slowdown"})


def most_telling(samples: list[GpuReading]) -> tuple[tuple[GpuReading, ...], tuple[str, ...]]:
    """One reading a GPU, and a gap where samples were left out.

    Of several samples of a GPU the one with a slowdown reason stays, then the busiest: a fault
    shows under load only.
    """
    chosen: dict[str, GpuReading] = {}
    sample_counts: dict[str, int] = {}
    for sample in samples:
        identity = sample.uuid or sample.bus_id or f"#{sample.index}"
        sample_counts[identity] = sample_counts.get(identity, 0) + 1
        if identity not in chosen or _weight(sample) > _weight(chosen[identity]):
            chosen[identity] = sample
    most = max(sample_counts.values(), default=0)
    gaps = (f"{most:,} samples of a GPU; the one with a slowdown reason, else the busiest, is read",) if most > 1 else ()
    if most <= 1:
        return tuple(samples), gaps
    return tuple(replace(gpu, index=place) for place, gpu in enumerate(chosen.values())), gaps


def _weight(sample: GpuReading) -> tuple[bool, float]:
    return (
        bool(_TELLING.intersection(sample.clock_event_reasons or ())),
        -1.0 if sample.gpu_utilization_ratio is None else sample.gpu_utilization_ratio,
    )
