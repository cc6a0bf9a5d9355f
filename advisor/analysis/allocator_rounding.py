"""How PyTorch's caching allocator rounds a request to a block.

From c10/cuda/CUDACachingAllocator.cpp (torch 2.0 to 2.13): `round_size`, `roundup_power2_next_division`, `should_split`.
"""

import numpy as np
from numpy.typing import NDArray

from advisor.model.dataclass import dataclass, field
from advisor.model.snapshot import AllocatorSnapshot

MINIMUM_BLOCK_BYTES = 512
"""Every block is a multiple of this."""

SMALL_REQUEST_BYTES = 1024**2
"""Rounded requests up to this come from the small pool; also the largest remainder that the large pool does not split off."""

FIRST_DIVISION_BITS = 20
"""`roundup_power2_divisions` has one setting a power of two, from 1 MiB (2 to the 20th) on."""

DIVISION_COUNT = 16
"""Sixteen of them; the last one holds for everything larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """The allocator's settings that decide a block's size.

    Attributes:
        divisions: of each power of two from 1 MiB on; 0 and 1 mean plain rounding to 512 bytes.
        max_split_bytes: blocks from this size on are never split.
        splits_all: remainders of the large pool are split off down to 512 bytes, as with expandable segments.
        rounds: False for snapshots of the profiler, whose sizes are the tensors' own.
    """

    divisions: tuple[int, ...] = field(default=(0,) * DIVISION_COUNT)
    max_split_bytes: int = 1 << 62
    splits_all: bool = False
    rounds: bool = True

    def rounded(self, requested_bytes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The least block for each request, in bytes; a request of 0 makes no block of its own and is taken as one of 1 byte."""
        if not self.rounds:
            return requested_bytes
        least = np.maximum(requested_bytes, 1)
        plain = (least + (MINIMUM_BLOCK_BYTES - 1)) // MINIMUM_BLOCK_BYTES * MINIMUM_BLOCK_BYTES
        if max(self.divisions) <= 1:
            return plain
        bits = np.frexp(least.astype(np.float64))[1].astype(np.int64) - 1
        floor = np.int64(1) << bits
        division = np.array(self.divisions, np.int64)[np.clip(bits - FIRST_DIVISION_BITS, 0, DIVISION_COUNT - 1)]
        applies = (division > 1) & (least > MINIMUM_BLOCK_BYTES * division) & (least != floor)
        piece = np.maximum(floor >> (np.frexp(np.maximum(division, 1).astype(np.float64))[1] - 1), 1)
        return np.where(applies, (least + piece - 1) // piece * piece, plain)


def rounding_of(snapshot: AllocatorSnapshot) -> Rounding:
    """The rounding that a snapshot's recorded settings ask for; the allocator's defaults where none were recorded."""
    divisions = [0] * DIVISION_COUNT
    for power in range(DIVISION_COUNT):
        divisions[power] = min(_number(snapshot.setting(f"roundup_power2_divisions.{1 << power}")) or 0, 1 << 20)
    split = _number(snapshot.setting("max_split_size"))
    expandable = snapshot.setting("expandable_segments") == "True" or any(
        device.segments.is_expandable.any() for device in snapshot.devices
    )
    return Rounding(
        divisions=tuple(divisions),
        max_split_bytes=split if split and split > 0 else 1 << 62,
        splits_all=bool(expandable),
        rounds=not snapshot.is_from_profiler,
    )


def _number(text: str | None) -> int | None:
    try:
        number = int(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1 << 62 else None
