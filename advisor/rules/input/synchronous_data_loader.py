"""Batches are prepared in the training process itself, between the steps.

## What it means

With `num_workers=0`, the default, a DataLoader has no processes of its own: each request for a
batch reads, decodes and transforms it right there, and the training loop, which should be giving
the device its next work, does that instead. Loading and computing take turns, where they could
happen at the same time.

## How it is recognized

By the name of the loader's iterator in a trace, `_SingleProcessDataLoaderIter`, which PyTorch
uses for `num_workers=0` only, together with a device that idles inside its calls for at least 10%
of the time, leading slow steps (warm-up) left out. It is never inferred from gaps.

## What to do

Set `num_workers`. With enough workers the whole wait can go, since it then runs beside the
device's work.

## What it is confused with

A single-process loader over data that is already in memory: its calls are there, and cost
nothing. A loader with too few or too slow workers has another iterator
(`_MultiProcessingDataLoaderIter`): see INP101.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import replace
from advisor.model.finding import Action, Finding, Observation, RuledOut, Severity, Verification
from advisor.model.step_time import Bound, StepBreakdown
from advisor.rules.loop_evidence import is_worth, loop_impact, loop_without, loss_of, measured
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, input_loss, left_out, per_step_text, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.kernels import KernelMix
    from advisor.model.run import LoopTimes
    from advisor.model.waits import InputWait

LEAST_RATIO = 0.10
"""Of the window, as for INP101: a smaller wait is not worth worker processes."""


WATCHED = 0.93
"""Score of a loop that attach() watched: its loader said that it has no workers, and the wait was measured inside it."""

WATCHED_ON_GPU = 0.8
"""The same with a GPU, which may still have work while the loop waits."""

WORKERS = Action(
    title="Prepare batches in worker processes",
    change=(
        "DataLoader(dataset, ..., num_workers=4, persistent_workers=True, pin_memory=True); raise num_workers while the step gets "
        "shorter, up to the cores of this process"
    ),
    cost=(
        "host memory: a copy of the dataset object a worker; the script's entry point needs `if __name__ == '__main__':` where processes "
        "are spawned"
    ),
)

IN_MEMORY = Action(
    title="Where the dataset fits in memory, keep it there as tensors",
    change="load and transform everything once, then TensorDataset(inputs, labels)",
    cost="host memory of the whole dataset; random augmentation has to move to the device",
)


@rule("INP102", "synchronous-data-loader")
def synchronous_data_loader(
    breakdown: StepBreakdown | None, wait: InputWait | None, mix: KernelMix | None, loop: LoopTimes | None = None
) -> Finding | None:
    """Fire where the iterator is the single-process one and the job stands still inside it."""
    if breakdown is None or wait is None:
        return _by_loop(loop) if loop is not None else None
    if not wait.is_single_process:
        return None
    breakdown, lost = input_loss(breakdown, wait)
    if lost < LEAST_RATIO * breakdown.window_seconds:
        return None
    who = "The device idles" if breakdown.is_of_device else "The job stands still"
    return Finding(
        statement=(
            f"{who} {per_step_text(breakdown, lost)} while the training process prepares the next "
            "batch itself: the DataLoader has no workers (num_workers=0)."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.95, breakdown, mix),
        observations=(
            Observation(
                statement=f"the loader's iterator is {wait.loader}, which only num_workers=0 uses",
                source=wait.source,
            ),
            Observation(
                statement=(
                    f"{count_text(wait.count, 'batch', 'batches')} took "
                    f"{seconds_text(wait.wait_seconds)} of the loop's time, "
                    f"{seconds_text(wait.longest_seconds)} at most"
                ),
                value=wait.wait_seconds,
                unit="seconds",
                source=wait.source,
            ),
            Observation(
                statement=(
                    f"meanwhile {'the device idled' if breakdown.is_of_device else 'nothing was computed'} for "
                    f"{seconds_text(lost)}{left_out(wait)}"
                ),
                value=lost,
                unit="seconds",
                source=breakdown.source,
            ),
        ),
        actions=(replace(WORKERS, predicted=step_without(breakdown, lost), verified_by=Verification.ARITHMETIC), IN_MEMORY),
        impact=step_impact(breakdown, lost),
        ruled_out=(
            RuledOut(
                code="INP104",
                because="the waits lie inside the loader's marks, before any copy to the device",
            ),
        ),
        supersedes=("INP101",),
    )


def _by_loop(loop: LoopTimes) -> Finding | None:
    lost = loop.phase_seconds.get("data_wait", 0.0)
    if loop.worker_count != 0 or not is_worth(loop, lost, LEAST_RATIO):
        return None
    a_step, ratio = loss_of(loop, lost)
    return Finding(
        statement=(
            f"The loop stands still {seconds_text(a_step)} of each step ({ratio_text(ratio)}) while the training process prepares the "
            "next batch itself: the DataLoader has no workers (num_workers=0)."
        ),
        severity=Severity.WARNING,
        confidence=WATCHED_ON_GPU if loop.on_gpu else WATCHED,
        observations=(
            measured(loop, lost, "inside the loader's __next__"),
            Observation(statement="the loader says num_workers=0", value=0, unit="workers", source=loop.source),
        ),
        actions=(replace(WORKERS, predicted=loop_without(loop, lost), verified_by=Verification.ARITHMETIC), IN_MEMORY),
        impact=loop_impact(loop, lost),
        supersedes=("INP101",),
    )


def fires() -> Case:
    """Ten batches of 35 ms each, made between steps that compute for 65 ms."""
    from advisor.rules.samples_time import an_input_wait

    return a_case(
        a_breakdown(input_wait=0.35, bound=Bound.INPUT),
        an_input_wait(
            loader="_SingleProcessDataLoaderIter",
            is_single_process=True,
            wait_seconds=0.36,
            exposed_seconds=0.35,
            longest_seconds=0.04,
        ),
    )


def clean() -> Case:
    """A single-process loader over tensors in memory: half a millisecond a batch."""
    from advisor.rules.samples_time import an_input_wait

    return a_case(
        a_breakdown(input_wait=0.004),
        an_input_wait(
            loader="_SingleProcessDataLoaderIter",
            is_single_process=True,
            wait_seconds=0.005,
            exposed_seconds=0.004,
            longest_seconds=0.001,
        ),
    )
