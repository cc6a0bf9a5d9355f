"""The optimizer updates parameters one by one, with thousands of tiny kernels.

## What it means

An update is a handful of pointwise operations a parameter tensor. Done tensor by tensor, a model
of some hundred tensors needs thousands of kernels of a few microseconds, and the device waits for
each launch. PyTorch can do the same for many tensors at once (foreach), or all of it in one
kernel a group (fused).

## How it is recognized

The work between the optimizer's marks takes at least 5% of the time, its own kernels and the
device's idle time together, and most of its kernels handle a single tensor. In an operator table, by
the processor's own time in the optimizer's row, where no operator for many tensors is listed; the rule
is then far less sure, since whatever Python runs inside the update is counted there too (PyTorch
Lightning runs the whole training step inside it).

## What to do

`fused=True`, or `foreach=True` where there is no fused form.

## What it is confused with

A fused or foreach optimizer of a large model, which takes its time for memory traffic that is
needed. An optimizer that communicates (sharded states): see COM101.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.analysis.table_shares import cpu_share
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.clues import mentions_beside
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.tables import OperatorTable
    from advisor.model.waits import OptimizerSteps

LEAST_RATIO = 0.05
"""Of the window, kernels and idle time together: a fused update of most models takes less."""

FEWEST_KERNELS_A_STEP = 100
"""Kernels of one update: fused and foreach optimizers need some dozens, whatever the model."""

MOST_MULTI_TENSOR_RATIO = 0.5
"""Of its kernels, that handle many tensors: above, the optimizer is foreach already."""

LEAST_TABLE_RATIO = 0.15
"""Of a table's CPU time, in the optimizer's own row: what Python spends there between operators."""

ACTIONS = (
    Action(
        title="Use the fused optimizer",
        change="torch.optim.AdamW(model.parameters(), ..., fused=True); also Adam, SGD, Adagrad",
    ),
    Action(
        title="Where there is no fused form, update many tensors at once",
        change="foreach=True",
        cost="temporaries as large as the gradients",
    ),
    Action(
        title="Compile the update",
        change="step = torch.compile(optimizer.step), with the learning rate as a tensor",
        cost="compilation in the first steps",
    ),
)

_CPU_TIME = re.compile(r"\d\s?m?s\b.{0,40}\bCPU\b|\bCPU\b.{0,60}?\d\s?m?s\b", re.IGNORECASE).search
_NAMED = r"(?:adamw?|sgd|adafactor|optimizer(?:[. ]step(?:\(\))?)?)\b"
_SHARE = LazyPattern(
    rf"(\d+(?:\.\d+)?) ?%(?: of (?:the |each )?(?:step|iteration|time))? (?:is |in |by |for )?(?:the )?{_NAMED}"
    rf"|\b{_NAMED}[^,;%\d]{{0,25}}(\d+(?:\.\d+)?) ?%(?:[^;%]{{0,30}}?(\d+(?:\.\d+)?) ?%)?",
    re.IGNORECASE,
)
"""What a line about the optimizer must also say to be one about its time: milliseconds of the CPU, or its share."""

_STEP = re.compile(r"^Optimizer\.step#").search
_MULTI_TENSOR = re.compile(r"^aten::_(?:foreach|fused|amp_foreach)_").search


@rule("CMP108", "optimizer-not-fused")
def optimizer_not_fused(  # noqa: PLR0913, PLR0917 - a rule's needs are its parameters
    breakdown: StepBreakdown | None,
    optimizer: OptimizerSteps | None,
    mix: KernelMix | None,
    table: OperatorTable | None,
    log: LogText | None,
    failure: Failure | None,
) -> Finding | None:
    """Fire on an update of many single-tensor kernels, else on a table's or a log's share."""
    if breakdown is not None:
        return _by_trace(breakdown, optimizer, mix) if optimizer is not None else None
    if table is not None and (found := _by_table(table)) is not None:
        return found
    return _by_log(log, table) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown, optimizer: OptimizerSteps, mix: KernelMix | None) -> Finding | None:
    if not optimizer.count or optimizer.device_seconds is None or optimizer.exposed_seconds is None:
        return None
    each = optimizer.kernel_count / optimizer.count
    many = optimizer.multi_tensor_count / optimizer.kernel_count if optimizer.kernel_count else 1.0
    if each < FEWEST_KERNELS_A_STEP or many > MOST_MULTI_TENSOR_RATIO:
        return None
    taken = min(optimizer.device_seconds + optimizer.exposed_seconds, breakdown.window_seconds)
    if taken < LEAST_RATIO * breakdown.window_seconds:
        return None
    return Finding(
        statement=(
            f"{optimizer.name}.step takes {per_step_text(breakdown, taken)}, in {each:,.0f} tiny "
            "kernels: it updates the parameters one by one."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.85, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"{count_text(optimizer.kernel_count, 'kernel')} in "
                    f"{count_text(optimizer.count, 'update')}, {ratio_text(many)} of them for many "
                    "tensors at once"
                ),
                value=each,
                unit="count",
                source=optimizer.source,
            ),
            Observation(
                statement=(
                    f"its kernels: {seconds_text(optimizer.device_seconds)}; the device idle "
                    f"between them: {seconds_text(optimizer.exposed_seconds)}; the host: "
                    f"{seconds_text(optimizer.host_seconds)}"
                ),
                value=taken,
                unit="seconds",
                source=optimizer.source,
            ),
        ),
        actions=(
            Action(
                title=ACTIONS[0].title,
                change=ACTIONS[0].change,
                predicted=step_without(breakdown, optimizer.exposed_seconds),
            ),
            *ACTIONS[1:],
        ),
        impact=step_impact(breakdown, taken),
    )


def _by_table(table: OperatorTable) -> Finding | None:
    share = cpu_share(table, _STEP)
    if share is None or share.ratio < LEAST_TABLE_RATIO or any(_MULTI_TENSOR(row.name) for row in table.rows):
        return None
    calls = f" in {count_text(share.calls, 'call')}" if share.calls else ""
    return Finding(
        statement=(
            f"{', '.join(share.names)} spends {seconds_text(share.seconds)}{calls} of the host's own "
            f"time, {ratio_text(share.ratio)} of all, between operators: perhaps it goes through the parameters one by one."
        ),
        severity=Severity.WARNING,
        confidence=0.4,
        observations=(
            Observation(
                statement=f"the optimizer's own CPU time: {seconds_text(share.seconds)}",
                value=share.ratio,
                unit="ratio",
                source=table.source,
            ),
        ),
        actions=ACTIONS,
        settles=Action(
            title="Record a trace and count the operators of one update; in PyTorch Lightning the whole step runs inside the mark",
            change="torch.profiler around a few steps, export_chrome_trace('trace.json')",
        ),
    )


def _by_log(log: LogText, table: OperatorTable | None) -> Finding | None:
    topics = ("fused-optimizer", "adamw", "adam", "sgd", "optimizer-step", "foreach")
    mention = next((each for each in mentions_beside(table, log, *topics) if _takes_time(each.text)), None)
    if mention is None:
        return None
    return Finding(
        statement="By the log, the optimizer's update takes much of the step, most of it on the host.",
        severity=Severity.WARNING,
        confidence=0.55,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=ACTIONS,
    )


def _takes_time(text: str) -> bool:
    shares = [float(number) / 100 for found in _SHARE.finditer(text) for number in found.groups() if number]
    return max(shares) >= LEAST_RATIO if shares else _CPU_TIME(text) is not None


def fires() -> Case:
    """SGD over 160 tensors: 640 kernels of 3 µs in each update."""
    from advisor.rules.samples_time import an_optimizer

    return a_case(
        a_breakdown(launch=0.15),
        an_optimizer(
            name="SGD",
            host_seconds=0.15,
            device_seconds=0.02,
            exposed_seconds=0.1,
            kernel_count=6_400,
            multi_tensor_count=0,
            fused_count=0,
        ),
    )


def clean() -> Case:
    """A fused AdamW that takes as long, for the traffic of a billion parameters."""
    from advisor.rules.samples_time import an_optimizer

    return a_case(
        a_breakdown(),
        an_optimizer(device_seconds=0.12, kernel_count=400, multi_tensor_count=400),
    )
