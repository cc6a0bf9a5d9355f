"""A watched loop on the processor → the breakdown of its time; the processor is then the device that computes."""

from advisor.model.run import LoopTimes
from advisor.model.step_time import PARTS, Bound, StepBreakdown

PART_OF_PHASE = {
    "data_wait": "input_wait",
    "forward": "compute",
    "backward": "compute",
    "optimizer": "compute",
    "evaluation": "compute",
    "generation": "compute",
    "collective": "exposed_communication",
}
"""What each phase is a part of; checkpoints, logging and the rest are time in which nothing is computed."""

BOUND_RATIO = 0.5
"""Of the window, from which a part sets the pace."""


def loop_breakdown(loop: LoopTimes) -> StepBreakdown | None:
    """The breakdown of a loop on the processor; None on a GPU, whose time the phases of the host do not tell."""
    if loop.on_gpu or not loop.window_seconds:
        return None
    seconds = dict.fromkeys(PARTS, 0.0)
    for phase, spent in loop.phase_seconds.items():
        seconds[PART_OF_PHASE.get(phase, "other_idle")] += spent
    whole = sum(seconds.values())
    parts = {name: spent / whole for name, spent in seconds.items()}
    bound = Bound.INPUT if parts["input_wait"] >= BOUND_RATIO else Bound.COMPUTE if parts["compute"] >= BOUND_RATIO else Bound.UNKNOWN
    return StepBreakdown(
        source=loop.source,
        rank=loop.rank,
        device_index=None,
        window_seconds=whole,
        step_count=loop.step_count,
        step_seconds=loop.step_seconds,
        busy_ratio=None,
        parts=parts,
        seconds=seconds,
        bound=bound,
        notes=("by the phases of the training loop, as attach() saw them: the processor computes here",),
    )
