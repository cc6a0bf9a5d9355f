"""The record of an estimate: blocks of memory, what they rest on, and whether they fit a device."""

import enum

from advisor.model.ceilings import DeviceCeilings
from advisor.model.dataclass import dataclass

GIBIBYTE = 1024**3

CONTEXT_FLOOR_BYTES = int(0.3 * GIBIBYTE)
CONTEXT_CEILING_BYTES = int(1.8 * GIBIBYTE)
"""Device memory of a process outside PyTorch's allocator, the CUDA context and libraries: the band
of rule MEM602. Assumed."""
ALLOCATOR_WASTE_CEILING_RATIO = 0.05
"""Rounding and fragmentation on top of what tensors need, at most. Assumed: a replay of real
allocations tells."""

HBM_USABLE_RATIO = 0.98
"""The runtime's total over the vendor's GB read as GiB: 0.986 (V100 16 GB) to 1.0 (MI300X) in
recorded device properties."""
GDDR_USABLE_RATIO = 0.90
"""The same for GDDR cards, on which ECC takes a sixteenth and more: 44.4 of 48 on an L40S, 14.6 of
16 on a T4."""


class Fit(enum.Enum):
    """The verdict."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    TOO_NEAR = "too near to say"
    UNKNOWN = "cannot be said"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """One part of the memory of a job; bytes are of one device.

    Attributes:
        name: what it is.
        block: "weights", "gradients", "optimizer_states", "activations", "logits", "kv_cache",
            "temporaries" or "overhead".
        counted_bytes: by the usual arithmetic; None where the model's shape is not known.
        ceiling_bytes: the most that plain implementations hold.
        floor_bytes: the least; `counted_bytes` where nothing else is said.
        basis: the arithmetic, or the source of an assumption, in words.
    """

    name: str
    block: str
    counted_bytes: int | None
    ceiling_bytes: int | None
    basis: str
    floor_bytes: int | None = None

    @property
    def least_bytes(self) -> int | None:
        """The floor, or what was counted."""
        return self.counted_bytes if self.floor_bytes is None else self.floor_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a device offers: a range, because vendors' GB and the runtime's total differ."""

    name: str
    floor_bytes: int
    ceiling_bytes: int
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """What a job needs of one device.

    Attributes:
        items: all parts, in the order in which they are told.
        floor_bytes: the least peak; None where a part is unknown and nothing can be said from
            below.
        counted_bytes: the sum of what was counted, assumptions (overhead) left out; None where a
            part is unknown.
        ceiling_bytes: the most, assumptions included; None where a part is unknown.
        notes: what the reader must know.
    """

    items: tuple[MemoryItem, ...]
    floor_bytes: int
    counted_bytes: int | None
    ceiling_bytes: int | None
    notes: tuple[str, ...] = ()

    def block_bytes(self, block: str) -> int | None:
        """What was counted for a block; None where a part of it is unknown."""
        return total([item.counted_bytes for item in self.items if item.block == block])

    def fit(self, capacity: Capacity | None) -> Fit:
        """Whether it fits: certain only where floor and ceiling agree over the capacity's range."""
        if capacity is None:
            return Fit.UNKNOWN
        if self.floor_bytes > capacity.ceiling_bytes:
            return Fit.DOES_NOT_FIT
        if self.ceiling_bytes is None:
            return Fit.UNKNOWN
        return Fit.FITS if self.ceiling_bytes <= capacity.floor_bytes else Fit.TOO_NEAR


def capacity_of(device: DeviceCeilings) -> Capacity | None:
    """The capacity of a device of the catalogue, or of one given by numbers.

    Returns:
        The range, or None where it is not known.
    """
    size, kind = device.memory_bytes, device.memory_kind
    if size is None:
        return None
    if not kind:
        return declared_capacity(size, device.name)
    recalled = " (not verified)" if "memory_bytes" in device.unverified else ""
    usable_ratio = HBM_USABLE_RATIO if kind.startswith("HBM") else GDDR_USABLE_RATIO
    return Capacity(
        name=device.name,
        floor_bytes=int(size * usable_ratio),
        ceiling_bytes=size,
        basis=f"{size / GIBIBYTE:.0f} GB of {kind}{recalled}, of which a runtime reports {usable_ratio:.0%} to 100%",
    )


def declared_capacity(size_bytes: int, name: str) -> Capacity:
    """A capacity that the user gave."""
    return Capacity(name=name, floor_bytes=size_bytes, ceiling_bytes=size_bytes, basis="as declared")


def overhead_items(tensor_bytes: int | None) -> tuple[MemoryItem, ...]:
    """What no tensor explains; assumed, and said to be."""
    waste = None if tensor_bytes is None else int(tensor_bytes * ALLOCATOR_WASTE_CEILING_RATIO)
    return (
        MemoryItem(
            name="CUDA context and libraries",
            block="overhead",
            counted_bytes=0,
            floor_bytes=CONTEXT_FLOOR_BYTES,
            ceiling_bytes=CONTEXT_CEILING_BYTES,
            basis="assumed 0.3 to 1.8 GiB, the band of rule MEM602",
        ),
        MemoryItem(
            name="rounding and fragmentation",
            block="overhead",
            counted_bytes=0,
            ceiling_bytes=waste,
            basis=f"assumed 0 to {ALLOCATOR_WASTE_CEILING_RATIO:.0%} of the tensors",
        ),
    )


def total(sizes: list[int | None]) -> int | None:
    """The sum, or None where one is unknown."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
