"""Builders of a watched training loop, for the cases of rules that read one."""

from __future__ import annotations

from typing import Any

from advisor.model.evidence import Source
from advisor.model.run import LoopTimes

RUN = Source(path="runs/20260101T120000-1a2b3c4d/rank-00000")


def a_loop(*, phases: dict[str, float] | None = None, **fields: Any) -> LoopTimes:  # noqa: ANN401 - the fields of LoopTimes
    """200 steps of 100 ms: forward 30, backward 55, optimizer 10, data 3, the rest 2; name phases (ms a step) to change them."""
    usual = {"data_wait": 3.0, "forward": 30.0, "backward": 55.0, "optimizer": 10.0, "other": 2.0}
    steps = fields.pop("step_count", 200)
    spent = {name: milliseconds * 1e-3 * steps for name, milliseconds in (usual | (phases or {})).items()}
    base: dict[str, Any] = {
        "source": RUN,
        "window_seconds": sum(spent.values()),
        "step_count": steps,
        "step_seconds": sum(spent.values()) / steps,
        "phase_seconds": spent,
        "batch_sizes": (32, 32),
        "worker_count": 4,
        "shape_count": 1,
        "flags": {},
    }
    return LoopTimes(**(base | fields))
