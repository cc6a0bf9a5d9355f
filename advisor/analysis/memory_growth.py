"""Find memory that grows from step to step: a robust slope of what is live after each optimizer step, and who holds it."""

import numpy as np
from numpy.typing import NDArray

from advisor.analysis.device_record import Record
from advisor.analysis.training_phases import BACKWARD, FORWARD, OPTIMIZER
from advisor.model.dataclass import dataclass

LEAST_STEPS = 20
"""Fewer steps cannot tell growth from the noise of a warm-up."""

WARM_UP_STEPS = 3
"""The first steps make states and fill caches."""

MOST_POINTS = 300
"""Steps that the slope is taken over; of more, evenly spaced ones. Theil-Sen takes every pair of them."""

STEP_MARKS = ("Optimizer.step#", "ProfilerStep#")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growth:
    """How live memory changes over the steps of a record.

    Attributes:
        bytes_per_step: median of the slopes between all pairs of steps (Theil 1950, Sen 1968), of live bytes after each step.
        rows: uses that were made after the warm-up and outlive at least half of the remaining steps; none where nothing grows.
    """

    bytes_per_step: float
    rows: NDArray[np.int64]


def growth(record: Record) -> Growth | None:
    """The growth over a record; None with fewer than 20 steps."""
    marks = step_ends(record)
    if len(marks) < LEAST_STEPS:
        return None
    marks = marks[WARM_UP_STEPS:]
    chosen = np.unique(np.linspace(0, len(marks) - 1, min(MOST_POINTS, len(marks))).astype(np.int64))
    live = record.timeline.allocated_bytes[marks[chosen] + 1].astype(np.float64)
    first, second = np.triu_indices(len(chosen), 1)
    slope = float(np.median((live[second] - live[first]) / (chosen[second] - chosen[first])))
    uses = record.timeline.uses
    last = int(marks[-1])
    middle = int(marks[len(marks) // 2])
    survivors = (uses.start > marks[0]) & (uses.start <= middle) & (uses.end > last)
    return Growth(bytes_per_step=slope, rows=np.flatnonzero(survivors & (slope > 0)))


def step_ends(record: Record) -> NDArray[np.int64]:
    """The last event of each optimizer step: by the stacks of its allocations, else by the marks in the history.

    A step is a run of the optimizer's allocations with a forward or backward pass between it and the next.
    """
    runs = record.phases.run_ends(OPTIMIZER)
    marks = _marked(record)
    if record.phases.has(OPTIMIZER) and record.phases.has(FORWARD, BACKWARD):
        return runs if len(runs) >= len(marks) else marks
    return marks


def _marked(record: Record) -> NDArray[np.int64]:
    time_us = record.device.events.time_us
    for prefix in STEP_MARKS:
        ends = sorted(mark.time_us for mark in record.snapshot.annotations if not mark.is_start and mark.name.startswith(prefix))
        if ends and len(time_us) and (time_us >= 0).all():
            rows = np.searchsorted(np.maximum.accumulate(time_us), np.array(ends), "right") - 1
            return np.unique(rows[rows >= 0])
    return np.zeros(0, np.int64)
