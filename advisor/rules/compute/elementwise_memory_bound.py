"""Pointwise and normalization kernels, which only move memory, take much of the time.

## What it means

Adding, scaling, activating or normalizing a tensor does a few operations on each number and moves
each number to the compute units and back. Such a kernel is limited by memory bandwidth, thousands
of times below the device's arithmetic. One after the other, they read and write the same tensor
again and again; fused into one kernel, it is read and written once.

## How it is recognized

Pointwise, normalization, softmax and reduction kernels that no compiler has fused take at least
20% of the time; those of the optimizer are not counted. On every device in use such kernels lie
far below the ridge point.

## What to do

Let a compiler fuse them, or use layers that are fused already.

## What it is confused with

A compiled model: its fused kernels have names of their own and are not counted. Copies and
conversions between types or layouts: see CMP107. The optimizer's many small kernels: see CMP108.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, seconds_while_computing, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.waits import OptimizerSteps

KINDS = ("elementwise", "normalization", "softmax", "reduction")

LEAST_RATIO = 0.20
"""Of the window: in healthy transformers such kernels take up to about a fifth."""

FUSED_AWAY_RATIO = 0.5
"""Of their time, at most: a chain of two fused into one moves half of the bytes, and chains of more
are rare between matrix products."""


@rule("CMP102", "elementwise-memory-bound")
def elementwise_memory_bound(breakdown: StepBreakdown, mix: KernelMix, optimizer: OptimizerSteps | None) -> Finding | None:
    """Fire where unfused kernels that only move memory take a fifth of the time."""
    taken = mix.seconds_of(*KINDS)
    if optimizer is not None and not optimizer.multi_tensor_count:
        taken = max(0.0, taken - (optimizer.device_seconds or 0.0))
    taken = seconds_while_computing(breakdown, mix, taken)
    if taken < LEAST_RATIO * breakdown.window_seconds:
        return None
    saved = FUSED_AWAY_RATIO * taken
    parts = [f"{kind} {seconds_text(spent)}" for kind, spent in mix.seconds if kind in KINDS]
    count = mix.count_of(*KINDS)
    return Finding(
        statement=(
            f"Kernels that only move memory take {per_step_text(breakdown, taken)}: "
            f"{count_text(count, 'pointwise, normalization or reduction kernel')}, each reading and "
            "writing whole tensors."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.75, breakdown, mix),
        observations=(
            Observation(
                statement=f"by kind: {', '.join(parts)}",
                value=taken,
                unit="seconds",
                source=mix.source,
            ),
            *(
                Observation(
                    statement=(
                        f"the largest: {row.name[:80]}, {row.count} times, "
                        f"{ratio_text(row.device_seconds / mix.device_seconds)} of the kernels' time"
                    ),
                    value=row.device_seconds,
                    unit="seconds",
                    source=mix.source,
                )
                for row in [row for row in mix.top if row.kind in KINDS][:1]
            ),
        ),
        actions=(
            Action(
                title="Let a compiler fuse them",
                change="model = torch.compile(model)",
                cost="compilation in the first steps, again for each new shape",
                predicted=step_without(breakdown, saved),
            ),
            Action(
                title="Use fused layers",
                change=(
                    "torch.nn.functional.layer_norm or rms_norm instead of written-out arithmetic, "
                    'GELU(approximate="tanh"), in-place activations; for convolutions on the GPU '
                    "memory_format=torch.channels_last"
                ),
            ),
            Action(
                title="Move half as many bytes",
                change=f'with torch.autocast("cuda", dtype=torch.{_half_precision(mix)}):',
                cost="fewer bits; compare the loss curves",
            ),
        ),
        impact=step_impact(breakdown, saved),
    )


def _half_precision(mix: KernelMix) -> str:
    """The 16-bit type that the card computes in: bf16 came with capability 8.0, before it is emulated."""
    return "float16" if mix.capability.split(".")[0] in {"5", "6", "7"} else "bfloat16"


def fires() -> Case:
    """An eager model with hand-written activations: a third of the time in pointwise kernels."""
    from advisor.rules.samples_time import a_mix

    return a_case(
        a_breakdown(launch=0.1),
        a_mix(
            seconds=(("matmul", 0.5), ("elementwise", 0.3), ("normalization", 0.1)),
            counts=(("matmul", 2_000), ("elementwise", 6_000), ("normalization", 500)),
        ),
    )


def clean() -> Case:
    """As many pointwise kernels, and they are the optimizer's."""
    from advisor.rules.samples_time import a_mix, an_optimizer

    return a_case(
        a_breakdown(launch=0.1),
        a_mix(
            seconds=(("matmul", 0.6), ("elementwise", 0.3)),
            counts=(("matmul", 2_000), ("elementwise", 6_000)),
        ),
        an_optimizer(device_seconds=0.25, kernel_count=5_000, multi_tensor_count=0, fused_count=0),
    )
