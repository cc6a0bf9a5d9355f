"""A run's ring and the records drained from it → its steps as columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from advisor.client.layout import PHASES, STEP_FLAGS, Event, Metric, Record, Step
from advisor.client.ring_reader import NotARing, Ring, read_drained, read_ring
from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Source
from advisor.model.run import RunSteps

FIGURES = tuple(name for name in Step._fields if name not in {"step", "end_nanoseconds", "seconds", "phases", "flags"})
MOST_EVENTS = 1000


def read_run_steps(ring: bytes, drained: bytes, path: str) -> tuple[Ring, RunSteps]:
    """The ring, and the steps of both files, each once.

    Args:
        ring: the whole ring; its header tells whose it is.
        drained: the records that the sidecar kept; empty where there are none.
        path: the rank's folder, for the source.

    Raises:
        UnreadableInput: if the ring is none, or of another version.
    """
    try:
        read = read_ring(ring)
    except NotARing as error:
        raise UnreadableInput(f"{path}: {error}", "name the folder of a run that attach() of this version made") from None
    records = dict(read_drained(drained)) | dict(read.records)
    ordered = [records[sequence] for sequence in sorted(records)]
    gaps = []
    lost = max(0, read.written_count - len(ordered) - read.torn_count)
    if lost:
        gaps.append(f"{lost} records were overwritten before the sidecar kept them")
    return read, _columns(ordered, Source(path=path), read.trainer.rank, lost, tuple(gaps))


def _columns(records: Sequence[Record], source: Source, rank: int | None, lost: int, gaps: tuple[str, ...]) -> RunSteps:
    steps = [record for record in records if isinstance(record, Step)]
    flags = np.array([step.flags for step in steps], dtype=np.int64)
    phases = np.array([step.phases for step in steps], dtype=np.float64).reshape(len(steps), len(PHASES))
    metrics = {record.name: record.value for record in records if isinstance(record, Metric)}
    events = [(record.step, record.kind, record.text) for record in records if isinstance(record, Event)]
    return RunSteps(
        source=source,
        rank=rank,
        gaps=gaps,
        step=_frozen(np.array([step.step for step in steps], dtype=np.int64)),
        end_nanoseconds=_frozen(np.array([step.end_nanoseconds for step in steps], dtype=np.int64)),
        seconds=_frozen(np.array([step.seconds for step in steps], dtype=np.float64)),
        phases={name: _frozen(phases[:, place]) for place, name in enumerate(PHASES)},
        figures={name: _frozen(np.array([getattr(step, name) for step in steps], dtype=np.float64)) for name in FIGURES},
        flags={name: _frozen(flags & bit != 0) for bit, name in STEP_FLAGS.items()},
        lost_count=lost,
        metrics=tuple(sorted(metrics.items())),
        events=tuple(events[-MOST_EVENTS:]),
    )


def _frozen(column: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    column.setflags(write=False)
    return column
