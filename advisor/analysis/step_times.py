"""The steps of a trace one by one → how long each took, and whether the first ones are warm-up."""

import re

import numpy as np

from advisor.analysis.device_timeline import SECOND_NS
from advisor.analysis.distinct import median
from advisor.analysis.named_events import named_rows
from advisor.analysis.steps import Steps, steps
from advisor.model.trace import HOST_CALLS, Category, KinetoTrace
from advisor.model.waits import StepTimes

SLOW_RATIO = 1.5
"""Of the median of the later steps: natural variation of equal steps stays well below."""

FEWEST_STEPS = 3
"""Steps; with fewer there is no rest to compare the first with."""

MOST_SLOW_LATER_RATIO = 0.25
"""Of the later steps: where more of them are slow too, steps vary, and the first are nothing
special."""

_WARM_UP_CALLS = re.compile(
    r"^(?:cuda|hip|cu)(?:Malloc|Free|HostAlloc|HostMalloc|ModuleLoad\w*|LibraryLoad\w*|StreamCreate\w*|"
    r"EventCreate\w*|GetDeviceProperties\w*)$|^(?:compile|dynamo|inductor|triton)\b|_compile\b",
    re.IGNORECASE,
).search


def step_times(trace: KinetoTrace) -> StepTimes | None:
    """The steps' durations; None where no step is marked."""
    marked = steps(trace)
    durations = (marked.end_ns - marked.start_ns) / SECOND_NS
    if not len(durations):
        return None
    leading, typical = _leading(durations)
    return StepTimes(
        source=trace.source.at("host"),
        rank=trace.rank,
        marked_by=marked.marked_by,
        durations_seconds=tuple(durations.tolist()),
        median_seconds=typical,
        first_excess_seconds=float((durations[:leading] - typical).sum()),
        slow_first_count=leading,
        warm_up_marks=_only_early(trace, marked, leading) if leading else (),
    )


def steady_steps(trace: KinetoTrace) -> Steps:
    """The steps without the leading slow ones."""
    marked = steps(trace)
    durations = (marked.end_ns - marked.start_ns) / SECOND_NS
    leading = _leading(durations)[0] if len(durations) else 0
    return Steps(marked.marked_by, marked.start_ns[leading:], marked.end_ns[leading:])


def _leading(durations: "np.typing.NDArray[np.float64]") -> tuple[int, float]:
    """How many leading steps are slow, and the typical duration of the others in seconds."""
    typical = median(durations[1:]) if len(durations) > 1 else float(durations[0])
    slow = durations > SLOW_RATIO * typical
    leading = int(slow.argmin()) if not slow.all() else 0
    if len(durations) < FEWEST_STEPS or slow[leading:].mean() > MOST_SLOW_LATER_RATIO:
        leading = 0
    return leading, typical


def _only_early(trace: KinetoTrace, marked: Steps, leading: int) -> tuple[tuple[str, int], ...]:
    """What happened in the leading steps and at most a tenth as often in all later ones."""
    rows = named_rows(trace, _WARM_UP_CALLS, *HOST_CALLS, Category.OPERATOR, Category.ANNOTATION)
    begun = trace.start_ns[rows]
    early = rows[(begun >= marked.start_ns[0]) & (begun < marked.end_ns[leading - 1])]
    late = rows[begun >= marked.end_ns[leading - 1]]
    counts = np.bincount(trace.name[early], minlength=len(trace.names))
    later = np.bincount(trace.name[late], minlength=len(trace.names))
    only = ((counts > 0) & (later * 10 <= counts)).nonzero()[0]
    ordered = sorted(only.tolist(), key=lambda code: -int(counts[code]))
    return tuple((trace.names[code], int(counts[code])) for code in ordered[:8])
