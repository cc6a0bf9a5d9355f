"""What attach() saved of a run: its steps one by one, its record, and how it ended."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence

if TYPE_CHECKING:
    import numpy as np

RECORD_ITEMS = ("run_id", "commit", "config", "data_version", "seed", "environment", "metrics")
"""The seven items that make a run repeatable, as the JSON contract names them."""


FAILED_ENDS = ("exception", "signal", "host_oom", "abrupt")
"""Ways to end that nobody wanted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunSteps(Evidence):
    """The steps of one rank, oldest first; columns are read-only arrays of one length.

    Attributes:
        step: numbers from 1, int64.
        end_nanoseconds: of the trainer's monotonic clock, int64.
        seconds: of each step, float64.
        phases: seconds by phase name ("data_wait", "forward", ...), float64; they sum to `seconds`.
        figures: what else was counted, by the names of the ring's layout ("gc_seconds", "rss_bytes", ...), float64.
        flags: what was switched on, by name, bool.
        lost_count: steps that were overwritten before anybody kept them.
        metrics: the last value of each figure that the training logged.
        events: (step, kind, text) of what happened.
    """

    step: "np.ndarray[Any, np.dtype[np.int64]]"
    end_nanoseconds: "np.ndarray[Any, np.dtype[np.int64]]"
    seconds: "np.ndarray[Any, np.dtype[np.float64]]"
    phases: "Mapping[str, np.ndarray[Any, np.dtype[np.float64]]]"
    figures: "Mapping[str, np.ndarray[Any, np.dtype[np.float64]]]"
    flags: "Mapping[str, np.ndarray[Any, np.dtype[np.bool_]]]"
    lost_count: int = 0
    metrics: tuple[tuple[str, float], ...] = ()
    events: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd(Evidence):
    """How a trainer ended, as its sidecar saw it.

    Attributes:
        how: "exit", "exception", "signal", "host_oom", "abrupt", "detached", "unknown", or "running" where no end was seen.
        signal: the signal's name, where one ended it.
        exit_code: where it could be known.
        phase: what it did then.
        step: how many steps were finished.
        statements: what that is concluded from, one sentence each.
    """

    how: str
    signal: str = ""
    exit_code: int | None = None
    phase: str = ""
    step: int | None = None
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(Evidence):
    """What a run was: the seven items that make it repeatable, and facts beside them.

    Attributes:
        items: by the names of RECORD_ITEMS; an item that is not known is missing.
        facts: everything else that was noted (threads, flags, packages), by name.
    """

    items: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def missing(self) -> tuple[str, ...]:
        """Items that are not known."""
        return tuple(name for name in RECORD_ITEMS if self.items.get(name) in (None, "", {}, []))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes(Evidence):
    """Where a training loop's time goes, by its own phases, over the steps behind the first ones.

    Attributes:
        window_seconds: of the steps that were looked at.
        step_count: how many.
        step_seconds: the median step.
        phase_seconds: seconds in the window by phase.
        gc_seconds: of garbage collections in the window; `gc_count` is how many.
        cpu_seconds: processor time of the process in the window.
        on_gpu: whether the training used a GPU: phases are then the host's, and a GPU may lag behind.
        warm_up_seconds: what the steps before the window took.
        slow_count: steps of more than twice the median.
        slow_every: they come each so many steps, where they are periodic.
        slow_phase: the phase that the slow steps spent their excess in.
        slow_excess_seconds: the excess of the slow steps over the median, summed.
        batch_sizes: the least and the most samples of a step.
        worker_count: of the loader, where one gave batches.
        backward_per_step: backward passes a step, the median.
        recompilation_count: compilations of torch.compile in the window; `graph_break_count` of breaks in all.
        rss_slope_bytes: growth of resident memory a step, by a line through the readings; None with too few.
        rss_first_bytes: the first reading in the window; `rss_last_bytes` the last.
        shape_count: distinct shapes of batches in the window.
        flags: share of the steps (0 to 1) for which each switch was on.
        context_switch_count: involuntary ones in the window.
    """

    window_seconds: float
    step_count: int
    step_seconds: float
    phase_seconds: Mapping[str, float]
    gc_seconds: float = 0.0
    gc_count: int = 0
    cpu_seconds: float = 0.0
    on_gpu: bool = False
    warm_up_seconds: float = 0.0
    slow_count: int = 0
    slow_every: int | None = None
    slow_phase: str = ""
    slow_excess_seconds: float = 0.0
    batch_sizes: tuple[int, int] | None = None
    worker_count: int | None = None
    backward_per_step: float = 1.0
    recompilation_count: int = 0
    graph_break_count: int = 0
    rss_slope_bytes: float | None = None
    rss_first_bytes: int = 0
    rss_last_bytes: int = 0
    shape_count: int = 0
    flags: Mapping[str, float] | None = None
    context_switch_count: int = 0

    def ratio(self, phase: str) -> float:
        """The share of a phase in the window (0 to 1)."""
        return self.phase_seconds.get(phase, 0.0) / self.window_seconds if self.window_seconds else 0.0
