"""The job does a small part of the arithmetic that its device could do in the same time.

## What it means

Model FLOPs utilization (MFU) is the arithmetic that the model needs over what the device could do
at its dense peak in that time. 40-50% is good for training; the rest goes to waits, exchanges,
small operators and kernels that do not reach the peak. It is the sum of all losses, and says
nothing about their causes by itself.

## How it is recognized

The FLOPs of the recorded shapes over the window, divided by the dense peak of the format they
were done in, are below 30%. Only where shapes are recorded for most of the matrix time, the
device's peak is known, and the work is above the ridge point: work that is limited by bandwidth
cannot reach the peak. Recomputed forward passes count as work here, so with activation
checkpointing the true MFU is lower.

## What to do

Follow the ranked losses below it; the largest part of the breakdown comes first.

## What it is confused with

Token generation, which is limited by bandwidth: see CMP112. A profile of the first steps: see
HST111.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.ceilings import DeviceCeilings
    from advisor.model.kernels import DecodeSigns, KernelMix, OperatorCosts
    from advisor.model.step_time import StepBreakdown

LOW_RATIO = 0.30
"""Of the dense peak: 40-50% is good, 30% is common for a first version."""

LEAST_MODELLED_RATIO = 0.50
"""Of the operators' time, in those with known FLOPs; with less the figure is not the job's."""

LEAST_PRODUCT_RATIO = 0.50
"""Of the FLOPs, in matrix products: a peak is a peak of products, other kernels have none to
reach."""

PART_NAMES = {
    "compute": "computing",
    "exposed_communication": "exposed communication",
    "exposed_copies": "exposed copies",
    "input_wait": "waiting for input",
    "synchronization": "waiting for results",
    "launch": "waiting for launches",
    "other_idle": "other idle time",
}


@rule("CMP117", "low-mfu")
def low_mfu(
    breakdown: StepBreakdown,
    costs: OperatorCosts,
    ceilings: DeviceCeilings,
    mix: KernelMix | None,
    decode: DecodeSigns | None,
) -> Finding | None:
    """Fire, as information, where known FLOPs are a small part of a known peak."""
    if not costs.is_device_time or not costs.flops or not costs.peak_flops or not breakdown.is_of_device:
        return None
    if costs.modelled_seconds < LEAST_MODELLED_RATIO * costs.total_seconds:
        return None
    if (decode is not None and decode.mark) or _is_below_the_ridge(costs, ceilings):
        return None
    if sum(product.flops for product in costs.matmuls) < LEAST_PRODUCT_RATIO * costs.flops:
        return None
    mfu = costs.flops / breakdown.window_seconds / costs.peak_flops
    if mfu >= LOW_RATIO:
        return None
    while_computing = mfu / breakdown.parts["compute"] if breakdown.parts["compute"] else 0.0
    parts = sorted(breakdown.parts.items(), key=lambda part: -part[1])
    lost = [f"{PART_NAMES[name]} {ratio_text(ratio)}" for name, ratio in parts if ratio >= 0.01]  # noqa: PLR2004 - below a percent nobody acts
    return Finding(
        statement=(
            f"The job reaches {ratio_text(mfu)} of the device's dense {costs.peak_dtype} peak "
            f"({ratio_text(while_computing)} while it computes). Its time: {', '.join(lost)}."
        ),
        severity=Severity.INFO,
        confidence=certainty(0.8, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"{costs.flops / 1e12:,.2f} TFLOP by the recorded shapes, {costs.flops / breakdown.window_seconds / 1e12:,.1f} TFLOP/s"
                ),
                value=mfu,
                unit="ratio",
                source=costs.source,
            ),
            Observation(
                statement=(f"the peak of {costs.device_name}: {costs.peak_flops / 1e12:,.0f} TFLOP/s dense ({costs.peak_source})"),
                value=costs.peak_flops,
                unit="FLOP/s",
                source=ceilings.source,
            ),
        ),
        actions=(
            Action(
                title="Follow the findings on the largest parts",
                change="they stand in this report, by what each could win",
            ),
        ),
    )


def _is_below_the_ridge(costs: OperatorCosts, ceilings: DeviceCeilings) -> bool:
    """Whether the products together move so many bytes that bandwidth limits them."""
    ridge = ceilings.ridge_point(costs.peak_dtype)
    flops = sum(product.flops for product in costs.matmuls)
    moved = sum(product.moved_bytes for product in costs.matmuls)
    return ridge is not None and moved > 0 and flops / moved < ridge


def fires() -> Case:
    """A training step on an A100 at 18% of its bf16 peak, with half of the time lost to waits."""
    from advisor.rules.samples_time import a_ceiling, a_mix, operator_costs

    return a_case(
        a_breakdown(input_wait=0.3, launch=0.2),
        operator_costs(flops=0.18 * 312e12, modelled_seconds=0.4, total_seconds=0.5),
        a_ceiling(),
        a_mix(),
    )


def clean() -> Case:
    """The same job without the waits: 45%."""
    from advisor.rules.samples_time import a_ceiling, a_mix, operator_costs

    return a_case(a_breakdown(launch=0.05), operator_costs(), a_ceiling(), a_mix())
