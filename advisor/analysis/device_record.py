"""A device's record with what its stacks say, and the attribution of its live blocks as it grows."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from advisor.analysis.allocation_timeline import Timeline
from advisor.analysis.stack_frames import Role
from advisor.analysis.stack_reading import StackReading
from advisor.analysis.training_phases import Phases, phases
from advisor.model.dataclass import dataclass, field
from advisor.model.snapshot import AllocatorSnapshot, DeviceSnapshot

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class Attribution:
    """What the live blocks of a moment are.

    Attributes:
        rows: the live uses.
        block: the ledger's entry of each.
        why: the reason of each, in a few words.
        notes: what the reader must know.
        parameter_sizes: trainable parameters by size, as far as the record shows them.
    """

    rows: Rows
    block: list[str]
    why: list[str]
    notes: list[str] = field(default_factory=list)
    parameter_sizes: Counter[int] = field(default_factory=Counter)

    def decide(self, where: Iterable[int], block: str, why: str) -> None:
        """Attribute live uses, by their position in `rows`, unless something surer already did."""
        for at in where:
            if not self.block[at]:
                self.block[at], self.why[at] = block, why

    def undecided(self) -> Flags:
        """Which live uses nothing has explained yet."""
        return np.array([not block for block in self.block], np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """A device's record with what its stacks say; `role` has one entry a use."""

    snapshot: AllocatorSnapshot
    device: DeviceSnapshot
    timeline: Timeline
    readings: tuple[StackReading, ...]
    phases: Phases
    role: NDArray[np.int8]

    def flag(self, name: str) -> Flags:
        """A yes-or-no of the readings, one a use; no for uses without a stack."""
        values = np.array([bool(getattr(reading, name)) for reading in self.readings] + [False], np.bool_)
        return values[self.timeline.uses.stack]


def record_of(
    snapshot: AllocatorSnapshot,
    device: DeviceSnapshot,
    timeline: Timeline,
    readings: tuple[StackReading, ...],
) -> Record:
    """Join a device's timeline with the readings of its stacks."""
    role_of = np.array([int(reading.role) for reading in readings] + [int(Role.UNKNOWN)], np.int8)
    return Record(
        snapshot=snapshot,
        device=device,
        timeline=timeline,
        readings=readings,
        phases=phases(device.events, readings),
        role=role_of[timeline.uses.stack],
    )
