"""Builders of node evidence: a healthy H100 at work, whose fields can be replaced one by one."""

from typing import Any

from advisor.model.evidence import Source
from advisor.model.node import GpuReading, KernelEvent, KernelEventKind, KernelLog, NodeReading
from advisor.rules.samples import GIB

NODE = Source(path="nvidia-smi.txt")
DMESG = Source(path="dmesg.txt")


def a_gpu(**fields: Any) -> GpuReading:  # noqa: ANN401 - the fields of GpuReading
    """An H100 SXM under load and in order; any field can be replaced."""
    base: dict[str, Any] = {
        "index": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "bus_id": "00000000:19:00.0",
        "total_bytes": 80 * GIB,
        "used_bytes": 61 * GIB,
        "gpu_utilization_ratio": 0.98,
        "temperature_celsius": 61.0,
        "slowdown_celsius": 89.0,
        "power_watts": 610.0,
        "power_limit_watts": 700.0,
        "default_power_limit_watts": 700.0,
        "sm_clock_mhz": 1980.0,
        "max_sm_clock_mhz": 1980.0,
        "memory_clock_mhz": 2619.0,
        "max_memory_clock_mhz": 2619.0,
        "applications_sm_clock_mhz": 1980.0,
        "default_applications_sm_clock_mhz": 1980.0,
        "clock_event_reasons": (),
        "pcie_generation": 5,
        "max_pcie_generation": 5,
        "pcie_width": 16,
        "max_pcie_width": 16,
        "ecc_enabled": True,
        "ecc_uncorrected": 0,
        "ecc_uncorrected_lifetime": 0,
        "remapped_rows": 0,
        "remap_pending": False,
        "remap_failed": False,
        "mig_enabled": False,
        "performance_state": "P0",
    }
    return GpuReading(**(base | fields))


def an_idle_gpu(**fields: Any) -> GpuReading:  # noqa: ANN401 - the fields of GpuReading
    """The same card with nothing to do: low clocks and a slow link are its healthy state."""
    idle: dict[str, Any] = {
        "gpu_utilization_ratio": 0.0,
        "power_watts": 70.0,
        "sm_clock_mhz": 345.0,
        "temperature_celsius": 34.0,
        "clock_event_reasons": ("gpu_idle",),
        "pcie_generation": 1,
    }
    return a_gpu(**(idle | fields))


def a_node_reading(*gpus: GpuReading, **fields: Any) -> NodeReading:  # noqa: ANN401 - of NodeReading
    """A reading of these GPUs."""
    base: dict[str, Any] = {"source": NODE, "gpus": gpus, "driver_version": "550.54.15"}
    return NodeReading(**(base | fields))


def an_xid(xid: int, **fields: Any) -> KernelEvent:  # noqa: ANN401 - the fields of KernelEvent
    """An Xid of the card at 0000:19:00."""
    base: dict[str, Any] = {
        "kind": KernelEventKind.XID,
        "line": 812,
        "text": f"NVRM: Xid (PCI:0000:19:00): {xid}",
        "timestamp": "2025-01-21T02:21:33",
        "xid": xid,
        "bus_id": "0000:19:00",
    }
    return KernelEvent(**(base | fields))


def a_kernel_log(*events: KernelEvent, **fields: Any) -> KernelLog:  # noqa: ANN401 - the fields of KernelLog
    """A kernel log of 2,000 lines with these events."""
    counts: dict[str, int] = {}
    for event in events:
        for name in (event.kind.value, f"xid {event.xid}" if event.xid is not None else ""):
            if name:
                counts[name] = counts.get(name, 0) + 1
    base: dict[str, Any] = {"source": DMESG, "events": events, "line_count": 2000, "counts": counts}
    return KernelLog(**(base | fields))
