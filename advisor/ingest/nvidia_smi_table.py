"""The plain `nvidia-smi` table: boxes of two or three lines a GPU, MIG devices, processes.

Layouts of drivers 390 to 610.
"""

import re

from advisor.ingest import quantities
from advisor.ingest.gpu_draft import GPU_LIMIT, LOST_WORDS, GpuDraft
from advisor.ingest.gpu_samples import most_telling
from advisor.ingest.plain_text import EMBEDDED_REACH_BYTES, embedded_lines
from advisor.model.dataclass import dataclass, field, replace
from advisor.model.evidence import Source
from advisor.model.node import GpuReading, NodeReading

_WORDS = (b"| NVIDIA-SMI", b"Pwr:Usage/Cap")
"""Where a table shows itself."""

_BANNER = re.compile(
    r"NVIDIA-SMI\s+(\S{1,20})(?:.{0,60}?Driver Version:\s*(\S{1,20}))?(?:.{0,60}?CUDA "
    r"Version:\s*(\S{1,20}))?"
)
_FIRST_LINE = re.compile(r"\s*(\d{1,3})\s+(\S.*)")
_PERFORMANCE = re.compile(r"(?<!\S)(P\d{1,2})(?!\S)")
_TEMPERATURE = re.compile(r"(?<!\S)(\d{1,3}C)(?!\S)")
_POWER = re.compile(r"(\d{1,5}W|N/A|\[N/A\]|\S{2,20})\s*/\s*(\d{1,5}W|N/A|\[N/A\]|\S{2,20})")
_MEMORY = re.compile(r"(\d{1,9}\s?[KMGT]i?B)\s*/\s*(\d{1,9}\s?[KMGT]i?B)")
_BUS_ID = re.compile(r"((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")
_PROCESS = re.compile(r"\s*(\d{1,3})\s+(?:(?:\S{1,4})\s+(?:\S{1,4})\s+)?(\d{1,10})\s+(C\+G|M\+C|C|G)\s+(.*?)(?:\s+(\d{1,9}MiB|N/A))?\s*")
_MIG_ROW = re.compile(r"\s*(\d{1,3})\s+(\d{1,3})\s+(\d{1,3})\s+(\d{1,3})\s*")

_LINE_CHARACTERS = 400
"""A table's line has 80 to 92 characters, and perhaps a log's prefix; what is longer is no such
line."""

_FIRST_CELLS = 3
"""Cells of a GPU's lines: identity and state, bus and memory, ECC and utilization."""


def looks_like_nvidia_smi_table(head: bytes) -> bool:
    """Whether a text begins with, or holds early, the plain table."""
    return any(words in head for words in _WORDS)


def read_nvidia_smi_table(text: bytes, path: str) -> NodeReading | None:
    """Read the plain table; None where the text holds none.

    Memory in bytes, as coarse as the table's MiB.
    """
    reader = _Reader()
    for _, line in embedded_lines(text, *_WORDS):
        reader.take(line)
    reader.close_table()
    if not reader.saw_table:
        return None
    gpus, sample_gaps = most_telling(reader.samples)
    gaps = list(sample_gaps)
    if not gpus:
        gaps.append("the table holds no GPU: it is cut after its heading")
    if not reader.saw_processes:
        gaps.append("the table of processes is missing")
    if text.find(_WORDS[0], text.find(_WORDS[0]) + EMBEDDED_REACH_BYTES) >= 0:
        gaps.append(f"tables further than {EMBEDDED_REACH_BYTES:,} bytes from the first are not read")
    return NodeReading(
        source=Source(path=path),
        gaps=tuple(gaps),
        gpus=gpus,
        driver_version=reader.driver_version,
        cuda_version=reader.cuda_version,
    )


@dataclass
class _Reader:
    """Knows which part of the table it is in."""

    driver_version: str | None = None
    cuda_version: str | None = None
    samples: list[GpuReading] = field(default_factory=list)
    saw_table: bool = False
    saw_processes: bool = False
    _part: str = ""
    _drafts: dict[int, GpuDraft] = field(default_factory=dict)
    _current: int | None = None
    _line_in_box: int = 0

    def take(self, line: str) -> None:
        """One line; a prefix that a log put before the box is left out."""
        if len(line) > _LINE_CHARACTERS:
            return
        box = line.find("|")
        cells = [cell.strip() for cell in line[box + 1 :].rstrip().rstrip("|").split("|")] if box >= 0 else []
        raw = line[box + 1 :].rstrip().rstrip("|") if box >= 0 else ""
        banner = _BANNER.search(line) if "NVIDIA-SMI" in line else None
        if banner is not None and (box >= 0 or banner.group(2)):
            self.close_table()
            self._part, self.saw_table = "gpus", True
            self.driver_version = self.driver_version or banner.group(2) or banner.group(1)
            self.cuda_version = self.cuda_version or banner.group(3)
        elif "Pwr:Usage/Cap" in line:
            self._part, self.saw_table = "gpus", True
        elif "MIG devices:" in line:
            self._part = "mig"
        elif "Processes:" in line:
            self._part, self.saw_processes = "processes", self.saw_table
        elif box < 0 or "+--" in line or "|==" in line or "|--" in line:
            self._line_in_box = 0
        elif self._part == "gpus" and len(cells) == _FIRST_CELLS:
            self._take_gpu(cells, line)
        elif self._part == "mig" and len(cells) >= _FIRST_CELLS:
            self._take_mig(cells)
        elif self._part == "processes" and len(cells) == 1:
            self._take_process(raw)

    def _take_gpu(self, cells: list[str], line: str) -> None:
        first = _FIRST_LINE.fullmatch(cells[0])
        bus = _BUS_ID.search(cells[1])
        if first is not None and (bus is not None or "err" in line.lower() or _is_lost(line)):
            self._current = int(first.group(1))
            if len(self._drafts) < GPU_LIMIT:
                self._drafts.setdefault(self._current, GpuDraft())
            self._line_in_box = 1
        else:
            self._line_in_box += 1
        draft = self._drafts.get(-1 if self._current is None else self._current)
        if draft is None:
            return
        draft.is_lost = draft.is_lost or _is_lost(line)
        if self._line_in_box == 1 and first is not None:
            _take_identity(draft, first.group(2), bus.group(1) if bus else None, cells[2])
        elif self._line_in_box == 2:  # noqa: PLR2004 - the line of states
            _take_state(draft, cells)
        elif cells[2] in ("Enabled", "Disabled"):
            draft.put("mig_enabled", cells[2])

    def _take_mig(self, cells: list[str]) -> None:
        row, memory = _MIG_ROW.fullmatch(cells[0]), _MEMORY.search(cells[1])
        draft = self._drafts.get(int(row.group(1))) if row is not None else None
        if row is None or draft is None or memory is None or len(draft.mig_devices) >= GPU_LIMIT:
            return
        total = quantities.memory_bytes(memory.group(2))
        if total is not None:
            draft.mig_devices.append((f"GPU instance {row.group(2)}", total))

    def _take_process(self, cell: str) -> None:
        process = _PROCESS.fullmatch(cell)
        draft = self._drafts.get(int(process.group(1))) if process is not None else None
        if process is not None and draft is not None:
            draft.add_process(process.group(2), process.group(5) or "", process.group(4), int(process.group(1)))

    def close_table(self) -> None:
        """The end of a table: its GPUs become samples."""
        self.samples.extend(replace(draft.finish(index), index=index) for index, draft in self._drafts.items())
        self._drafts = {}
        self._current = None


def _is_lost(line: str) -> bool:
    return any(words in line.lower() for words in LOST_WORDS)


def _take_identity(draft: GpuDraft, identity: str, bus_id: str | None, last_cell: str) -> None:
    """Take the first line: name and persistence mode, bus, count of volatile uncorrected errors."""
    name = re.sub(r"\s+(On|Off|N/A|WDDM|TCC|MCDM|ERR!)\s*$", "", identity).strip()
    draft.put("name", name)
    draft.put("bus_id", bus_id)
    if last_cell not in (
        "Off",
        "On",
    ):  # "On" stands here where MIG hides the count, "Off" where ECC is off
        draft.add_errors("ecc_uncorrected", [last_cell])
        if quantities.count(last_cell) is not None:
            draft.values.setdefault("ecc_enabled", True)
    elif last_cell == "Off":
        draft.values.setdefault("ecc_enabled", False)


def _take_state(draft: GpuDraft, cells: list[str]) -> None:
    """Take the second line: "N/A 37C P8 9W / 70W", "0MiB / 15079MiB", "0% Default"."""
    for name, pattern in (
        ("temperature_celsius", _TEMPERATURE),
        ("performance_state", _PERFORMANCE),
    ):
        found = pattern.search(cells[0])
        draft.put(name, found.group(1) if found else None)
    power = _POWER.search(cells[0])
    if power is not None:
        draft.put("power_watts", power.group(1))
        draft.put("power_limit_watts", power.group(2))
    memory = _MEMORY.search(cells[1])
    if memory is not None:
        draft.put("used_bytes", memory.group(1))
        draft.put("total_bytes", memory.group(2))
    elif cells[1]:
        draft.distrust("used_bytes", cells[1])
    busy = cells[2].split()
    draft.put("gpu_utilization_ratio", busy[0] if busy else None)
    if "ERR!" in cells[0]:
        draft.distrust("state", cells[0])
        # A card of which neither state nor utilization can be read does not answer any more; a fan
        # or a power sensor alone may fail on a card that works.
        draft.is_lost = draft.is_lost or cells[2].startswith("ERR!")
