"""`nvidia-smi --query-gpu=...

--format=csv`, with or without units, one sample or many, and `--query-compute-apps`.
"""

import csv
import re

from advisor.ingest import quantities
from advisor.ingest.gpu_draft import GPU_LIMIT, GpuDraft
from advisor.ingest.gpu_samples import most_telling
from advisor.ingest.plain_text import document_lines, left_out_lines
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source
from advisor.model.node import GpuReading, NodeReading

_SAMPLE_LIMIT = 20_000
"""Rows that are read: forty minutes of eight GPUs every second."""

_GAP_LIMIT = 10
"""Damaged rows that are named; the first tell enough."""

_COLUMN_LIMIT = 300
"""nvidia-smi knows about 150."""

_HEADING_BYTES = 64 * 1024
"""How far into a text its heading line is looked for."""

_HEADING = re.compile(r"([a-z0-9_.]{2,80})(?: \[([A-Za-z%]{1,4})\])?")

_FIELDS: dict[str, str] = {
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "bus_id",
    "gpu_bus_id": "bus_id",
    "pstate": "performance_state",
    "memory.total": "total_bytes",
    "memory.used": "used_bytes",
    "memory.free": "free_bytes",
    "memory.reserved": "reserved_bytes",
    "utilization.gpu": "gpu_utilization_ratio",
    "utilization.memory": "memory_utilization_ratio",
    "temperature.gpu": "temperature_celsius",
    "power.draw": "power_watts",
    "power.draw.average": "power_watts",
    "power.draw.instant": "power_watts",
    "enforced.power.limit": "power_limit_watts",
    "power.limit": "power_limit_watts",
    "power.default_limit": "default_power_limit_watts",
    "clocks.sm": "sm_clock_mhz",
    "clocks.current.sm": "sm_clock_mhz",
    "clocks.mem": "memory_clock_mhz",
    "clocks.current.memory": "memory_clock_mhz",
    "clocks.max.sm": "max_sm_clock_mhz",
    "clocks.max.mem": "max_memory_clock_mhz",
    "clocks.max.memory": "max_memory_clock_mhz",
    "clocks.applications.graphics": "applications_sm_clock_mhz",
    "clocks.applications.gr": "applications_sm_clock_mhz",
    "clocks.default_applications.graphics": "default_applications_sm_clock_mhz",
    "clocks.default_applications.gr": "default_applications_sm_clock_mhz",
    "pcie.link.gen.current": "pcie_generation",
    "pcie.link.gen.gpucurrent": "pcie_generation",
    "pcie.link.gen.max": "max_pcie_generation",
    "pcie.link.width.current": "pcie_width",
    "pcie.link.width.max": "max_pcie_width",
    "ecc.mode.current": "ecc_enabled",
    "retired_pages.dbe": "retired_pages",
    "retired_pages.double_bit.count": "retired_pages",
    "retired_pages.pending": "remap_pending",
    "remapped_rows.uncorrectable": "remapped_rows",
    "remapped_rows.pending": "remap_pending",
    "remapped_rows.failure": "remap_failed",
    "mig.mode.current": "mig_enabled",
}
"""What `nvidia-smi --help-query-gpu` calls each field."""

_LIFETIME = "ecc.errors.uncorrected.aggregate.total"
_VOLATILE = "ecc.errors.uncorrected.volatile.total"
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(\w{2,40})")
_KNOWN = frozenset(_FIELDS) | {
    "index",
    "timestamp",
    "driver_version",
    "pid",
    "process_name",
    "used_gpu_memory",
    "used_memory",
}


def looks_like_nvidia_smi_csv(head: bytes) -> bool:
    """Whether a text begins with a line of nvidia-smi's query names."""
    return any(_columns(line) for line in head[:_HEADING_BYTES].decode("utf-8", "replace").splitlines()[:5])


def read_nvidia_smi_csv(text: bytes, path: str) -> NodeReading | None:
    """Read a query's CSV; None where no heading line stands within the first lines.

    A bare number counts in the unit of its heading ("memory.used [MiB]"), or in MiB, W, MHz, % and
    °C.

    Raises:
        UnreadableInput: it is larger than any such output.
    """
    if not looks_like_nvidia_smi_csv(text[: 64 * 1024]):
        return None
    rows = _Rows(columns=())
    heading = ""
    for number, line in enumerate(document_lines(text, path, "nvidia-smi CSV"), start=1):
        if not rows.columns:
            rows.columns, heading = _columns(line), line
        elif line.strip() and line != heading:
            rows.take(line, number)
        if rows.is_full:
            break
    gpus, sample_gaps = most_telling(rows.gpus())
    return NodeReading(
        source=Source(path=path),
        gaps=(*rows.gaps, *sample_gaps, *left_out_lines(text)),
        gpus=gpus,
        driver_version=rows.driver_version,
        timestamp=rows.timestamp,
    )


def _columns(line: str) -> tuple[tuple[str, str], ...]:
    """Names and units of a heading line; empty where it is none."""
    cells = [cell.strip() for cell in line.strip().split(",")]
    if not 2 <= len(cells) <= _COLUMN_LIMIT:  # noqa: PLR2004 - one name alone proves nothing
        return ()
    found = [_HEADING.fullmatch(cell) for cell in cells]
    named = [(match.group(1), match.group(2) or "") for match in found if match is not None]
    if len(named) != len(cells):
        return ()
    telling = any(
        (name in _KNOWN and ("." in name or "_" in name or name == "pstate"))
        or _REASON.match(name) is not None
        or name in (_LIFETIME, _VOLATILE)
        for name, _ in named
    )
    return tuple(named) if telling else ()


@dataclass
class _Rows:
    columns: tuple[tuple[str, str], ...]
    gaps: list[str] = field(default_factory=list)
    driver_version: str | None = None
    timestamp: str | None = None
    _samples: list[GpuReading] = field(default_factory=list)
    _by_gpu: dict[str, GpuDraft] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether more rows would not be read."""
        return len(self._samples) >= _SAMPLE_LIMIT

    def gpus(self) -> list[GpuReading]:
        """The samples; of a query of processes, one reading a GPU."""
        return self._samples or [draft.finish(place) for place, draft in enumerate(self._by_gpu.values())]

    def take(self, line: str, number: int) -> None:
        """One row."""
        has_cells = "," in line
        cells = next(csv.reader([line], skipinitialspace=True), []) if has_cells else [line]
        if len(cells) != len(self.columns):
            if len(self.gaps) < _GAP_LIMIT:
                self.gaps.append(f"line {number} has {len(cells)} values for {len(self.columns)} columns")
            return
        pairs = zip(self.columns, cells, strict=True)
        values = {name: (cell.strip(), unit) for (name, unit), cell in pairs}
        if "pid" in values:
            self._take_process(values)
            return
        self._samples.append(self._sample(values))
        self.timestamp = self.timestamp or _present(values, "timestamp")
        self.driver_version = self.driver_version or _present(values, "driver_version")
        if self.is_full:
            self.gaps.append(f"only the first {_SAMPLE_LIMIT:,} rows are read")

    def _sample(self, values: dict[str, tuple[str, str]]) -> GpuReading:
        draft = GpuDraft()
        for name, (cell, unit) in values.items():
            reason = _REASON.fullmatch(name)
            if name in _FIELDS:
                draft.put(_FIELDS[name], _with_unit(cell, unit))
            elif reason is not None and reason.group(1) == "active":
                draft.put_reason_bits(cell)
            elif reason is not None and reason.group(1) != "supported":
                draft.put_reason(reason.group(1), cell)
        draft.add_errors("ecc_uncorrected", [values[_VOLATILE][0]] if _VOLATILE in values else [])
        draft.add_errors("ecc_uncorrected_lifetime", [values[_LIFETIME][0]] if _LIFETIME in values else [])
        index = quantities.count(values["index"][0]) if "index" in values else None
        return draft.finish(len(self._samples) if index is None else min(index, GPU_LIMIT))

    def _take_process(self, values: dict[str, tuple[str, str]]) -> None:
        identity = next(
            (values[name][0] for name in ("gpu_uuid", "gpu_bus_id", "gpu_name") if name in values),
            "",
        )
        if identity not in self._by_gpu and len(self._by_gpu) >= GPU_LIMIT:
            return
        draft = self._by_gpu.setdefault(identity, GpuDraft())
        for name in ("gpu_uuid", "gpu_bus_id", "gpu_name"):
            if name in values:
                draft.put(_FIELDS[name], values[name][0])
        used, unit = values.get("used_gpu_memory", values.get("used_memory", ("", "")))
        draft.add_process(values["pid"][0], _with_unit(used, unit), values.get("process_name", ("", ""))[0], 0)


def _with_unit(cell: str, unit: str) -> str:
    parsed = quantities.number_and_unit(cell)
    return f"{cell} {unit}" if parsed is not None and not parsed[1] and unit else cell


def _present(values: dict[str, tuple[str, str]], name: str) -> str | None:
    cell = values.get(name, ("", ""))[0]
    return None if quantities.is_absent(cell) else cell[:100]
