"""Text tables that PyTorch prints: operator tables, memory summaries and statistics."""

from collections.abc import Mapping

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One row of `key_averages().table()`; a column that the table lacks is None. Times in seconds, memory in bytes.

    The ratios are the printed percentages over 100: of all self CPU time, of all CPU time, of all self device time. They tell
    what a cut table's lost footer would.
    """

    name: str
    calls: int | None = None
    self_cpu_seconds: float | None = None
    cpu_seconds: float | None = None
    self_device_seconds: float | None = None
    device_seconds: float | None = None
    self_cpu_bytes: int | None = None
    self_device_bytes: int | None = None
    flops: float | None = None
    input_shapes: str | None = None
    self_cpu_ratio: float | None = None
    cpu_ratio: float | None = None
    self_device_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTable(Evidence):
    """An operator table as printed.

    Attributes:
        rows: in the printed order.
        device: "CUDA", "XPU", "MPS", ... as the column headings say; empty where the table has no device columns.
        self_cpu_total_seconds / self_device_total_seconds: of the footer; None where it was cut off.
        is_cut: True where the table is visibly incomplete (no footer, no heading, a row torn).
        columns: the headings, as printed (or as inferred, then a gap says so).
    """

    rows: tuple[OperatorRow, ...]
    device: str = ""
    self_cpu_total_seconds: float | None = None
    self_device_total_seconds: float | None = None
    is_cut: bool = False
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySummary(Evidence):
    """`torch.cuda.memory_summary()` or `memory_stats()`: counters of one device. None is unknown.

    Attributes:
        device_index: the device; None where cut off.
        ooms / retries: the counters of failed requests and of cudaMalloc retries.
        current: bytes by metric: "allocated", "active", "reserved", "inactive_split", "requested", "non_releasable".
        peak: the same at their peaks.
        counts: other counters, as they are named in `memory_stats`.
        resolution_bytes: half of the printed unit; 0 for memory_stats.
        is_cut: True where the text ends inside the table.
    """

    device_index: int | None
    ooms: int | None = None
    retries: int | None = None
    current: Mapping[str, int]
    peak: Mapping[str, int]
    counts: Mapping[str, int]
    resolution_bytes: int = 0
    is_cut: bool = False
