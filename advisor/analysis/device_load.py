"""Whether a GPU was at work when it was read, and how far clocks and link were from their best.

An idle GPU lowers its clocks and its PCIe generation on purpose; only under load do they say
anything.
"""

import enum

from advisor.model.node import GpuReading

LOADED_RATIO = 0.5
"""Utilization, ratio of the last second: from half of it on a kernel is running more often than
not."""

LOADED_POWER_RATIO = 0.5
"""Power over its limit: where utilization is hidden (MIG), no idle card draws half of its limit."""

LOWEST_LOADED_STATE = 7
"""Performance states P8 and beyond are the driver's idle and video states, whatever is
displayed."""

_LANE_BYTES = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9, 7: 15.1e9}
"""Bytes per second, lane and direction by PCIe generation, after line coding (PCI-SIG)."""


class Load(enum.Enum):
    """What the GPU was doing at the moment of the reading."""

    LOADED = "loaded"
    IDLE = "idle"
    UNKNOWN = "unknown"


def load_of(gpu: GpuReading) -> Load:
    """Whether a GPU was loaded; UNKNOWN where neither utilization nor power tells."""
    if gpu.is_lost:
        return Load.UNKNOWN
    if "gpu_idle" in (gpu.clock_event_reasons or ()) or _is_low_state(gpu):
        return Load.IDLE
    if gpu.gpu_utilization_ratio is not None:
        return Load.LOADED if gpu.gpu_utilization_ratio >= LOADED_RATIO else Load.IDLE
    power = power_ratio(gpu)
    return Load.LOADED if power is not None and power >= LOADED_POWER_RATIO else Load.UNKNOWN


def clock_ratio(gpu: GpuReading) -> float | None:
    """SM clock over its maximum, 0 to 1; None where either is unknown."""
    return _ratio(gpu.sm_clock_mhz, gpu.max_sm_clock_mhz)


def memory_clock_ratio(gpu: GpuReading) -> float | None:
    """Memory clock over its maximum, 0 to 1; None where either is unknown."""
    return _ratio(gpu.memory_clock_mhz, gpu.max_memory_clock_mhz)


def power_ratio(gpu: GpuReading) -> float | None:
    """Power drawn over the enforced limit; None where either is unknown."""
    if gpu.power_watts is None or not gpu.power_limit_watts:
        return None
    return gpu.power_watts / gpu.power_limit_watts


def limit_ratio(gpu: GpuReading) -> float | None:
    """The enforced power limit over the card's default; None where either is unknown."""
    if gpu.power_limit_watts is None or not gpu.default_power_limit_watts:
        return None
    return gpu.power_limit_watts / gpu.default_power_limit_watts


def link_ratio(gpu: GpuReading) -> float | None:
    """Bytes per second of the PCIe link as it runs over those of its best, 0 to 1.

    None where any of it is unknown.
    """
    now = link_bandwidth(gpu.pcie_generation, gpu.pcie_width)
    best = link_bandwidth(gpu.max_pcie_generation, gpu.max_pcie_width)
    return None if now is None or not best else min(1.0, now / best)


def link_bandwidth(generation: int | None, width: int | None) -> float | None:
    """Bytes per second and direction of a PCIe link; None for an unknown generation or width."""
    lane = _LANE_BYTES.get(generation) if generation is not None else None
    return None if lane is None or width is None else lane * width


def _is_low_state(gpu: GpuReading) -> bool:
    state = (gpu.performance_state or "").removeprefix("P")
    return state.isdigit() and int(state) > LOWEST_LOADED_STATE


def _ratio(now: float | None, most: float | None) -> float | None:
    return None if now is None or not most else min(1.0, now / most)
