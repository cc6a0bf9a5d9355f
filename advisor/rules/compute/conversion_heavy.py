"""Copies and conversions on the device, which compute nothing, take much of the time.

## What it means

A tensor that has the wrong type, the wrong layout or the wrong place is rewritten before it can
be used: `to`, `contiguous`, `cat`, `copy_`, and the changes between NCHW and NHWC that
convolution libraries insert by themselves. Each reads and writes the whole tensor and does no
arithmetic.

## How it is recognized

Kernels that copy, convert, transpose or concatenate take at least 15% of the kernels' time in a
trace, or the rows of such operators that share in an operator table. In a table of a job on the
processor they are the processor's time, and the rule is less sure; where a device was used and its
columns are missing, that time is mostly waiting, and the rule is silent.

## What to do

Decide on one type and one layout at the model's entry and keep them; preallocate instead of
concatenating.

## What it is confused with

Copies between host and device: INP103 and INP104. Copies of parameters in an optimizer with fp32
master weights, which are needed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.analysis.table_shares import TableShare, cpu_share, device_share, has_device
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, seconds_while_computing, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.tables import OperatorTable

LEAST_RATIO = 0.15
"""Of the kernels' time: healthy models need up to about a tenth for views that must be made
contiguous."""

_CONVERTS = re.compile(r"^(?:aten::)?(?:copy_|to|_to_copy|contiguous|clone|cat|stack|_?convert\w*|transpose_copy)$").search

KEEP = Action(
    title="Keep one type and one layout",
    change=(
        "convert inputs once, at the model's entry; create tensors on the device "
        "(torch.zeros(..., device=device, dtype=dtype)); avoid permute().contiguous() in the loop"
    ),
)

CHANNELS_LAST = Action(
    title="Give convolutions the layout that they compute in",
    change=("model = model.to(memory_format=torch.channels_last); x = x.to(memory_format=torch.channels_last)"),
    cost="operators without such a kernel convert back; measure",
)

PREALLOCATE = Action(
    title="Write into preallocated tensors instead of concatenating",
    change="a static KV cache, or buffer[:, start:end].copy_(part) instead of torch.cat in the loop",
    cost="memory for the largest size",
)


@rule("CMP107", "conversion-heavy")
def conversion_heavy(breakdown: StepBreakdown | None, mix: KernelMix | None, table: OperatorTable | None) -> Finding | None:
    """Fire on copying kernels' share of device time, else on the share of a table's rows."""
    if breakdown is not None and mix is not None:
        return _by_trace(breakdown, mix)
    return _by_table(table) if table is not None else None


def _by_trace(breakdown: StepBreakdown, mix: KernelMix) -> Finding | None:
    share = mix.seconds_of("copy") / mix.computing_seconds if mix.computing_seconds else 0.0
    if share < LEAST_RATIO or not breakdown.is_of_device:
        return None
    taken = seconds_while_computing(breakdown, mix, mix.seconds_of("copy"))
    is_layout = mix.layout_seconds >= mix.seconds_of("copy") / 2
    largest = [row for row in mix.top if row.kind == "copy"][:1]
    return Finding(
        statement=(
            f"Copying and converting tensors on the device takes {per_step_text(breakdown, taken)}"
            + (", most of it between two layouts of images (NCHW and NHWC)." if is_layout else ".")
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.8, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"{count_text(mix.count_of('copy'), 'kernel')} that only copy or convert: {ratio_text(share)} of the kernels' time"
                ),
                value=share,
                unit="ratio",
                source=mix.source,
            ),
            *(
                Observation(
                    statement=(f"the largest: {row.name[:80]}, {row.count} times, {seconds_text(row.device_seconds)}"),
                    value=row.device_seconds,
                    unit="seconds",
                    source=mix.source,
                )
                for row in largest
            ),
        ),
        actions=tuple(
            Action(
                title=action.title,
                change=action.change,
                cost=action.cost,
                predicted=step_without(breakdown, taken),
            )
            for action in ((CHANNELS_LAST, KEEP) if is_layout else (KEEP, PREALLOCATE))
        ),
        impact=step_impact(breakdown, taken),
    )


def _by_table(table: OperatorTable) -> Finding | None:
    share: TableShare | None = device_share(table, _CONVERTS)
    whose = "device"
    # The processor's time in a copy from or to a device is mostly waiting for the device.
    if share is None and not has_device(table):
        share, whose = cpu_share(table, _CONVERTS), "CPU"
    if share is None or share.ratio < LEAST_RATIO:
        return None
    listed = "listed " if share.is_of_listed else ""
    return Finding(
        statement=(
            f"Copying and converting tensors takes {seconds_text(share.seconds)}, {ratio_text(share.ratio)} of the {listed}{whose} time."
        ),
        severity=Severity.WARNING,
        confidence=0.75 if whose == "device" and not share.is_of_listed else 0.5,
        observations=(
            Observation(
                statement=f"rows {', '.join(share.names)}: {seconds_text(share.seconds)}",
                value=share.ratio,
                unit="ratio",
                source=table.source,
            ),
        ),
        actions=(KEEP, CHANNELS_LAST, PREALLOCATE),
        settles=Action(
            title="See which lines convert",
            change="profile with with_stack=True and group_by_stack_n=5 in key_averages",
        ),
    )


def fires() -> Case:
    """`copy_` on top of the table, with a third of the device's time."""
    from advisor.model.tables import OperatorRow
    from advisor.rules.samples_time import a_table

    return a_case(
        a_table(
            OperatorRow(name="aten::copy_", calls=9_000, self_device_seconds=0.33),
            OperatorRow(name="aten::mm", calls=2_000, self_device_seconds=0.5),
            device="CUDA",
            self_cpu_total_seconds=1.2,
            self_device_total_seconds=1.0,
        )
    )


def clean() -> Case:
    """A healthy step: 9% of the kernels' time in copies."""
    from advisor.rules.samples_time import a_mix

    return a_case(a_breakdown(launch=0.1), a_mix())
