"""An allocator snapshot as columns: what `torch.cuda.memory._snapshot()` recorded, one table a kind and device.

Numpy is named in annotations only; this module itself needs the standard library alone.
"""

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence
from advisor.model.failure import Frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int8Column: TypeAlias = NDArray[np.int8]
    Int32Column: TypeAlias = NDArray[np.int32]
    Int64Column: TypeAlias = NDArray[np.int64]
    FlagColumn: TypeAlias = NDArray[np.bool_]

NOT_RECORDED = -1
"""Stands in a column where this row lacks the key: an address, a time, a requested size, a stack, a category, a text."""


class Action(enum.IntEnum):
    """What an event of the allocator's history is; the numbers are codes of ours, the meanings PyTorch's."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    SNAPSHOT = 7
    OOM = 8
    ANNOTATE = 9
    OTHER = 10


class BlockState(enum.IntEnum):
    """The state of a block at the dump."""

    INACTIVE = 0
    ALLOCATED = 1
    PENDING_FREE = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventTable:
    """The recorded events of one device, oldest first; every column has one row an event.

    Attributes:
        action: codes of `Action`.
        address: of the block or segment; NOT_RECORDED for an `oom`.
        size_bytes: requested bytes of allocations and frees, segment or mapped bytes, the refused request of an `oom`.
        stream: the CUDA stream's handle, 0 for the default one.
        stack: index into the snapshot's stacks; NOT_RECORDED where no context was kept (an empty stack is one that was
            captured on a thread without Python frames).
        time_us: microseconds since 1970; NOT_RECORDED before torch 2.3.
        category: index into the snapshot's categories (snapshots made by the profiler).
        text: index into the snapshot's texts (`user_metadata`, torch 2.10 on).
        device_free_bytes: what the driver had free at each `oom`, by the event's row.
    """

    action: "Int8Column"
    address: "Int64Column"
    size_bytes: "Int64Column"
    stream: "Int64Column"
    stack: "Int32Column"
    time_us: "Int64Column"
    category: "Int8Column"
    text: "Int32Column"
    device_free_bytes: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentTable:
    """The segments of one device at the dump, by address.

    Attributes:
        address: of its first byte.
        size_bytes: obtained from the driver (of an expandable segment: one mapped run of it).
        stream: that it belongs to.
        pool: index into the device's pools; 0 is the default pool.
        is_small: of the pool for blocks of at most 1 MiB.
        is_expandable: part of an expandable segment.
    """

    address: "Int64Column"
    size_bytes: "Int64Column"
    stream: "Int64Column"
    pool: "Int32Column"
    is_small: "FlagColumn"
    is_expandable: "FlagColumn"

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockTable:
    """The blocks of one device at the dump, segment by segment.

    Attributes:
        segment: row of its segment.
        address: of its first byte (accumulated from the segment's before torch 2.1).
        size_bytes: after rounding.
        requested_bytes: before rounding; NOT_RECORDED where unknown.
        state: codes of `BlockState`.
        stack: index into the snapshot's stacks, of the live use; NOT_RECORDED without one.
    """

    segment: "Int32Column"
    address: "Int64Column"
    size_bytes: "Int64Column"
    requested_bytes: "Int64Column"
    state: "Int8Column"
    stack: "Int32Column"

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceSnapshot:
    """One device of a snapshot.

    Attributes:
        index: the device's ordinal.
        events: its history; empty where none was recorded.
        segments / blocks: its state at the dump.
        pools: identifiers of its pools, the default one first.
    """

    index: int
    events: EventTable
    segments: SegmentTable
    blocks: BlockTable
    pools: tuple[tuple[int, int], ...] = ((0, 0),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A `record_function` mark in the history: "ProfilerStep#3", "Optimizer.step#AdamW.step".

    Attributes:
        name: as recorded.
        is_start: whether it opens or closes the range.
        device_index: the device it was recorded for.
        time_us: microseconds since 1970.
    """

    name: str
    is_start: bool
    device_index: int
    time_us: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocatorSnapshot(Evidence):
    """A whole snapshot. Arrays are read-only; two snapshots are the same one if they are the same object.

    Attributes:
        devices: those with segments or events, by ordinal.
        frames: every distinct frame once.
        stacks: every distinct stack once, as indices into `frames`, innermost first.
        categories: names of the profiler's categories; empty in snapshots of the allocator itself.
        texts: distinct non-empty `user_metadata`.
        settings: the allocator's settings, flattened to text; empty before torch 2.3.
        annotations: `record_function` marks, in the recorded order.
        is_from_profiler: made by `_memory_viz.profile_plot`; its segments are invented and its sizes are tensors' sizes.
    """

    devices: tuple[DeviceSnapshot, ...]
    frames: tuple[Frame, ...] = ()
    stacks: tuple[tuple[int, ...], ...] = ()
    categories: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    annotations: tuple[Annotation, ...] = ()
    is_from_profiler: bool = False

    # Not what Evidence has: two files of one name are two snapshots.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def setting(self, name: str) -> str | None:
        """One of the allocator's settings; None where it was not recorded."""
        return dict(self.settings).get(name)

    def frames_of(self, stack: int) -> tuple[Frame, ...]:
        """The frames of a stack, innermost first; none for NOT_RECORDED."""
        return tuple(self.frames[index] for index in self.stacks[stack]) if stack >= 0 else ()
