"""A Prometheus scrape of a GPU exporter (nvidia_gpu_exporter, DCGM) as a reading of the node."""

import math
import re

from advisor.ingest import quantities
from advisor.ingest.gpu_draft import GPU_LIMIT, REASONS_BY_BIT, GpuDraft
from advisor.ingest.plain_text import document_lines, left_out_lines
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source
from advisor.model.node import NodeReading

_SAMPLE = re.compile(r"((?:nvidia_smi|DCGM_FI)_\w{1,100})(?:\{(.{0,3000})\})? ([-+.\deEINFanif]{1,40})(?: \d{1,20})?")
_LABEL = re.compile(r'([a-zA-Z_]\w{0,40})="((?:[^"\\]|\\.){0,200})"')

_SAMPLE_LIMIT = 40_000
"""Samples that are read: 256 GPUs with the 150 metrics that exporters have."""

_MIB = 1024**2

_SCALES: dict[str, float] = {
    "total_bytes": 1,
    "used_bytes": 1,
    "free_bytes": 1,
    "reserved_bytes": 1,
    "sm_clock_mhz": 1e-6,
    "max_sm_clock_mhz": 1e-6,
    "memory_clock_mhz": 1e-6,
    "max_memory_clock_mhz": 1e-6,
    "applications_sm_clock_mhz": 1e-6,
    "default_applications_sm_clock_mhz": 1e-6,
    "gpu_utilization_ratio": 100,
    "memory_utilization_ratio": 100,
}
"""What a base unit of nvidia_gpu_exporter (bytes, hertz, ratio) is in the unit that the field is
parsed in."""

_SMI: dict[str, str] = {
    "memory_total_bytes": "total_bytes",
    "memory_used_bytes": "used_bytes",
    "memory_free_bytes": "free_bytes",
    "memory_reserved_bytes": "reserved_bytes",
    "utilization_gpu_ratio": "gpu_utilization_ratio",
    "utilization_memory_ratio": "memory_utilization_ratio",
    "temperature_gpu": "temperature_celsius",
    "power_draw_watts": "power_watts",
    "enforced_power_limit_watts": "power_limit_watts",
    "power_default_limit_watts": "default_power_limit_watts",
    "clocks_current_sm_clock_hz": "sm_clock_mhz",
    "clocks_max_sm_clock_hz": "max_sm_clock_mhz",
    "clocks_current_memory_clock_hz": "memory_clock_mhz",
    "clocks_max_memory_clock_hz": "max_memory_clock_mhz",
    "clocks_applications_graphics_clock_hz": "applications_sm_clock_mhz",
    "clocks_default_applications_graphics_clock_hz": "default_applications_sm_clock_mhz",
    "pcie_link_gen_current": "pcie_generation",
    "pcie_link_gen_max": "max_pcie_generation",
    "pcie_link_width_current": "pcie_width",
    "pcie_link_width_max": "max_pcie_width",
    "ecc_mode_current": "ecc_enabled",
    "retired_pages_double_bit_count": "retired_pages",
    "retired_pages_pending": "remap_pending",
    "remapped_rows_uncorrectable": "remapped_rows",
    "remapped_rows_pending": "remap_pending",
    "remapped_rows_failure": "remap_failed",
    "mig_mode_current": "mig_enabled",
    "pstate": "performance_state",
}
"""nvidia_gpu_exporter's metrics behind "nvidia_smi_": nvidia-smi's query names with the unit
appended."""

_DCGM: dict[str, tuple[str, float]] = {
    "FB_USED": ("used_bytes", _MIB),
    "FB_FREE": ("free_bytes", _MIB),
    "FB_TOTAL": ("total_bytes", _MIB),
    "FB_RESERVED": ("reserved_bytes", _MIB),
    "GPU_UTIL": ("gpu_utilization_ratio", 1),
    "MEM_COPY_UTIL": ("memory_utilization_ratio", 1),
    "GPU_TEMP": ("temperature_celsius", 1),
    "POWER_USAGE": ("power_watts", 1),
    "ENFORCED_POWER_LIMIT": ("power_limit_watts", 1),
    "POWER_MGMT_LIMIT_DEF": ("default_power_limit_watts", 1),
    "SM_CLOCK": ("sm_clock_mhz", 1),
    "MEM_CLOCK": ("memory_clock_mhz", 1),
    "MAX_SM_CLOCK": ("max_sm_clock_mhz", 1),
    "MAX_MEM_CLOCK": ("max_memory_clock_mhz", 1),
    "PCIE_LINK_GEN": ("pcie_generation", 1),
    "PCIE_MAX_LINK_GEN": ("max_pcie_generation", 1),
    "PCIE_LINK_WIDTH": ("pcie_width", 1),
    "PCIE_MAX_LINK_WIDTH": ("max_pcie_width", 1),
    "RETIRED_DBE": ("retired_pages", 1),
    "UNCORRECTABLE_REMAPPED_ROWS": ("remapped_rows", 1),
    "ROW_REMAP_FAILURE": ("remap_failed", 1),
    "ROW_REMAP_PENDING": ("remap_pending", 1),
}
"""DCGM's fields behind "DCGM_FI_DEV_": the field and the scale of a printed number (memory in MiB,
utilization in percent)."""

_VOLATILE = {"nvidia_smi_ecc_errors_uncorrected_volatile_total", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}
_LIFETIME = {"nvidia_smi_ecc_errors_uncorrected_aggregate_total", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"}
_REASON_BITS = {
    "nvidia_smi_clocks_event_reasons_active",
    "nvidia_smi_clocks_throttle_reasons_active",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
}


def looks_like_exporter_metrics(head: bytes) -> bool:
    """Whether a text is a scrape of a GPU exporter."""
    return b"\nnvidia_smi_" in head or head.startswith(b"nvidia_smi_") or b"DCGM_FI_DEV_" in head


def read_exporter_metrics(text: bytes, path: str) -> NodeReading | None:
    """Read a scrape; None where it holds no GPU's metric.

    Every metric is the gauge's value at the scrape.

    Raises:
        UnreadableInput: it is larger than any scrape.
    """
    if not looks_like_exporter_metrics(text):
        return None
    scrape = _Scrape()
    for line in document_lines(text, path, "metrics"):
        if line.startswith(("nvidia_smi_", "DCGM_FI_")):
            scrape.take(line)
    if not scrape.gpus:
        return None
    return NodeReading(
        source=Source(path=path),
        gaps=(*scrape.gaps, *left_out_lines(text)),
        gpus=tuple(draft.finish(place) for place, draft in enumerate(scrape.gpus.values())),
        driver_version=scrape.driver_version,
        cuda_version=scrape.cuda_version,
    )


@dataclass
class _Scrape:
    gpus: dict[str, GpuDraft] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    driver_version: str | None = None
    cuda_version: str | None = None
    taken: int = 0

    def take(self, line: str) -> None:
        """One sample."""
        self.taken += 1
        if self.taken > _SAMPLE_LIMIT:
            if self.taken == _SAMPLE_LIMIT + 1:
                self.gaps.append(f"only the first {_SAMPLE_LIMIT:,} samples are read")
            return
        found = _SAMPLE.fullmatch(line)
        if found is None:
            if len(self.gaps) < 10:  # noqa: PLR2004 - the first damaged lines tell enough
                self.gaps.append(f"not a sample: {line[:80]}")
            return
        metric, labels = found.group(1), dict(_LABEL.findall(found.group(2) or ""))
        identity = labels.get("uuid") or labels.get("UUID") or labels.get("gpu")
        if identity is None or labels.get("GPU_I_ID"):  # a MIG slice of DCGM is no GPU of its own
            return
        if identity not in self.gpus and len(self.gpus) >= GPU_LIMIT:
            return
        draft = self.gpus.setdefault(identity, GpuDraft())
        self._take_labels(draft, labels, identity)
        self._take_value(draft, metric, found.group(3))

    def _take_labels(self, draft: GpuDraft, labels: dict[str, str], identity: str) -> None:
        if identity.startswith(("GPU-", "MIG-")) or "-" in identity:
            draft.put("uuid", identity)
        draft.put("name", labels.get("name") or labels.get("modelName"))
        draft.put("bus_id", labels.get("pci_bus_id"))
        self.driver_version = self.driver_version or labels.get("driver_version") or labels.get("DCGM_FI_DRIVER_VERSION")
        self.cuda_version = self.cuda_version or labels.get("cuda_version")

    def _take_value(self, draft: GpuDraft, metric: str, printed: str) -> None:
        try:
            number = float(printed)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            draft.distrust(metric, printed)
            return
        if metric in _REASON_BITS:
            draft.put_reason_bits(f"{number:.0f}" if 0 <= number < 1 << len(REASONS_BY_BIT) else printed)
        elif metric in _VOLATILE:
            draft.add_errors("ecc_uncorrected", [f"{number:.0f}"])
        elif metric in _LIFETIME:
            draft.add_errors("ecc_uncorrected_lifetime", [f"{number:.0f}"])
        elif metric.removeprefix("nvidia_smi_") in _SMI:
            name = _SMI[metric.removeprefix("nvidia_smi_")]
            _put(draft, name, number * _SCALES.get(name, 1))
        elif metric.removeprefix("DCGM_FI_DEV_") in _DCGM:
            name, scale = _DCGM[metric.removeprefix("DCGM_FI_DEV_")]
            _put(draft, name, number * scale)


def _put(draft: GpuDraft, name: str, number: float) -> None:
    """Hand a number over as the text that its field is parsed from: its limits hold here too."""
    if name.endswith("_bytes"):
        draft.put(name, f"{number:.0f} B" if abs(number) < quantities.LARGEST_BYTES else repr(number))
    elif name == "performance_state":
        draft.put(name, f"P{number:.0f}")
    elif math.isfinite(number) and abs(number) < quantities.LARGEST_COUNT and number == math.floor(number):
        draft.put(name, f"{number:.0f}")
    else:
        draft.put(name, f"{number:.6f}" if abs(number) < quantities.LARGEST_COUNT else repr(number))
