"""Thousands of matrix products so small that each is over before the next is launched.

## What it means

A device does a large product at thousands of times the rate of a small one: a product of a few
microseconds uses a few of its units and costs as much for its launch. Loops over experts, heads,
adapters or time steps in Python make thousands of them.

## How it is recognized

At least 300 matrix products a step (or a thousand in a window without steps) are shorter than 10
µs, they are most of the products, and they are at least 10% of the time together with the gaps
that their launches leave.

## What to do

Make one product of many: batch, stack or group them.

## What it is confused with

A small model as a whole, for which HST101 is the answer. Token generation out of a graph, whose
products are short because they read little: see CMP112.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.model.kernels import TINY_MATMUL_SECONDS, DecodeSigns, KernelMix, LaunchProfile
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.step_time import StepBreakdown

FEWEST_A_STEP = 300
"""Tiny products a step: a transformer of 32 layers has about 230 products forward, none of them
tiny."""

FEWEST_IN_WINDOW = 1_000
"""Tiny products in a window without steps: "thousands of small GEMMs"."""

LEAST_TINY_RATIO = 0.5
"""Of all products."""

LEAST_RATIO = 0.10
"""Of the window."""

MOST_GRAPH_RATIO = 0.5
"""Of the kernels, out of graphs: then launches cost nothing, and batching wins less."""


@rule("CMP111", "many-tiny-matmuls")
def many_tiny_matmuls(
    breakdown: StepBreakdown,
    mix: KernelMix,
    launches: LaunchProfile | None,
    decode: DecodeSigns | None,
) -> Finding | None:
    """Fire on hundreds of products a step that are shorter than two launches."""
    count, products = mix.tiny_matmul_count, mix.count_of("matmul")
    least = FEWEST_A_STEP * breakdown.step_count if breakdown.step_count else FEWEST_IN_WINDOW
    if count < least or count < LEAST_TINY_RATIO * products or not breakdown.is_of_device:
        return None
    if launches is not None and launches.graph_kernel_ratio > MOST_GRAPH_RATIO:
        return None
    if decode is not None and decode.mark:
        return None
    # Idle time is the products' own in proportion to their share of the launches.
    gaps = breakdown.seconds["launch"] * count / mix.kernel_count if mix.kernel_count else 0.0
    taken = min(mix.tiny_matmul_seconds, breakdown.seconds["compute"]) + gaps
    if taken < LEAST_RATIO * breakdown.window_seconds:
        return None
    each = count / breakdown.step_count if breakdown.step_count else count
    where = "a step" if breakdown.step_count else "in the window"
    return Finding(
        statement=(
            f"{each:,.0f} matrix products {where} are shorter than "
            f"{seconds_text(TINY_MATMUL_SECONDS)}; with their launches they take "
            f"{per_step_text(breakdown, taken)}."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.75, breakdown, mix),
        observations=(
            Observation(
                statement=(f"{count_text(count, 'tiny product')} of {products:,}, {seconds_text(mix.tiny_matmul_seconds / count)} each"),
                value=float(count),
                unit="count",
                source=mix.source,
            ),
            Observation(
                statement=f"tiny products are {ratio_text(count / products)} of all products",
                value=count / products,
                unit="ratio",
                source=mix.source,
            ),
        ),
        actions=(
            Action(
                title="Make one product of many",
                change=(
                    "stack the operands and use torch.bmm, or torch.vmap over the loop; for experts "
                    "of unequal size a grouped GEMM (torch._grouped_mm, MegaBlocks)"
                ),
                cost="work on the model's code; padding where sizes differ",
            ),
            Action(
                title="Replay the launches",
                change='torch.compile(model, mode="reduce-overhead")',
                cost="static shapes; memory for the graphs",
            ),
        ),
        impact=step_impact(breakdown, taken),
    )


def fires() -> Case:
    """A loop over 64 experts in each of 12 layers, in Python."""
    from advisor.rules.samples_time import a_launch_profile, a_mix

    return a_case(
        a_breakdown(launch=0.4),
        a_mix(
            kernel_count=40_000,
            seconds=(("matmul", 0.25), ("elementwise", 0.2)),
            counts=(("matmul", 16_000), ("elementwise", 24_000)),
            tiny_matmul_count=15_000,
            tiny_matmul_seconds=0.09,
        ),
        a_launch_profile(kernel_count=40_000, launch_count=40_000),
    )


def clean() -> Case:
    """As many short kernels, and only a few of them are products."""
    from advisor.rules.samples_time import a_launch_profile, a_mix

    return a_case(
        a_breakdown(launch=0.4),
        a_mix(kernel_count=40_000, tiny_matmul_count=900, tiny_matmul_seconds=0.005),
        a_launch_profile(kernel_count=40_000, launch_count=40_000),
    )
