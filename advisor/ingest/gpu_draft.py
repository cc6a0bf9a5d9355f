"""One GPU while its printed values are collected: every layout of nvidia-smi fills this draft."""

from typing import Any

from advisor.ingest import quantities
from advisor.model.dataclass import dataclass, field, replace
from advisor.model.failure import ProcessMemory
from advisor.model.node import GpuReading

GPU_LIMIT = 256
"""GPUs of one output; no node has as many, a hostile text may."""

PROCESS_LIMIT = 1024
"""Processes of one GPU."""

UNPARSED_LIMIT = 40
"""Values of one GPU kept as not understood."""

REASONS_BY_BIT = (
    "gpu_idle",
    "applications_clocks",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake",
    "display_clocks",
)
"""Clock event reasons by their bit, lowest first: nvml.h, nvmlClocksEventReason*."""

REASON_WORDS = {
    "gpu_idle": "gpu_idle",
    "idle": "gpu_idle",
    "applications_clocks_setting": "applications_clocks",
    "sw_power_cap": "sw_power_cap",
    "hw_slowdown": "hw_slowdown",
    "hw_thermal_slowdown": "hw_thermal_slowdown",
    "hw_power_brake_slowdown": "hw_power_brake",
    "sync_boost": "sync_boost",
    "sw_thermal_slowdown": "sw_thermal_slowdown",
    "display_clocks_setting": "display_clocks",
    "display_clock_setting": "display_clocks",
}
"""The reasons as the text (lower case, with underscores), the XML and the CSV name them → as the
model does."""

PARSERS: dict[str, quantities.Parser] = {
    "name": quantities.words,
    "uuid": quantities.words,
    "bus_id": quantities.words,
    "total_bytes": quantities.memory_bytes,
    "used_bytes": quantities.memory_bytes,
    "free_bytes": quantities.memory_bytes,
    "reserved_bytes": quantities.memory_bytes,
    "gpu_utilization_ratio": quantities.percent_ratio,
    "memory_utilization_ratio": quantities.percent_ratio,
    "temperature_celsius": quantities.celsius,
    "slowdown_celsius": quantities.celsius,
    "power_watts": quantities.watts,
    "power_limit_watts": quantities.watts,
    "default_power_limit_watts": quantities.watts,
    "sm_clock_mhz": quantities.megahertz,
    "max_sm_clock_mhz": quantities.megahertz,
    "memory_clock_mhz": quantities.megahertz,
    "max_memory_clock_mhz": quantities.megahertz,
    "applications_sm_clock_mhz": quantities.megahertz,
    "default_applications_sm_clock_mhz": quantities.megahertz,
    "pcie_generation": quantities.link_generation,
    "max_pcie_generation": quantities.link_generation,
    "pcie_width": quantities.link_width,
    "max_pcie_width": quantities.link_width,
    "ecc_enabled": quantities.switch,
    "retired_pages": quantities.count,
    "remapped_rows": quantities.count,
    "remap_pending": quantities.switch,
    "remap_failed": quantities.switch,
    "mig_enabled": quantities.switch,
    "performance_state": quantities.performance_state,
}
"""How the printed value of each field is read."""

LOST_WORDS = (
    "gpu is lost",
    "gpu lost",
    "gpu has fallen off the bus",
    "unable to determine the device handle",
)
"""What NVIDIA's tools print in place of values of a GPU that no longer answers, lower case."""


@dataclass
class GpuDraft:
    """Collects the values of one GPU.

    A value that was printed and makes no sense is kept in `unparsed`.
    """

    values: dict[str, Any] = field(default_factory=dict)
    unparsed: list[tuple[str, str]] = field(default_factory=list)
    processes: list[ProcessMemory] = field(default_factory=list)
    mig_devices: list[tuple[str, int]] = field(default_factory=list)
    is_lost: bool = False

    def put(self, name: str, printed: str | None) -> None:
        """Take the printed value of a field; the first one that can be read stays."""
        if printed is None or quantities.is_absent(printed):
            return
        if any(words in printed.lower() for words in LOST_WORDS):
            self.is_lost = True
        parsed = PARSERS[name](printed)
        if parsed is None or (name in ("name", "uuid", "bus_id") and "err!" in printed.lower()):
            self.distrust(name, printed)
        else:
            self.values.setdefault(name, parsed)

    def distrust(self, name: str, printed: str) -> None:
        """Record a value that could not be understood."""
        if len(self.unparsed) < UNPARSED_LIMIT:
            self.unparsed.append((name, printed.strip()[:100]))

    def add_errors(self, name: str, printed: list[str]) -> None:
        """Sum error counters that are printed apart (SRAM, DRAM).

        Absent ones do not count, none at all stays unknown.
        """
        total: int | None = None
        for text in printed:
            if quantities.is_absent(text):
                continue
            number = quantities.count(text)
            if number is None:
                self.distrust(name, text)
            else:
                total = (total or 0) + number
        if total is not None:
            self.values.setdefault(name, total)

    def put_reason(self, printed_name: str, printed: str) -> None:
        """Take one clock event reason with its "Active" or "Not Active"."""
        if quantities.is_absent(printed):
            return
        reason = REASON_WORDS.get(printed_name.strip().lower().replace(" ", "_"))
        active = quantities.switch(printed)
        if reason is None or active is None:
            self.distrust("clock_event_reasons", f"{printed_name}: {printed}")
            return
        reasons = self.values.setdefault("clock_event_reasons", ())
        if active and reason not in reasons:
            self.values["clock_event_reasons"] = (*reasons, reason)

    def put_reason_bits(self, printed: str) -> None:
        """Take the reasons as NVML's bit mask: "0x0000000000000004" or a decimal number."""
        text = printed.strip().lower()
        if quantities.is_absent(text):
            return
        digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
        if not 0 < len(digits) <= 16 or not digits.isascii() or not digits.isalnum():  # noqa: PLR2004 - 64 bits in hexadecimal
            self.distrust("clock_event_reasons", printed)
            return
        try:
            mask = int(digits, base)
        except ValueError:
            self.distrust("clock_event_reasons", printed)
            return
        self.values["clock_event_reasons"] = tuple(name for bit, name in enumerate(REASONS_BY_BIT) if mask >> bit & 1)

    def add_process(self, pid: str, used: str, name: str, index: int) -> None:
        """Take a process; one without a sound pid is not one."""
        number = quantities.count(pid)
        if number is None or len(self.processes) >= PROCESS_LIMIT:
            return
        self.processes.append(
            ProcessMemory(
                pid=number,
                used_bytes=quantities.memory_bytes(used),
                name=name.strip()[:200],
                device_index=index,
            )
        )

    def derive_slowdown(self, margin: float | None, threshold: float | None) -> None:
        """Where slowdown begins, from "T.Limit" figures: degrees below the highest operating one.

        `margin` is how far the chip is below it now, `threshold` where slowdown begins on the same
        scale (-2: two degrees above it).
        """
        now = self.values.get("temperature_celsius")
        if now is not None and margin is not None and threshold is not None:
            self.values.setdefault("slowdown_celsius", now + margin - threshold)

    def finish(self, index: int) -> GpuReading:
        """The reading, with figures that contradict each other taken back."""
        total = self.values.get("total_bytes")
        for part in ("used_bytes", "free_bytes", "reserved_bytes"):
            if total is not None and self.values.get(part, 0) > total:
                self.distrust(part, f"{self.values.pop(part)} B, more than the total")
        return GpuReading(
            index=index,
            processes=tuple(replace(process, device_index=index) for process in self.processes),
            mig_devices=tuple(self.mig_devices),
            unparsed=tuple(self.unparsed),
            is_lost=self.is_lost,
            **self.values,
        )
