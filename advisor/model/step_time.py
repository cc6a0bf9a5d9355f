"""Measures of time: where a step goes, and what the kernels and the host were doing."""

import enum
from collections.abc import Mapping

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence

PARTS = (
    "compute",
    "exposed_communication",
    "exposed_copies",
    "input_wait",
    "synchronization",
    "launch",
    "other_idle",
)
"""The parts of the breakdown, in the order of the JSON contract; they partition the window."""


class Bound(enum.Enum):
    """What sets the pace."""

    COMPUTE = "COMPUTE"
    MEMORY = "MEMORY"
    LAUNCH = "LAUNCH"
    INPUT = "INPUT"
    COMMUNICATION = "COMMUNICATION"
    HOST = "HOST"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCost:
    """One operator (or kernel) over the whole window; None is unknown.

    Attributes:
        name: as PyTorch names it ("aten::mm"), or the kernel's name where no operator is recorded.
        device_seconds: device time of its own kernels; CPU self time in a CPU-only trace.
        calls: how often.
        flops / moved_bytes: from the recorded shapes; None where shapes are missing or the operator is not modelled.
        attained_ratio: FLOP/s over the roofline's attainable FLOP/s on the known device.
        bound: by its intensity against the ridge point.
    """

    name: str
    device_seconds: float
    calls: int
    flops: float | None = None
    moved_bytes: float | None = None
    attained_ratio: float | None = None
    bound: Bound = Bound.UNKNOWN

    @property
    def intensity(self) -> float | None:
        """FLOP per byte; None where either is unknown."""
        if self.flops is None or not self.moved_bytes:
            return None
        return self.flops / self.moved_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBreakdown(Evidence):
    """Where the time of one device went; the parts partition the window.

    Attributes:
        device_index: the device; None for a CPU-only trace.
        window_seconds: from the first to the last event that counts.
        step_count: steps in the window (ProfilerStep marks, else optimizer steps); 0 where none is marked.
        step_seconds: median step; None without steps.
        busy_ratio: union of device activity over the window; None where no device activity was recorded.
        parts: ratio by name of PARTS, each ≥ 0, summing to 1; empty where no device activity was recorded.
        seconds: the same in seconds.
        bound: what sets the pace.
        mfu_ratio: useful model FLOPs over the dense peak; None where either is unknown.
        notes: what the reader must know ("no launches recorded, idle time cannot be split").
    """

    device_index: int | None
    window_seconds: float
    step_count: int
    step_seconds: float | None
    busy_ratio: float | None
    parts: Mapping[str, float]
    seconds: Mapping[str, float]
    bound: Bound
    mfu_ratio: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_of_device(self) -> bool:
        """Whether the parts are a device's; of a job on the processor they are the processor's."""
        return self.device_index is not None and bool(self.parts)

    def per_step(self, part: str) -> float | None:
        """Seconds a step of a part; None where steps or parts are unknown."""
        if not self.step_count or part not in self.seconds:
            return None
        return self.seconds[part] / self.step_count
