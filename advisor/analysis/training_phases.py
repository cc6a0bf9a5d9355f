"""What the program was doing when: forward, backward and optimizer runs, by the stacks of the allocations."""

import numpy as np
from numpy.typing import NDArray

from advisor.analysis.stack_frames import Role
from advisor.analysis.stack_reading import StackReading
from advisor.model.dataclass import dataclass
from advisor.model.snapshot import NOT_RECORDED, Action, EventTable

Rows = NDArray[np.int64]

NEVER = 1 << 62
"""Stands for "no such event later in the record"."""

FORWARD, BACKWARD, OPTIMIZER = 1, 2, 3
"""Codes of phases; 0 is none."""

PHASE_OF = {
    Role.FORWARD: FORWARD,
    Role.CACHE: FORWARD,
    Role.RECOMPUTE: BACKWARD,
    Role.BACKWARD: BACKWARD,
    Role.OPTIMIZER: OPTIMIZER,
}

NAMES = {
    Role.CONSTRUCTION: "loading",
    Role.LOADING: "loading",
    Role.FORWARD: "forward",
    Role.CACHE: "forward",
    Role.RECOMPUTE: "backward",
    Role.BACKWARD: "backward",
    Role.OPTIMIZER: "optimizer step",
    Role.INPUT: "data",
    Role.COMMUNICATION: "communication",
    Role.SAVING: "checkpoint",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Phases:
    """The allocations that decide a phase.

    Attributes:
        rows: their events, ascending.
        codes: their phases.
    """

    rows: Rows
    codes: NDArray[np.int8]

    def has(self, *codes: int) -> bool:
        """Whether the record holds any of these phases."""
        return bool(np.isin(self.codes, codes).any())

    def next_of(self, codes: tuple[int, ...], after: Rows) -> Rows:
        """For each event, the first later one of these phases; NEVER without one."""
        rows = self.rows[np.isin(self.codes, codes)]
        found: Rows = np.append(rows, NEVER)[np.searchsorted(rows, after, "right")]
        return found

    def at(self, rows: Rows) -> NDArray[np.int8]:
        """The phase of the last deciding allocation at or before each event; 0 before the first."""
        return np.append(np.int8(0), self.codes)[np.searchsorted(self.rows, rows, "right")]

    def following(self, rows: Rows) -> NDArray[np.int8]:
        """The phase of the first deciding allocation after each event; 0 after the last."""
        return np.append(self.codes, np.int8(0))[np.searchsorted(self.rows, rows, "right")]

    def run_starts(self, code: int) -> Rows:
        """The first event of each run of a phase."""
        if not len(self.codes):
            return np.zeros(0, np.int64)
        changes = np.append(True, self.codes[1:] != self.codes[:-1])
        rows: Rows = self.rows[changes & (self.codes == code)]
        return rows

    def run_ends(self, code: int) -> Rows:
        """The last deciding event of each run of a phase."""
        if not len(self.codes):
            return np.zeros(0, np.int64)
        changes = np.append(self.codes[1:] != self.codes[:-1], True)
        rows: Rows = self.rows[changes & (self.codes == code)]
        return rows


def phases(events: EventTable, readings: tuple[StackReading, ...]) -> Phases:
    """The phases of a record. An optimizer that runs inside backward (a gradient hook) belongs to the backward run."""
    code_of = np.array(
        [
            BACKWARD if reading.role is Role.OPTIMIZER and reading.on_autograd_thread else PHASE_OF.get(reading.role, 0)
            for reading in readings
        ]
        + [0],
        np.int8,
    )
    allocations = np.flatnonzero((events.action == Action.ALLOC) & (events.stack != NOT_RECORDED))
    codes = code_of[events.stack[allocations]]
    decides = codes > 0
    return Phases(rows=allocations[decides], codes=codes[decides])
