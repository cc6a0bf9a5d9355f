"""A run's steps → where the loop's time goes, which steps are slow and why, and what grows."""

import itertools
from typing import Any, TypeAlias

import numpy as np

from advisor.model.run import LoopTimes, RunSteps

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

WARM_UP_STEPS = 3
"""Steps left out at the start: workers start, kernels are chosen, graphs are compiled."""

LEAST_STEPS = 5
"""With fewer steps behind the warm-up a median says nothing."""

SLOW_FACTOR = 2.0
"""A step is slow from twice the median on."""

LEAST_READINGS = 8
"""Distinct moments at which memory must have been read before its growth is believed."""

PERIOD_SHARE = 0.75
"""Slow steps are periodic where three in four distances between them are the same, give or take one."""


def loop_times(run: RunSteps) -> LoopTimes | None:
    """Where the loop's time goes over the steps behind the warm-up; None with too few steps."""
    whole = ~run.flags["unfinished"]
    trains = whole & ~run.flags["without_optimizer"]
    kept = trains if trains.any() else whole
    rows = np.flatnonzero(kept)[WARM_UP_STEPS:]
    if len(rows) < LEAST_STEPS:
        return None
    seconds = run.seconds[rows]
    median = float(np.median(seconds))
    slow = seconds > SLOW_FACTOR * median
    phases = {name: column[rows] for name, column in run.phases.items()}
    figures = {name: column[rows] for name, column in run.figures.items()}
    compiled = figures["recompilation_count"]
    sizes = figures["sample_count"][figures["sample_count"] > 0]
    return LoopTimes(
        source=run.source,
        rank=run.rank,
        gaps=run.gaps,
        window_seconds=float(seconds.sum()),
        step_count=len(rows),
        step_seconds=median,
        phase_seconds={name: float(column.sum()) for name, column in phases.items()},
        gc_seconds=float(figures["gc_seconds"].sum()),
        gc_count=int(figures["gc_count"].sum()),
        cpu_seconds=float(figures["cpu_seconds"].sum()),
        on_gpu=bool(run.flags["gpu"][rows].any()),
        warm_up_seconds=float(run.seconds[: rows[0]].sum()),
        slow_count=int(slow.sum()),
        slow_every=_period(np.flatnonzero(slow)),
        slow_phase=_excess_phase(phases, slow),
        slow_excess_seconds=float((seconds[slow] - median).sum()),
        batch_sizes=(int(sizes.min()), int(sizes.max())) if len(sizes) else None,
        worker_count=int(figures["worker_count"][-1]) if figures["batch_count"].any() else None,
        backward_per_step=float(np.median(figures["backward_count"])),
        recompilation_count=int(compiled[-1] - compiled[0]),
        graph_break_count=int(figures["graph_break_count"].max()),
        shape_count=len(np.unique(figures["shape_digest"])),
        flags={name: float(column[rows].mean()) for name, column in run.flags.items()},
        context_switch_count=int(figures["context_switch_count"].sum()),
        rss_slope_bytes=_growth_bytes(run.step[rows], figures["rss_bytes"]),
        rss_first_bytes=int(figures["rss_bytes"][0]),
        rss_last_bytes=int(figures["rss_bytes"][-1]),
    )


def _period(places: Integers) -> int | None:
    """The distance at which slow steps follow each other; None where it is not one."""
    distances = [int(later - earlier) for earlier, later in itertools.pairwise(places)]
    if len(distances) < 2:  # noqa: PLR2004 - three slow steps have two distances, the least that can agree
        return None
    usual = int(np.median(distances))
    agreeing = sum(abs(distance - usual) <= 1 for distance in distances)
    return usual if usual > 1 and agreeing >= PERIOD_SHARE * len(distances) else None


def _excess_phase(phases: dict[str, Floats], slow: Flags) -> str:
    """The phase in which slow steps spend what others do not."""
    if not slow.any() or slow.all():
        return ""
    excess = {name: float(column[slow].mean() - column[~slow].mean()) for name, column in phases.items()}
    return max(excess, key=lambda name: excess[name])


def _growth_bytes(steps: Integers, rss: Floats) -> float | None:
    """The growth of resident memory a step, by least squares through the moments at which it changed; None with too few of them."""
    read = np.flatnonzero(np.diff(rss, prepend=-1.0) != 0)
    if len(read) < LEAST_READINGS:
        return None
    at, held = steps[read].astype(np.float64), rss[read]
    away = at - at.mean()
    return float((away * (held - held.mean())).sum() / (away * away).sum())
