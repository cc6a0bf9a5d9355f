"""`nvidia-smi -q` as text: an indented tree of "Key : value" lines, one block a GPU."""

import re

from advisor.ingest import quantities
from advisor.ingest.gpu_draft import GPU_LIMIT, LOST_WORDS, GpuDraft
from advisor.ingest.gpu_samples import most_telling
from advisor.ingest.plain_text import as_utf8, document_lines, left_out_lines
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source
from advisor.model.node import GpuReading, NodeReading

_GPU_HEADING = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")

_DEPTH_LIMIT = 12
"""Levels of indentation; real output has five."""

_FIELDS: dict[tuple[str, ...], str] = {
    ("product name",): "name",
    ("gpu uuid",): "uuid",
    ("performance state",): "performance_state",
    ("mig mode", "current"): "mig_enabled",
    ("pci", "gpu link info", "pcie generation", "current"): "pcie_generation",
    ("pci", "gpu link info", "pcie generation", "max"): "max_pcie_generation",
    ("pci", "gpu link info", "link width", "current"): "pcie_width",
    ("pci", "gpu link info", "link width", "max"): "max_pcie_width",
    ("fb memory usage", "total"): "total_bytes",
    ("fb memory usage", "used"): "used_bytes",
    ("fb memory usage", "free"): "free_bytes",
    ("fb memory usage", "reserved"): "reserved_bytes",
    ("utilization", "gpu"): "gpu_utilization_ratio",
    ("utilization", "memory"): "memory_utilization_ratio",
    ("temperature", "gpu current temp"): "temperature_celsius",
    ("temperature", "gpu slowdown temp"): "slowdown_celsius",
    ("gpu power readings", "power draw"): "power_watts",
    ("gpu power readings", "average power draw"): "power_watts",
    ("gpu power readings", "instantaneous power draw"): "power_watts",
    ("gpu power readings", "current power limit"): "power_limit_watts",
    ("gpu power readings", "default power limit"): "default_power_limit_watts",
    ("power readings", "power draw"): "power_watts",
    ("power readings", "enforced power limit"): "power_limit_watts",
    ("power readings", "default power limit"): "default_power_limit_watts",
    ("clocks", "sm"): "sm_clock_mhz",
    ("clocks", "memory"): "memory_clock_mhz",
    ("max clocks", "sm"): "max_sm_clock_mhz",
    ("max clocks", "memory"): "max_memory_clock_mhz",
    ("applications clocks", "graphics"): "applications_sm_clock_mhz",
    ("default applications clocks", "graphics"): "default_applications_sm_clock_mhz",
    ("ecc mode", "current"): "ecc_enabled",
    ("retired pages", "double bit ecc"): "retired_pages",
    ("retired pages", "pending page blacklist"): "remap_pending",
    ("retired pages", "pending"): "remap_pending",
    ("remapped rows", "uncorrectable error"): "remapped_rows",
    ("remapped rows", "pending"): "remap_pending",
    ("remapped rows", "remapping failure occurred"): "remap_failed",
}
"""Where each field stands: the keys from the outermost in, lower case. Drivers from 390 to 610."""


def looks_like_nvidia_smi_text(head: bytes) -> bool:
    """Whether a text begins with, or holds early, the output of `nvidia-smi -q`."""
    words = as_utf8(head)
    return b"NVSMI LOG" in words or (b"Attached GPUs" in words and b"Driver Version" in words)


def read_nvidia_smi_text(text: bytes, path: str) -> NodeReading | None:
    """Read `nvidia-smi -q`; None where the text holds none. What is cut off is named in `gaps`.

    Raises:
        UnreadableInput: it is larger than any such output.
    """
    if not looks_like_nvidia_smi_text(text):
        return None
    reader = _Reader()
    for line in document_lines(text, path, "nvidia-smi -q output"):
        reader.take(line)
    reader.close()
    if not reader.saw_heading and not reader.gpus:
        return None
    gpus, gaps = most_telling(reader.gpus)
    found = [*reader.gaps, *gaps, *left_out_lines(text)]
    if reader.attached is not None and reader.attached > len(gpus):
        found.append(f"{reader.attached} GPUs are attached, the text holds {len(gpus)}: it is cut")
    return NodeReading(
        source=Source(path=path),
        gaps=tuple(found),
        gpus=gpus,
        driver_version=reader.header.get("driver version"),
        cuda_version=reader.header.get("cuda version"),
        timestamp=reader.header.get("timestamp"),
    )


@dataclass
class _Block:
    """What of a GPU's block is not a plain field."""

    draft: GpuDraft = field(default_factory=GpuDraft)
    errors: dict[str, list[str]] = field(default_factory=lambda: {"volatile": [], "aggregate": []})
    margins: dict[str, float] = field(default_factory=dict)
    processes: list[dict[str, str]] = field(default_factory=list)
    mig: list[dict[str, str]] = field(default_factory=list)

    def take(self, keys: tuple[str, ...], printed: str) -> None:
        """One "Key : value" line, with the keys above it."""
        name = _FIELDS.get(keys)
        if name is not None:
            self.draft.put(name, printed)
        elif keys[0] in ("clocks event reasons", "clocks throttle reasons") and len(keys) > 1:
            self.draft.put_reason(keys[-1], printed)
        elif keys[0] == "ecc errors":
            self._take_error(keys, printed)
        elif keys[0] == "temperature" and keys[-1] in (
            "gpu t.limit temp",
            "gpu slowdown t.limit temp",
        ):
            margin = quantities.celsius(printed)
            if margin is not None:
                self.margins[keys[-1]] = margin
        elif keys[0] == "processes" and len(keys) > 1:
            self._take_process(keys, printed)
        elif keys[0] in ("mig device", "mig devices") and self.mig:
            self.mig[-1].setdefault("/".join(keys[-2:]), printed)

    def _take_error(self, keys: tuple[str, ...], printed: str) -> None:
        kind, leaf = keys[1] if len(keys) > 1 else "", keys[-1]
        if kind in self.errors and (
            leaf
            in (
                "sram uncorrectable",
                "dram uncorrectable",
                "sram uncorrectable parity",
                "sram uncorrectable sec-ded",
            )
            or keys[-2:] == ("double bit", "total")
        ):
            self.errors[kind].append(printed)

    def _take_process(self, keys: tuple[str, ...], printed: str) -> None:
        if keys[-1] == "process id":
            self.processes.append({"process id": printed})
        elif self.processes and keys[-2] == "process id":
            self.processes[-1].setdefault(keys[-1], printed)

    def finish(self, index: int) -> GpuReading:
        draft = self.draft
        draft.add_errors("ecc_uncorrected", self.errors["volatile"])
        draft.add_errors("ecc_uncorrected_lifetime", self.errors["aggregate"])
        for process in self.processes:
            draft.add_process(
                process["process id"],
                process.get("used gpu memory", ""),
                process.get("name", ""),
                index,
            )
        for device in self.mig:
            total = quantities.memory_bytes(device.get("fb memory usage/total", ""))
            if total is not None:
                draft.mig_devices.append((f"GPU instance {device.get('mig device/gpu instance id', '?')}", total))
        draft.derive_slowdown(self.margins.get("gpu t.limit temp"), self.margins.get("gpu slowdown t.limit temp"))
        return draft.finish(index)


@dataclass
class _Reader:
    """Follows the indentation; knows which GPU's block it is in."""

    header: dict[str, str] = field(default_factory=dict)
    gpus: list[GpuReading] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    attached: int | None = None
    saw_heading: bool = False
    _block: _Block | None = None
    _above: list[tuple[int, str]] = field(default_factory=list)

    def take(self, line: str) -> None:
        """One line."""
        stripped = line.strip()
        if not stripped:
            return
        if "NVSMI LOG" in stripped:
            self.close()
            self.saw_heading = True
            return
        heading = _GPU_HEADING.fullmatch(stripped)
        if heading is not None:
            self.close()
            if len(self.gpus) < GPU_LIMIT:
                self._block = _Block()
                self._block.draft.put("bus_id", heading.group(1))
            return
        key, separator, printed = (f"{stripped} ").partition(" : ")
        if self._block is None:
            if separator and self.saw_heading:
                self._take_header(key.strip().lower(), printed.strip())
            return
        if any(words in stripped.lower() for words in LOST_WORDS):
            self._block.draft.is_lost = True
        self._take_line(
            len(line) - len(line.lstrip()),
            key.strip().lower(),
            printed.strip() if separator else None,
        )

    def _take_header(self, key: str, printed: str) -> None:
        if key == "attached gpus":
            self.attached = quantities.count(printed)
        elif key in ("timestamp", "driver version", "cuda version"):
            self.header.setdefault(key, printed[:100])

    def _take_line(self, indentation: int, key: str, printed: str | None) -> None:
        block = self._block
        if block is None:
            return
        while self._above and self._above[-1][0] >= indentation:
            self._above.pop()
        if indentation == 0 or len(self._above) >= _DEPTH_LIMIT:
            if indentation == 0:
                self.close()  # unindented: the log goes on behind the output
            return
        self._above.append((indentation, key))
        keys = tuple(name for _, name in self._above)
        if printed is None:
            if key == "mig device" and len(block.mig) < GPU_LIMIT:
                block.mig.append({})
            return
        block.take(keys, printed)

    def close(self) -> None:
        """The end of a GPU's block."""
        if self._block is not None:
            self.gpus.append(self._block.finish(len(self.gpus)))
        self._block = None
        self._above.clear()
