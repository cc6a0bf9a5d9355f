"""The device computes nearly all the time, in operations that ought to dominate: all is well.

## What it means

The device is the limit, and not the input, the host or the exchange between ranks. That is how a
healthy training step looks: matrix products, convolutions and fused attention take most of the
time, and waits hardly any. Faster then means less work, cheaper work, or a faster device.

## How it is recognized

At least 80% of the time goes to computing, waits and exposed exchanges take no more than 20%
together, and at least half of the kernels' time is in matrix products, convolutions and
attention, little of it in copies, in pointwise kernels, or in fp32 products that tensor cores
could do. Where the operators' FLOPs and the device's peak are known, the reached share is told as
well; where it is below 15% of the peak, the rule is silent, since such kernels are not near any
ceiling of computing.

## What to do

Nothing urgent. Lower precision, fewer FLOPs, or a faster card are what would help.

## What it is confused with

A device that is busy with conversions, pointwise operations or tiny kernels is busy as well: "GPU
utilization 100%" says no more than that something runs. See CMP102, CMP107 and CMP111.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Impact, Observation, RuledOut, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.kernels import KernelMix, OperatorCosts
    from advisor.model.step_time import StepBreakdown

LEAST_COMPUTE_RATIO = 0.80
"""Of the window: beyond four fifths, removing every wait wins less than a quarter."""

LEAST_DENSE_RATIO = 0.50
"""Of the kernels' time, in matrix products, convolutions and attention: the healthy reference
table has 60%."""

POINTWISE = ("elementwise", "normalization", "softmax", "reduction")

MOST_COPY_RATIO = 0.15
"""Of the kernels' time: beyond, CMP107 has something to say."""

MOST_POINTWISE_RATIO = 0.30
"""Of the kernels' time: beyond, CMP102 has something to say."""

MOST_FP32_RATIO = 0.10
"""Of the kernels' time in fp32 products on a card with tensor cores: beyond, CMP104 has."""

LEAST_ATTAINED_RATIO = 0.15
"""Of the dense peak over the window: below, the kernels are not limited by computing, whatever
they are."""


@rule("CMP101", "compute-bound")
def compute_bound(breakdown: StepBreakdown, mix: KernelMix, costs: OperatorCosts | None) -> Finding | None:
    """Fire, as information, on a device that is busy with dense arithmetic."""
    if breakdown.parts.get("compute", 0.0) < LEAST_COMPUTE_RATIO:
        return None
    dense = mix.share_of("matmul", "convolution", "attention")
    if dense < LEAST_DENSE_RATIO:
        return None
    if mix.share_of("copy") > MOST_COPY_RATIO or mix.share_of(*POINTWISE) > MOST_POINTWISE_RATIO:
        return None
    if _has_tensor_cores(mix) and mix.fp32_matmul_seconds > MOST_FP32_RATIO * mix.device_seconds:
        return None
    attained = _attained(costs)
    if attained is not None and attained < LEAST_ATTAINED_RATIO:
        return None
    reached = ""
    if attained is not None and costs is not None:
        reached = f" Its operators reach {ratio_text(attained)} of the {costs.peak_dtype} peak."
    return Finding(
        statement=(
            f"Nothing is wrong with the pace: the device computes "
            f"{ratio_text(breakdown.parts['compute'])} of the time, {ratio_text(dense)} of that in "
            f"matrix products, convolutions and attention.{reached}"
        ),
        severity=Severity.INFO,
        confidence=certainty(0.85 if attained is not None else 0.75, breakdown, mix),
        observations=(
            Observation(
                statement=f"computing: {ratio_text(breakdown.parts['compute'])} of the time",
                value=breakdown.parts["compute"],
                unit="ratio",
                source=breakdown.source,
            ),
            Observation(
                statement=f"dense arithmetic: {ratio_text(dense)} of the kernels' time",
                value=dense,
                unit="ratio",
                source=mix.source,
            ),
        ),
        actions=(
            Action(
                title="Compute in a cheaper format",
                change='with torch.autocast("cuda", dtype=torch.bfloat16):',
                cost="fewer bits; compare the loss curves",
            ),
            Action(
                title="Do less work, or use a faster device",
                change="advisor-cli roofline --device NAME --model MODEL --phase train",
            ),
        ),
        impact=Impact(step_ratio=0.0),
        ruled_out=tuple(
            RuledOut(code=code, because=f"{what} takes {ratio_text(breakdown.parts[part])} of the time")
            for code, part, what in (
                ("INP101", "input_wait", "waiting for input"),
                ("HST101", "launch", "waiting for launches"),
                ("HST102", "synchronization", "waiting for results"),
                ("COM101", "exposed_communication", "exposed communication"),
            )
        ),
    )


def _attained(costs: OperatorCosts | None) -> float | None:
    if costs is None or not costs.flops or not costs.peak_flops or not costs.window_seconds:
        return None
    return costs.flops / costs.window_seconds / costs.peak_flops


def _has_tensor_cores(mix: KernelMix) -> bool:
    major = mix.capability.partition(".")[0]
    return major.isdigit() and int(major) >= 7  # noqa: PLR2004 - Volta was the first with them


def fires() -> Case:
    """A bf16 training step that computes 92% of the time and reaches 45% of the peak."""
    from advisor.rules.samples_time import a_mix, operator_costs

    return a_case(a_breakdown(launch=0.05, input_wait=0.03), a_mix(), operator_costs())


def clean() -> Case:
    """As busy a device, that spends its time in pointwise operations and conversions."""
    from advisor.rules.samples_time import a_mix

    return a_case(
        a_breakdown(launch=0.05, input_wait=0.03),
        a_mix(
            seconds=(("elementwise", 0.5), ("copy", 0.25), ("matmul", 0.15)),
            counts=(("elementwise", 3_500), ("copy", 1_000), ("matmul", 500)),
        ),
    )
