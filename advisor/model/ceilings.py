"""What a device can do at most, and what the user declared about the case."""

from collections.abc import Mapping

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of the catalogue with where it comes from.

    `verified` is False where no primary source backs it.
    """

    value: float
    source: str
    verified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCeilings(Evidence):
    """A device of the catalogue. Figures are None where no source gives them.

    Attributes:
        name: as the catalogue calls it.
        matched_name: the name that was looked up, as the runtime printed it.
        vendor: "NVIDIA" or "AMD".
        architecture: "Hopper", "CDNA3", ...
        capability: "9.0", "gfx942", ...
        sm_count: streaming multiprocessors or compute units of one device as PyTorch sees it.
        memory_bytes: nominal capacity; for a name that exists in two sizes, None unless the name
            tells.
        bandwidth: bytes per second between device memory and the compute units.
        dense_peaks: FLOP/s without structured sparsity by dtype: "fp64", "fp32", "tf32", "fp16",
            "bf16", "fp8", "int8", "fp4".
        measured_peaks: the best measured FLOP/s by dtype, where somebody published one.
        link_bandwidth: NVLink or Infinity Fabric, both directions, bytes per second.
        power_watts: board power.
        notes: traps and conflicts between sources.
        memory_kind: "HBM3", "GDDR6", ...; empty where unknown. GDDR cards lose a part of it to ECC.
        unverified: which of the plain figures no primary source backs: "memory_bytes", "sm_count", "capability".
    """

    name: str
    matched_name: str
    vendor: str
    architecture: str
    capability: str
    sm_count: int | None
    memory_bytes: int | None
    bandwidth: Figure | None
    dense_peaks: Mapping[str, Figure]
    measured_peaks: Mapping[str, Figure]
    link_bandwidth: Figure | None = None
    power_watts: Figure | None = None
    notes: str = ""
    memory_kind: str = ""
    unverified: tuple[str, ...] = ()

    def ridge_point(self, dtype: str) -> float | None:
        """Dense peak over bandwidth, FLOP per byte; None where either is unknown."""
        peak = self.dense_peaks.get(dtype)
        if peak is None or self.bandwidth is None:
            return None
        return peak.value / self.bandwidth.value
