"""`nvidia-smi -q -x`: the same tree as XML; entities and deep trees are refused."""

import io

from advisor.ingest import quantities
from advisor.ingest.gpu_draft import GPU_LIMIT, PROCESS_LIMIT, GpuDraft
from advisor.ingest.gpu_samples import most_telling
from advisor.model.dataclass import dataclass, field
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Source
from advisor.model.node import GpuReading, NodeReading

XML_LIMIT_BYTES = 32 * 1024**2
"""A node of eight GPUs with all supported clocks prints below 1 MB."""

_ELEMENT_LIMIT = 150_000
"""A GPU with all its supported clocks has about 2,000."""

_DEPTH_LIMIT = 24
"""Real output has seven levels."""

_WINDOW_BYTES = 64 * 1024
"""So many bytes without the end of a tag are no nvidia-smi output, and parsing them piece by piece
costs the square of their length."""

_FIELDS: dict[str, str] = {
    "product_name": "name",
    "uuid": "uuid",
    "performance_state": "performance_state",
    "mig_mode/current_mig": "mig_enabled",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "pcie_generation",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "max_pcie_generation",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "pcie_width",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "max_pcie_width",
    "fb_memory_usage/total": "total_bytes",
    "fb_memory_usage/used": "used_bytes",
    "fb_memory_usage/free": "free_bytes",
    "fb_memory_usage/reserved": "reserved_bytes",
    "utilization/gpu_util": "gpu_utilization_ratio",
    "utilization/memory_util": "memory_utilization_ratio",
    "temperature/gpu_temp": "temperature_celsius",
    "temperature/gpu_temp_slow_threshold": "slowdown_celsius",
    "gpu_power_readings/power_draw": "power_watts",
    "gpu_power_readings/average_power_draw": "power_watts",
    "gpu_power_readings/instant_power_draw": "power_watts",
    "gpu_power_readings/current_power_limit": "power_limit_watts",
    "gpu_power_readings/default_power_limit": "default_power_limit_watts",
    "power_readings/power_draw": "power_watts",
    "power_readings/enforced_power_limit": "power_limit_watts",
    "power_readings/default_power_limit": "default_power_limit_watts",
    "clocks/sm_clock": "sm_clock_mhz",
    "clocks/mem_clock": "memory_clock_mhz",
    "max_clocks/sm_clock": "max_sm_clock_mhz",
    "max_clocks/mem_clock": "max_memory_clock_mhz",
    "applications_clocks/graphics_clock": "applications_sm_clock_mhz",
    "default_applications_clocks/graphics_clock": "default_applications_sm_clock_mhz",
    "ecc_mode/current_ecc": "ecc_enabled",
    "retired_pages/double_bit_retirement/retired_count": "retired_pages",
    "retired_pages/pending_blacklist": "remap_pending",
    "retired_pages/pending_retirement": "remap_pending",
    "remapped_rows/remapped_row_unc": "remapped_rows",
    "remapped_rows/remapped_row_pending": "remap_pending",
    "remapped_rows/remapped_row_failure": "remap_failed",
}
"""Where each field stands below `gpu`: DTD versions 10 to 13."""

_ERROR_LEAVES = frozenset(
    {
        "sram_uncorrectable",
        "dram_uncorrectable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
        "double_bit/total",
    }
)


def looks_like_nvidia_smi_xml(head: bytes) -> bool:
    """Whether a text is the XML of `nvidia-smi -q -x`."""
    return b"<nvidia_smi_log" in head or b"nvsmi_device_v" in head


def read_nvidia_smi_xml(text: bytes, path: str) -> NodeReading | None:
    """Read `nvidia-smi -q -x`; None where the document is another one.

    A cut document keeps the GPUs before the cut.

    Raises:
        UnreadableInput: it declares entities or refers to others, is too large or too deep, or
            breaks before its first value.
    """
    if not looks_like_nvidia_smi_xml(text[: 64 * 1024]):
        return None
    if len(text) > XML_LIMIT_BYTES:
        raise UnreadableInput(
            f"{path}: nvidia-smi XML of {len(text):,} bytes is larger than any node prints",
            "collect it anew",
        )
    if any(b">" not in text[start : start + _WINDOW_BYTES] for start in range(0, len(text) - _WINDOW_BYTES, _WINDOW_BYTES)):
        raise UnreadableInput(
            f"{path}: the XML has a tag or a value longer than nvidia-smi prints",
            "collect it anew with nvidia-smi -q -x",
        )
    reader = _Reader(path=path)
    gaps = []
    broken = _follow(text[_first_tag(text) :], reader)
    if broken and not reader.gpus and reader.block is None:
        raise UnreadableInput(f"{path}: the XML is broken: {broken}", "collect it anew with nvidia-smi -q -x")
    if broken:
        gaps.append(f"the XML breaks off or is damaged: {broken}")
    reader.close()
    gpus, sample_gaps = most_telling(reader.gpus)
    attached = quantities.count(reader.header.get("attached_gpus", ""))
    if attached is not None and attached > len(gpus):
        gaps.append(f"{attached} GPUs are attached, the document holds {len(gpus)}")
    return NodeReading(
        source=Source(path=path),
        gaps=(*gaps, *sample_gaps),
        gpus=gpus,
        driver_version=reader.header.get("driver_version"),
        cuda_version=reader.header.get("cuda_version"),
        timestamp=reader.header.get("timestamp"),
    )


def _first_tag(text: bytes) -> int:
    """Where the document begins: a shell may have printed lines before it; the whole text where no tag begins one."""
    starts = [place for place in (text.find(b"<?xml"), text.find(b"<!DOCTYPE"), text.find(b"<nvidia_smi_log")) if place >= 0]
    return min(starts, default=0)


def _follow(document: bytes, reader: "_Reader") -> str:
    """Hand every element to the reader; tells where the document breaks, "" where it is whole."""
    # Loaded here: a log is not XML, and is diagnosed without the time that these take to load.
    from xml.etree.ElementTree import ParseError  # noqa: PLC0415

    from defusedxml.common import DefusedXmlException  # noqa: PLC0415
    from defusedxml.ElementTree import iterparse  # noqa: PLC0415

    tags: list[str] = []
    elements = 0
    try:
        for event, element in iterparse(io.BytesIO(document), events=("start", "end"), forbid_dtd=False):
            if event == "start":
                elements += 1
                tags.append(element.tag)
                _check_size(reader.path, elements, len(tags))
                reader.start(tags, element.get("id"))
            else:
                reader.end(tags, (element.text or "")[:1000])
                tags.pop()
                element.clear()
                if not tags:
                    break
    except DefusedXmlException as refused:
        raise UnreadableInput(
            f"{reader.path}: the XML declares or refers to entities ({type(refused).__name__})",
            "collect it anew with nvidia-smi -q -x, which never does",
        ) from refused
    except (ParseError, ValueError, LookupError) as broken:  # a lying encoding is one of the last
        return str(broken)
    return ""


def _check_size(path: str, elements: int, depth: int) -> None:
    if elements > _ELEMENT_LIMIT or depth > _DEPTH_LIMIT:
        raise UnreadableInput(
            f"{path}: the XML has more elements or levels than nvidia-smi prints",
            "collect it anew with nvidia-smi -q -x",
        )


@dataclass
class _Block:
    draft: GpuDraft = field(default_factory=GpuDraft)
    errors: dict[str, list[str]] = field(default_factory=lambda: {"volatile": [], "aggregate": []})
    margins: dict[str, float] = field(default_factory=dict)
    processes: list[dict[str, str]] = field(default_factory=list)
    mig: list[dict[str, str]] = field(default_factory=list)

    def take(self, keys: list[str], printed: str) -> None:
        """One element without children, with the tags from below `gpu` to it."""
        name = _FIELDS.get("/".join(keys))
        if name is not None:
            self.draft.put(name, printed)
        elif len(keys) > 1:
            self._take_repeated(keys, printed)

    def _take_repeated(self, keys: list[str], printed: str) -> None:
        section, leaf = keys[0], keys[-1]
        if section in ("clocks_event_reasons", "clocks_throttle_reasons"):
            reason = leaf.removeprefix("clocks_event_reason_").removeprefix("clocks_throttle_reason_")
            self.draft.put_reason(reason, printed)
        elif section == "ecc_errors" and keys[1] in self.errors:
            if leaf in _ERROR_LEAVES or "/".join(keys[-2:]) in _ERROR_LEAVES:
                self.errors[keys[1]].append(printed)
        elif section == "temperature" and leaf in (
            "gpu_temp_tlimit",
            "gpu_temp_slow_tlimit_threshold",
        ):
            margin = quantities.celsius(printed)
            if margin is not None:
                self.margins[leaf] = margin
        elif section == "processes" and self.processes:
            self.processes[-1].setdefault(leaf, printed)
        elif section == "mig_devices" and self.mig:
            self.mig[-1].setdefault("/".join(keys[2:]), printed)

    def finish(self, index: int) -> GpuReading:
        draft = self.draft
        draft.add_errors("ecc_uncorrected", self.errors["volatile"])
        draft.add_errors("ecc_uncorrected_lifetime", self.errors["aggregate"])
        for process in self.processes:
            draft.add_process(
                process.get("pid", ""),
                process.get("used_memory", ""),
                process.get("process_name", ""),
                index,
            )
        for device in self.mig:
            total = quantities.memory_bytes(device.get("fb_memory_usage/total", ""))
            if total is not None:
                draft.mig_devices.append((f"GPU instance {device.get('gpu_instance_id', '?')}", total))
        draft.derive_slowdown(self.margins.get("gpu_temp_tlimit"), self.margins.get("gpu_temp_slow_tlimit_threshold"))
        return draft.finish(index)


@dataclass
class _Reader:
    path: str
    header: dict[str, str] = field(default_factory=dict)
    gpus: list[GpuReading] = field(default_factory=list)
    block: _Block | None = None

    def start(self, tags: list[str], identifier: str | None) -> None:
        """An element begins."""
        if len(tags) == 2 and tags[1] == "gpu" and len(self.gpus) < GPU_LIMIT:  # noqa: PLR2004 - below the root
            self.block = _Block()
            self.block.draft.put("bus_id", identifier)
        elif self.block is not None:
            if tags[-1] == "process_info" and len(self.block.processes) < PROCESS_LIMIT:
                self.block.processes.append({})
            elif tags[-1] == "mig_device" and len(self.block.mig) < GPU_LIMIT:
                self.block.mig.append({})

    def end(self, tags: list[str], printed: str) -> None:
        """An element ends."""
        if len(tags) == 2:  # noqa: PLR2004 - below the root
            if tags[1] == "gpu":
                self.close()
            elif printed.strip():
                self.header.setdefault(tags[1], printed.strip()[:100])
        elif self.block is not None and printed.strip():
            self.block.take(tags[2:], printed.strip())

    def close(self) -> None:
        """The end of a GPU, or of the document inside one."""
        if self.block is not None:
            self.gpus.append(self.block.finish(len(self.gpus)))
        self.block = None
