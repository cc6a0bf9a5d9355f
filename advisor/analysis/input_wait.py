"""A data loader's marks in a trace → how long the loop waited for batches, and the device too."""

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS, device_timeline
from advisor.analysis.distinct import distinct_places
from advisor.analysis.host_time import host_time, starved
from advisor.analysis.loader_marks import LOADER_MARK, loader_rows
from advisor.analysis.step_times import steady_steps
from advisor.analysis.steps import Steps, steps
from advisor.analysis.time_sets import TimeSet
from advisor.model.step_time import StepBreakdown
from advisor.model.trace import KinetoTrace
from advisor.model.waits import InputWait

_SINGLE, _MULTIPLE = "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"


def input_wait(trace: KinetoTrace, breakdown: StepBreakdown) -> InputWait | None:
    """The waits inside the loader's marks; None where no loader left any.

    Of several loaders (training and validation) the one that took longest is described, and the
    times are those of all.
    """
    rows = loader_rows(trace)
    if not len(rows):
        return None
    durations = trace.duration_ns[rows]
    waits = TimeSet.union(trace.start_ns[rows], trace.ends_ns(rows))
    codes, position = distinct_places(trace.name[rows])
    longest_loader = codes[np.bincount(position, weights=durations).argmax()]
    loader = iterator_of(trace.names[longest_loader])
    steady = _steady(trace)
    return InputWait(
        source=trace.source.at("host"),
        rank=trace.rank,
        loader=loader,
        is_single_process={_SINGLE: True, _MULTIPLE: False}.get(loader),
        count=len(rows),
        wait_seconds=waits.total_ns / SECOND_NS,
        exposed_seconds=_exposed_seconds(trace, breakdown, waits),
        longest_seconds=float(durations.max()) / SECOND_NS,
        window_seconds=breakdown.window_seconds,
        step_count=breakdown.step_count,
        steady_step_count=len(steady.start_ns) if steady else None,
        steady_window_seconds=float((steady.end_ns - steady.start_ns).sum()) / SECOND_NS if steady else None,
        steady_lost_seconds=_lost_seconds(trace, breakdown, waits, steady) if steady else None,
    )


def iterator_of(mark: str) -> str:
    """The iterator's class in a loader's mark; the mark itself where it has another form."""
    found = LOADER_MARK.match(mark)
    return found["iterator"] if found else mark


def _exposed_seconds(trace: KinetoTrace, breakdown: StepBreakdown, waits: TimeSet) -> float | None:
    if breakdown.device_index is None:
        return None
    idle = device_timeline(trace, breakdown.device_index).idle
    return float(idle.within(waits.start_ns, waits.end_ns).sum()) / SECOND_NS


def _steady(trace: KinetoTrace) -> Steps | None:
    """The steps behind leading slow ones; None where none leads or nothing is left."""
    steady = steady_steps(trace)
    return steady if 0 < len(steady.start_ns) < len(steps(trace).start_ns) else None


def _lost_seconds(trace: KinetoTrace, breakdown: StepBreakdown, waits: TimeSet, steady: Steps) -> float:
    lost = waits
    if breakdown.is_of_device and breakdown.device_index is not None:
        timeline = device_timeline(trace, breakdown.device_index)
        lost = starved(timeline).common(host_time(trace, timeline).fetching)
    return float(lost.within(steady.start_ns, steady.end_ns).sum()) / SECOND_NS
