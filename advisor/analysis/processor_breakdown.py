"""Where the time of a job without a device went: the processor that waits for input is the one that would compute."""

from advisor.analysis.device_timeline import window
from advisor.analysis.loader_marks import loader_rows
from advisor.analysis.time_sets import TimeSet
from advisor.model.step_time import PARTS
from advisor.model.trace import HOST_CALLS, Category, KinetoTrace

NOTE = "no device activity is recorded: nothing can be said about how busy a device was; the parts are the processor's"


def processor_parts(trace: KinetoTrace) -> dict[str, int]:
    """Nanoseconds by part of a job that ran on the processor; they sum to the window, none is negative.

    Inside the data loader's marks the job waits for input, inside operators of any thread outside of them it computes, and the rest is
    Python and what is not recorded. Empty where calls of a device's runtime are recorded: then a device worked, and its side is missing.
    """
    operators = trace.mask_of(Category.OPERATOR)
    if not operators.any() or trace.mask_of(*HOST_CALLS, Category.CONTROL).any():
        return {}
    start, end = window(trace)
    loading = loader_rows(trace)
    fetching = TimeSet.union(trace.start_ns[loading], trace.end_ns[loading])
    computing = TimeSet.union(trace.start_ns[operators], trace.end_ns[operators]).minus(fetching)
    taken = {"input_wait": fetching.total_ns, "compute": computing.total_ns}
    return dict.fromkeys(PARTS, 0) | taken | {"other_idle": end - start - sum(taken.values())}
