"""The marks of steps in a trace → each step's start and end."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.device_timeline import window
from advisor.analysis.named_events import named_rows
from advisor.model.dataclass import dataclass
from advisor.model.trace import Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Indices, Times

_PROFILER_STEP = re.compile(r"^ProfilerStep#\d+").match
OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#(?P<name>\w+)\.step")


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps in order; nanoseconds since the trace's origin.

    Attributes:
        marked_by: "ProfilerStep" or "Optimizer.step"; empty without marks.
        start_ns / end_ns: of each.
    """

    marked_by: str
    start_ns: "Times"
    end_ns: "Times"


def steps(trace: KinetoTrace) -> Steps:
    """By the profiler's marks, else from the end of one optimizer's update to the next's."""
    rows = annotations(trace, _PROFILER_STEP)
    if len(rows):
        return Steps("ProfilerStep", trace.start_ns[rows], trace.ends_ns(rows))
    rows = optimizer_rows(trace)
    if not len(rows):
        return Steps("", np.zeros(0, np.int64), np.zeros(0, np.int64))
    ends = trace.ends_ns(rows)
    starts = np.concatenate(([window(trace)[0]], ends[:-1]))
    return Steps("Optimizer.step", starts, ends)


def optimizer_rows(trace: KinetoTrace) -> "Indices":
    """The outermost marks of optimizers' updates: those inside another are left out."""
    rows = annotations(trace, OPTIMIZER_STEP.match)
    if not len(rows):
        return rows
    reached = np.maximum.accumulate(trace.ends_ns(rows))
    outermost = np.concatenate(([True], trace.ends_ns(rows)[1:] > reached[:-1]))
    return rows[outermost]


def annotations(trace: KinetoTrace, test: Callable[[str], object]) -> "Indices":
    """The host's annotations whose name passes a test, in order of their start."""
    return named_rows(trace, test, Category.ANNOTATION)
