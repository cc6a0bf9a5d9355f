"""The device runs out of work between short kernels: the host cannot issue them fast enough.

## What it means

Every operation on the device has to be launched by the host, which takes some microseconds each,
Python included. Where the operations themselves are as short as that, the device finishes each
before the next one arrives, and idles in between. A faster card would idle more.

## How it is recognized

The device idles for at least 15% of the time with an empty launch queue, in gaps shorter than a millisecond: the kernel that ends the
gap was launched only after the device had run dry, while the host was busy launching, and was not
waiting for data or for the device. At least a tenth of all kernels find the device idle in this
way. Where CUDA or HIP graphs issue most kernels, launches do not set the pace and the rule is
silent. Without recorded launches it cannot judge. From an operator table it goes by the totals:
CPU time many times the device's. A table without the device's columns cannot show whether a device
waited: the rule is silent there.
What the profiler itself takes to record the host's events is left out of the gaps, by rule of thumb.

## What to do

Issue fewer, larger operations: compile, replay graphs, use fused operators, enlarge the batch.

## What it is confused with

Gaps in which the loop waits for data (INP101) or reads a result back (HST102). A profiler that
records Python stacks slows the host down and lengthens these gaps: profile again without
`with_stack` before trusting the exact share.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.analysis.table_shares import (
    cpu_share,
    self_cpu_total_seconds,
    self_device_total_seconds,
)
from advisor.model.finding import Action, Finding, Observation, RuledOut, Severity
from advisor.model.step_time import Bound, StepBreakdown
from advisor.rules.clues import mentioned_beside
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix, LaunchProfile
    from advisor.model.tables import OperatorTable

LEAST_RATIO = 0.15
"""Of the window, idle for want of launches: eager training of healthy models shows up to about a
tenth."""

LEAST_STARVED_RATIO = 0.10
"""Of the kernels: with fewer that find the device idle, a few long gaps make the idle time, not
launches."""

MOST_GRAPH_RATIO = 0.5
"""Of the kernels: where graphs issue more than half, single launches do not set the pace."""

SHORT_KERNEL_SECONDS = 50e-6
"""Median kernel: ten launches of about 5 µs; where kernels are longer, launches can be hidden."""

LEAST_TABLE_RATIO = 5.0
"""CPU time over device time in a table: several-fold, since CPU time includes waits and other
threads."""

MOST_WAIT_RATIO = 0.3
"""Of the CPU time in a table, in rows that wait: beyond that, waiting explains the CPU time."""

ACTIONS = (
    Action(
        title="Compile the model",
        change='model = torch.compile(model, mode="reduce-overhead")',
        cost="compilation in the first steps, again for each new shape; memory for the graphs",
    ),
    Action(
        title="Give each launch more work",
        change="a larger batch per step; fused=True in the optimizer; fused attention and norm layers",
        cost="device memory for the larger batch",
    ),
    Action(
        title="Replay the step as one graph",
        change="torch.cuda.make_graphed_callables(model, sample_args) for static shapes",
        cost="shapes and addresses must stay the same; the graph keeps its own memory",
    ),
)

_WAITS = re.compile(r"DataLoader|Synchronize|aten::item|_local_scalar_dense|nonzero|Malloc|Free\b|MemcpyAsync|wait").search


@rule("HST101", "launch-bound")
def launch_bound(  # noqa: PLR0913, PLR0917 - a rule's needs are its parameters
    breakdown: StepBreakdown | None,
    launches: LaunchProfile | None,
    mix: KernelMix | None,
    table: OperatorTable | None,
    log: LogText | None,
    failure: Failure | None,
) -> Finding | None:
    """Fire on idle time that launches explain, else on a table's totals, else on a log's words."""
    if breakdown is not None:
        found = None
        if launches is not None and breakdown.is_of_device:
            found = _by_trace(breakdown, launches, mix)
        return found
    if table is not None and (found := _by_table(table)) is not None:
        return found
    return _by_log(log, table) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown, launches: LaunchProfile, mix: KernelMix | None) -> Finding | None:
    idle = min(breakdown.seconds["launch"], launches.short_gap_seconds)
    idle = max(0.0, idle - launches.profiler_seconds)
    if (
        idle < LEAST_RATIO * breakdown.window_seconds
        or launches.starved_ratio < LEAST_STARVED_RATIO
        or launches.graph_kernel_ratio > MOST_GRAPH_RATIO
        or launches.median_kernel_seconds > SHORT_KERNEL_SECONDS
    ):
        return None
    return Finding(
        statement=(
            f"The device runs out of work {per_step_text(breakdown, idle)}: its kernels are short "
            f"(half of them under {seconds_text(launches.median_kernel_seconds)}) and the host "
            "does not launch them fast enough."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.7 if launches.has_python else 0.8, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"idle with an empty launch queue: {seconds_text(idle)}, after some {seconds_text(launches.profiler_seconds)} are left "
                    "out for the profiler's own recording"
                ),
                value=idle,
                unit="seconds",
                source=breakdown.source,
            ),
            Observation(
                statement=(
                    f"{ratio_text(launches.starved_ratio)} of "
                    f"{count_text(launches.kernel_count, 'kernel')} were launched only after the "
                    "device had nothing left to do"
                ),
                value=launches.starved_ratio,
                unit="ratio",
                source=launches.source,
            ),
            Observation(
                statement=(
                    f"a launch call takes {seconds_text(launches.median_launch_seconds)} of the "
                    f"host, {count_text(launches.launch_count, 'call')} in all"
                ),
                value=launches.median_launch_seconds,
                unit="seconds",
                source=launches.source,
            ),
            *(
                [
                    Observation(
                        statement="Python frames were recorded, which lengthens these gaps",
                        source=launches.source,
                    )
                ]
                if launches.has_python
                else []
            ),
        ),
        actions=tuple(
            Action(
                title=action.title,
                change=action.change,
                cost=action.cost,
                predicted=step_without(breakdown, idle),
            )
            for action in ACTIONS
        ),
        settles=Action(
            title="Make sure that the profiler itself is not the cause",
            change="profile again with with_stack=False, record_shapes=False, profile_memory=False",
        ),
        impact=step_impact(breakdown, idle),
        ruled_out=(
            RuledOut(
                code="INP101",
                because="these gaps lie outside the loader's calls",
            ),
            RuledOut(
                code="HST102",
                because="in these gaps the host was launching, and not waiting for a result",
            ),
        ),
    )


def _by_table(table: OperatorTable) -> Finding | None:
    cpu, device = self_cpu_total_seconds(table), self_device_total_seconds(table)
    waiting = cpu_share(table, _WAITS)
    if not cpu or not device or (waiting is not None and waiting.ratio > MOST_WAIT_RATIO):
        return None
    if cpu < LEAST_TABLE_RATIO * device:
        return None
    return Finding(
        statement=(
            f"The host worked {seconds_text(cpu)} to give the device {seconds_text(device)} of "
            f"work, {cpu / device:.0f} times as long: launching, and not computing, sets the pace."
        ),
        severity=Severity.WARNING,
        confidence=0.65 if table.rows else 0.6,
        observations=(
            Observation(
                statement=f"self CPU time {seconds_text(cpu)}, device time {seconds_text(device)}",
                value=cpu / device,
                unit="ratio",
                source=table.source,
            ),
        ),
        actions=ACTIONS,
        settles=Action(
            title="Profile steady steps, not the first ones",
            change="torch.profiler.schedule(wait=5, warmup=2, active=3)",
        ),
    )


def _by_log(log: LogText, table: OperatorTable | None) -> Finding | None:
    mention = mentioned_beside(table, log, "launch-overhead")
    if mention is None:
        return None
    return Finding(
        statement="The log speaks of launch overhead: many short kernels, each issued by the host.",
        severity=Severity.WARNING,
        confidence=0.5,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=ACTIONS,
    )


def fires() -> Case:
    """Kernels of 6 µs, launched every 15 µs: the device idles half of the time."""
    from advisor.rules.samples_time import a_launch_profile, a_mix

    return a_case(
        a_breakdown(launch=0.5, bound=Bound.LAUNCH),
        a_launch_profile(
            kernel_count=33_000,
            launch_count=33_000,
            median_kernel_seconds=6e-6,
            median_launch_interval_seconds=15e-6,
            median_queue_seconds=8e-6,
            starved_ratio=0.9,
            starved_seconds=0.5,
            short_gap_seconds=0.5,
        ),
        a_mix(kernel_count=33_000, median_kernel_seconds=6e-6),
    )


def clean() -> Case:
    """The same short kernels out of one CUDA graph: 10 launches for 33,000 kernels."""
    from advisor.rules.samples_time import a_launch_profile, a_mix

    return a_case(
        a_breakdown(launch=0.16),
        a_launch_profile(
            kernel_count=33_000,
            launch_count=10,
            graph_launch_count=10,
            graph_kernel_ratio=0.99,
            median_kernel_seconds=6e-6,
            median_launch_interval_seconds=None,
            median_queue_seconds=40e-6,
            starved_ratio=0.4,
            starved_seconds=0.16,
            short_gap_seconds=0.16,
        ),
        a_mix(kernel_count=33_000, median_kernel_seconds=6e-6),
    )
