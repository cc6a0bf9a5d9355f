"""What a node says of itself: its GPUs' readings and its kernel's messages."""

import enum
from collections.abc import Mapping

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence
from advisor.model.failure import ProcessMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU at one moment, as nvidia-smi (or NVML) printed it; None is unknown or "N/A".

    Attributes:
        index: its position in the output, from 0.
        name / uuid / bus_id: identity.
        total_bytes / used_bytes / free_bytes / reserved_bytes: framebuffer memory.
        gpu_utilization_ratio / memory_utilization_ratio: 0 to 1.
        temperature_celsius / slowdown_celsius: now, and where slowdown begins.
        power_watts / power_limit_watts / default_power_limit_watts: drawn, enforced, factory.
        sm_clock_mhz / max_sm_clock_mhz / memory_clock_mhz / max_memory_clock_mhz / applications_sm_clock_mhz: clocks.
        default_applications_sm_clock_mhz: the applications clock that the card comes with; absent on cards without the feature.
        clock_event_reasons: active ones: "gpu_idle", "applications_clocks", "sw_power_cap", "hw_slowdown", "hw_thermal_slowdown",
            "hw_power_brake", "sync_boost", "sw_thermal_slowdown", "display_clocks".
        pcie_generation / max_pcie_generation / pcie_width / max_pcie_width: link now and at most (of the slot and device together).
        ecc_enabled: whether ECC is on.
        ecc_uncorrected: uncorrectable errors since the driver was loaded (volatile); None without ECC.
        ecc_uncorrected_lifetime: the same over the card's life (aggregate).
        retired_pages / remapped_rows: pages retired or rows remapped for uncorrectable errors.
        remap_pending / remap_failed: whether a remap (or page retirement) waits for a reset, or failed.
        mig_enabled: MIG mode; mig_devices: their names and memory ("1g.10gb", 9.75 GiB in bytes).
        nvlink_bandwidths: bytes per second and direction by NVLink, in order; None for a link that is inactive or could not be read.
        performance_state: "P0" ... "P15".
        processes: with device memory.
        is_lost: the output says that this GPU is lost or unreadable.
        unparsed: values that were present and could not be understood, by field.
    """

    index: int
    name: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    total_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    reserved_bytes: int | None = None
    gpu_utilization_ratio: float | None = None
    memory_utilization_ratio: float | None = None
    temperature_celsius: float | None = None
    slowdown_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    default_power_limit_watts: float | None = None
    sm_clock_mhz: float | None = None
    max_sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    max_memory_clock_mhz: float | None = None
    applications_sm_clock_mhz: float | None = None
    default_applications_sm_clock_mhz: float | None = None
    clock_event_reasons: tuple[str, ...] | None = None
    pcie_generation: int | None = None
    max_pcie_generation: int | None = None
    pcie_width: int | None = None
    max_pcie_width: int | None = None
    ecc_enabled: bool | None = None
    ecc_uncorrected: int | None = None
    ecc_uncorrected_lifetime: int | None = None
    retired_pages: int | None = None
    remapped_rows: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    mig_enabled: bool | None = None
    mig_devices: tuple[tuple[str, int], ...] = ()
    nvlink_bandwidths: tuple[float | None, ...] = ()
    performance_state: str | None = None
    processes: tuple[ProcessMemory, ...] = ()
    is_lost: bool = False
    unparsed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading(Evidence):
    """All GPUs of one nvidia-smi output (or of the metrics of an exporter).

    Attributes:
        gpus: in the order of the output; empty where the tool found none or could not reach the driver (a gap says which).
        driver_version / cuda_version: of the driver, and the newest CUDA that it serves.
        timestamp: as printed.
    """

    gpus: tuple[GpuReading, ...]
    driver_version: str | None = None
    cuda_version: str | None = None
    timestamp: str | None = None


class KernelEventKind(enum.Enum):
    """Kinds of kernel messages that matter to a GPU job."""

    XID = "xid"
    OOM_KILL = "oom kill"
    CGROUP_OOM = "cgroup oom"
    PCIE_LINK = "pcie link"
    PCIE_ERROR = "pcie error"
    NVLINK = "nvlink"
    GPU_LOST = "gpu lost"
    SEGFAULT = "segfault"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """One kernel message.

    Attributes:
        kind: what kind.
        line: of the log, from 1.
        text: the message, cut at 400 characters.
        timestamp: as printed; empty without one.
        xid: the Xid's number.
        bus_id: the PCI address it names.
        pid / process: whom it names.
        rss_bytes: of a killed process (anon-rss plus file-rss plus shmem-rss).
        limit_bytes: of the cgroup, where the message prints it.
    """

    kind: KernelEventKind
    line: int
    text: str
    timestamp: str = ""
    xid: int | None = None
    bus_id: str | None = None
    pid: int | None = None
    process: str | None = None
    rss_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLog(Evidence):
    """The kernel messages of a dmesg or journal text that matter here.

    Attributes:
        events: in the order of the log, at most 8 alike and 200 in all.
        line_count: lines read.
        counts: all of each kind, by its value ("oom kill"), and of each Xid ("xid 79"), even where events are cut.
    """

    events: tuple[KernelEvent, ...]
    line_count: int
    counts: Mapping[str, int]
