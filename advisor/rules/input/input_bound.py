"""The device idles while the training loop waits for its next batch.

## What it means

A training loop asks its DataLoader for a batch, then computes. Where the batch is not ready,
nothing can be computed, and the most expensive part of the machine waits for the cheapest. No
change of the model, the precision or the card helps: the same wait stays.

## How it is recognized

PyTorch marks each request for a batch in a profiler trace (`enumerate(DataLoader)#...__next__`).
The rule fires where the device is idle inside such marks for at least 10% of the recorded time; leading
slow steps (warm-up) are left out of both.
It never infers a wait for data from a gap alone. In an operator table the same mark is a row; the
rule then goes by its share of CPU time, and with less confidence, since a table does not show
whether the device idled meanwhile. In a log it reads the data time that many trainers print
beside the step's. Where attach() watched the loop, the time inside the loader's `__next__` counts.

## What to do

Give the loader worker processes that prepare batches ahead; then make preparing them cheaper
(decode once, cache, smaller files in larger shards); then move what remains to the device.

## What it is confused with

A loop that waits inside the loader while the device still computes earlier steps: that wait is
hidden and costs nothing. Slow copies of a batch that is already there: see INP103 and INP104.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.analysis.logged_times import LoggedDataTime, logged_data_time
from advisor.analysis.table_shares import cpu_share, has_device
from advisor.model.dataclass import replace
from advisor.model.finding import Action, Finding, Observation, RuledOut, Severity
from advisor.model.step_time import Bound, StepBreakdown
from advisor.rules.loop_evidence import is_worth, loop_impact, loop_without, loss_of, measured
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, input_loss, left_out, per_step_text, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix
    from advisor.model.run import LoopTimes
    from advisor.model.tables import OperatorTable
    from advisor.model.waits import InputWait

LEAST_RATIO = 0.10
"""Of the window: below a tenth the wait is within what prefetching evens out between steps."""

DOMINANT_RATIO = 0.5
"""Of all CPU time in a table: where half of it is the loader, the loop can hardly be ahead of
it."""

WATCHED = 0.92
"""Score of a loop that attach() watched: the wait is measured where it happens."""

WATCHED_ON_GPU = 0.75
"""The same with a GPU, which may still have work while the loop waits."""

WORKERS = Action(
    title="Prepare batches in worker processes, ahead of the loop",
    change=(
        "DataLoader(dataset, ..., num_workers=4, persistent_workers=True, prefetch_factor=4, "
        "pin_memory=True); raise num_workers while the wait shrinks, up to the cores of this process"
    ),
    cost="host memory: a copy of the dataset object and prefetch_factor batches a worker",
)

CHEAPER = Action(
    title="Make a batch cheaper to prepare",
    change=(
        "decode, resize and tokenize once and store the result; read shards instead of many small "
        "files; keep the data on a local disk; batch the transforms"
    ),
    cost="disk space and a pass over the data",
)

SETTLING_TRACE = Action(
    title="Record a trace to see whether the device idles while the loop waits",
    change=(
        "torch.profiler.profile(activities=[CPU, CUDA], schedule=schedule(wait=1, warmup=1, active=3)) "
        "around a few steps, export_chrome_trace('trace.json'), and diagnose it"
    ),
)

_LOADER = re.compile(r"enumerate\(DataLoader\)|DataLoaderIter").search


@rule("INP101", "input-bound")
def input_bound(  # noqa: PLR0913, PLR0917 - a rule's needs are its parameters
    breakdown: StepBreakdown | None,
    wait: InputWait | None,
    mix: KernelMix | None,
    table: OperatorTable | None,
    log: LogText | None,
    failure: Failure | None,
    loop: LoopTimes | None = None,
) -> Finding | None:
    """Fire on the strongest evidence that there is: a trace, else a watched loop, else a table, else a log."""
    if breakdown is not None and wait is not None:
        return _by_trace(breakdown, wait, mix)
    if loop is not None:
        return _by_loop(loop)
    if table is not None and (found := _by_table(table)) is not None:
        return found
    logged = logged_data_time(log) if log is not None and failure is None else None
    return _by_log(logged) if logged is not None else None


def _by_trace(breakdown: StepBreakdown, wait: InputWait, mix: KernelMix | None) -> Finding | None:
    breakdown, lost = input_loss(breakdown, wait)
    who = "The device idles" if breakdown.is_of_device else "The job stands still"
    if lost < LEAST_RATIO * breakdown.window_seconds:
        return None
    return Finding(
        statement=(f"{who} {per_step_text(breakdown, lost)} while the loop waits for its next batch."),
        severity=Severity.WARNING,
        confidence=certainty(0.9, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"idle while waiting for the loader: {seconds_text(lost)} in {seconds_text(breakdown.window_seconds)}{left_out(wait)}"
                ),
                value=lost,
                unit="seconds",
                source=breakdown.source,
            ),
            Observation(
                statement=(
                    f"{wait.loader} was asked for {count_text(wait.count, 'batch', 'batches')} and took "
                    f"{seconds_text(wait.wait_seconds)}, {seconds_text(wait.longest_seconds)} at most"
                ),
                value=wait.wait_seconds,
                unit="seconds",
                source=wait.source,
            ),
        ),
        actions=(
            Action(
                title=WORKERS.title,
                change=WORKERS.change,
                cost=WORKERS.cost,
                predicted=step_without(breakdown, lost),
            ),
            CHEAPER,
        ),
        impact=step_impact(breakdown, lost),
        ruled_out=(
            RuledOut(
                code="INP104",
                because="the waits lie inside the loader's marks, before any copy to the device",
            ),
        ),
    )


def _by_loop(loop: LoopTimes) -> Finding | None:
    lost = loop.phase_seconds.get("data_wait", 0.0)
    if not is_worth(loop, lost, LEAST_RATIO):
        return None
    workers = f", which has {count_text(loop.worker_count, 'worker')}" if loop.worker_count else ""
    a_step, ratio = loss_of(loop, lost)
    return Finding(
        statement=f"The loop waits {seconds_text(a_step)} of each step ({ratio_text(ratio)}) for its loader{workers}.",
        severity=Severity.WARNING,
        confidence=WATCHED_ON_GPU if loop.on_gpu else WATCHED,
        observations=(measured(loop, lost, "inside the loader's __next__"),),
        actions=(replace(WORKERS, predicted=loop_without(loop, lost)), CHEAPER),
        impact=loop_impact(loop, lost),
        settles=SETTLING_TRACE if loop.on_gpu else None,
    )


def _by_table(table: OperatorTable) -> Finding | None:
    share = cpu_share(table, _LOADER)
    if share is None or share.ratio < LEAST_RATIO:
        return None
    of_what = "of the listed CPU time" if share.is_of_listed else "of all CPU time"
    calls = f" in {count_text(share.calls, 'call')}" if share.calls else ""
    alone = "_SingleProcess" in " ".join(share.names)
    how = ", in the training process itself (num_workers=0)" if alone else ""
    return Finding(
        statement=(
            f"Waiting for batches takes {seconds_text(share.seconds)}{calls}, "
            f"{ratio_text(share.ratio)} {of_what}{how}: {'the device' if has_device(table) else 'what computes'} can hardly be kept fed."
        ),
        severity=Severity.WARNING,
        confidence=0.85 if share.ratio >= DOMINANT_RATIO else 0.6,
        observations=(
            Observation(
                statement=f"rows of the DataLoader: {seconds_text(share.seconds)} of self CPU time",
                value=share.seconds,
                unit="seconds",
                source=table.source,
            ),
        ),
        actions=(WORKERS, CHEAPER),
        settles=SETTLING_TRACE,
    )


def _by_log(logged: LoggedDataTime) -> Finding | None:
    if logged.ratio is not None and logged.ratio < LEAST_RATIO:
        return None
    is_idle = logged.idle_ratio is not None and logged.idle_ratio >= LEAST_RATIO
    if logged.ratio is not None:
        said = (
            f"Of each {seconds_text(logged.step_seconds or 0.0)} step, "
            f"{seconds_text(logged.data_seconds)} is waiting for data, by the program's own log "
            f"({ratio_text(logged.ratio)})."
        )
    else:
        said = (
            f"The program's own log counts {seconds_text(logged.data_seconds)} of waiting for data "
            "a step; what the whole step takes it does not say."
        )
    if is_idle:
        said += f" It has the GPU idle for {ratio_text(logged.idle_ratio or 0.0)} of the time."
    return Finding(
        statement=said,
        severity=Severity.WARNING,
        confidence=0.8 if logged.ratio is not None else 0.7 if is_idle else 0.45,
        observations=(
            Observation(
                statement=f"the log says: {logged.text}",
                value=logged.data_seconds,
                unit="seconds",
                source=logged.source,
            ),
        ),
        actions=(WORKERS, CHEAPER),
        settles=SETTLING_TRACE,
    )


def fires() -> Case:
    """A third of each step is spent waiting for the workers."""
    from advisor.rules.samples_time import an_input_wait

    return a_case(
        a_breakdown(input_wait=0.33, bound=Bound.INPUT),
        an_input_wait(wait_seconds=0.35, exposed_seconds=0.33, longest_seconds=0.05),
    )


def clean() -> Case:
    """The loop waits as long, and the device computes meanwhile."""
    from advisor.rules.samples_time import an_input_wait

    return a_case(
        a_breakdown(input_wait=0.02),
        an_input_wait(wait_seconds=0.35, exposed_seconds=0.02, longest_seconds=0.05),
    )
