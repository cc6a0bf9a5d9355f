"""Measures of device memory: the ledger, and what the allocator's record says."""

import enum
from collections.abc import Mapping

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence

BLOCKS = (
    "weights",
    "gradients",
    "optimizer_states",
    "activations",
    "kv_cache",
    "inputs",
    "temporaries",
    "communication_buffers",
    "allocator_rounding",
    "allocator_cached",
    "private_pools",
    "non_pytorch",
    "other_processes",
    "free",
    "unattributed",
)
"""The entries of the ledger, in the order of the JSON contract."""


class Moment(enum.Enum):
    """The moment that a ledger describes."""

    OOM = "OOM"
    PEAK = "PEAK"
    DUMP = "DUMP"


class Basis(enum.Enum):
    """What a ledger's attribution rests on."""

    REGISTRY = "REGISTRY"
    STACKS = "STACKS"
    TEXT = "TEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationSite:
    """Live memory allocated at one place in the program.

    Attributes:
        label: "file.py:120 in forward", the innermost meaningful frame; "(no stack recorded)" without one.
        block: the ledger's entry that it was counted to.
        live_bytes: live at the ledger's moment, rounded as the allocator rounds.
        count: allocations.
        largest_bytes: the largest one.
        why: why it was counted to that block, in a few words.
        stack: the meaningful frames, innermost first, at most 12, "file.py:120 in forward".
    """

    label: str
    block: str
    live_bytes: int
    count: int
    largest_bytes: int
    why: str
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLedger(Evidence):
    """A closed equation of one device's memory at one moment.

    The entries that are not None sum to `device_bytes` where that is known; otherwise to `reserved_bytes` and what the driver had
    free, as far as these are known.

    Attributes:
        device_index: the device.
        at: the moment.
        device_bytes: the device's capacity; None where no evidence tells it.
        entries: bytes by name of BLOCKS; None is unknown, never 0.
        basis: what the attribution rests on.
        allocated_bytes: live blocks after rounding, at the moment; None where unknown.
        reserved_bytes: obtained from the driver by the caching allocator, at the moment; None where unknown.
        sites: the largest sites, largest first, at most 40.
        notes: what the reader must know ("the record began after 1.2 GiB had been allocated").
        kept_bytes: of `unsplit_bytes`, what the driver may keep for itself, where the capacity is the maker's figure: nobody's fault.
    """

    device_index: int
    at: Moment
    device_bytes: int | None
    entries: Mapping[str, int | None]
    basis: Basis
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    sites: tuple[AllocationSite, ...] = ()
    notes: tuple[str, ...] = ()
    kept_bytes: int = 0

    def entry(self, block: str) -> int:
        """Bytes of a block, with unknown counted as 0 for comparisons only."""
        return self.entries.get(block) or 0

    @property
    def unsplit_bytes(self) -> int:
        """Of `unattributed`, what is not the allocator's: memory outside of it whose owner is unknown, and where `free` is None, free."""
        if self.device_bytes is None or self.reserved_bytes is None:
            return 0
        told = self.reserved_bytes + self.entry("free") + self.entry("non_pytorch") + self.entry("other_processes")
        return min(max(0, self.device_bytes - told), self.entry("unattributed"))

    @property
    def outside_bytes(self) -> int | None:
        """What is neither free nor the allocator's: the driver's, libraries', other processes'; None where that is not known."""
        if self.device_bytes is None or self.reserved_bytes is None or self.entries.get("free") is None:
            return None
        return self.entry("non_pytorch") + self.entry("other_processes") + self.unsplit_bytes

    def largest(self) -> tuple[str, int] | None:
        """The largest entry among what PyTorch holds (not free, not cached, not unattributed); None where all are unknown."""
        outside = {"free", "allocator_cached", "unattributed", "allocator_rounding"}
        held = [(name, size) for name, size in self.entries.items() if size and name not in outside]
        return max(held, key=lambda pair: pair[1], default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorRecord(Evidence):
    """What an allocator snapshot says of one device besides the ledger.

    Attributes:
        device_index: the device.
        event_count: events recorded (0: no history).
        record_is_complete: False where much live memory has no allocation event.
        moment: the moment that the ledger of this device describes.
        moment_live_bytes: memory taken then, blocks awaiting another stream included; None where unknown.
        unrecorded_live_bytes: of that, what has no allocation event in the record.
        dump_allocated_bytes / dump_reserved_bytes: live and reserved at the dump.
        peak_allocated_bytes / peak_reserved_bytes: the largest within the record; equal to the dump's without history.
        peak_phase: the phase of the allocation that made the peak, by its stack ("forward", "backward", "optimizer step", ...).
        oom_requested_bytes / oom_free_bytes: of the last `oom` event; None without one.
        oom_count: `oom` events.
        largest_free_block_bytes: the largest inactive block at the moment of the ledger.
        pending_free_bytes: blocks awaiting another stream at the dump.
        private_pool_bytes: reserved by segments of private pools.
        expandable_segment_bytes: reserved by expandable segments.
        segment_alloc_count / segment_free_count: driver allocations and frees within the record.
        distinct_large_sizes: distinct requested sizes ≥ 1 MiB among the allocations of the record.
        allocator_settings: as recorded; empty where the snapshot has none.
        growth_bytes_per_step: robust slope of live bytes after each optimizer step; None with fewer than 20 steps.
        growth_sites: the sites that grew, largest first.
    """

    device_index: int
    event_count: int
    record_is_complete: bool
    unrecorded_live_bytes: int
    dump_allocated_bytes: int
    dump_reserved_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    moment: Moment = Moment.DUMP
    moment_live_bytes: int | None = None
    peak_phase: str = "unknown"
    oom_requested_bytes: int | None = None
    oom_free_bytes: int | None = None
    oom_count: int = 0
    largest_free_block_bytes: int = 0
    pending_free_bytes: int = 0
    private_pool_bytes: int = 0
    expandable_segment_bytes: int = 0
    segment_alloc_count: int = 0
    segment_free_count: int = 0
    distinct_large_sizes: int = 0
    allocator_settings: tuple[tuple[str, str], ...] = ()
    growth_bytes_per_step: float | None = None
    growth_sites: tuple[AllocationSite, ...] = ()
