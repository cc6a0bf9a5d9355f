"""Attention is computed as two products with a softmax between, and its scores pass through memory.

## What it means

Attention compares each position with each other. Written out, the comparisons form a matrix of
batch by heads by T by T scores that is written to memory, read for the softmax, written again and
read again. Fused attention computes the same in one kernel, without ever storing the scores: less
traffic, and memory that grows with T instead of T².

## How it is recognized

A softmax stands between two batched matrix products, or `scaled_dot_product_attention` fell back
to its math backend, and these operations take at least 10% of the time.

## What to do

Call `scaled_dot_product_attention`, in a form that its fused backends accept.

## What it is confused with

The softmax of a loss or of a router, which has no second product behind it. A fused kernel, which
has "flash", "fmha", "attn_fwd" or "efficient_attention" in its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.kernels import AttentionMix, KernelMix
    from advisor.model.step_time import StepBreakdown

LEAST_RATIO = 0.10
"""Of the window: below, a faster attention shortens the step by no more than a few percent."""

FUSED_AWAY_RATIO = 0.75
"""Of its time, at most: FlashAttention's authors report up to four times (Dao et al., 2022,
section 4)."""


@rule("CMP106", "attention-not-fused")
def attention_not_fused(breakdown: StepBreakdown, attention: AttentionMix, mix: KernelMix | None) -> Finding | None:
    """Fire where written-out attention takes a tenth of the time."""
    if not attention.unfused_count or not attention.device_seconds:
        return None
    if breakdown.is_of_device:
        computing = breakdown.seconds["compute"]
        taken = computing * min(1.0, attention.unfused_seconds / attention.device_seconds)
    else:
        taken = min(attention.unfused_seconds, breakdown.window_seconds)
    if taken < LEAST_RATIO * breakdown.window_seconds:
        return None
    saved = FUSED_AWAY_RATIO * taken
    scores = f"; its scores take up to {bytes_text(attention.scores_bytes)} each time" if attention.scores_bytes else ""
    fell_back = attention.math_count > 0
    return Finding(
        statement=(
            f"Written-out attention takes {per_step_text(breakdown, taken)}: a softmax between two "
            f"matrix products, {count_text(attention.unfused_count, 'time')}{scores}."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.85, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"product, softmax, product: {count_text(attention.unfused_count, 'time')}, {seconds_text(attention.unfused_seconds)}"
                ),
                value=attention.unfused_seconds,
                unit="seconds",
                source=attention.source,
            ),
            Observation(
                statement=f"fused attention: {count_text(attention.fused_count, 'call')}",
                value=float(attention.fused_count),
                unit="count",
                source=attention.source,
            ),
        ),
        actions=(
            Action(
                title=(
                    "Give scaled_dot_product_attention a form that its fused backends accept"
                    if fell_back
                    else "Use scaled_dot_product_attention"
                ),
                change=(
                    "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True) "
                    "instead of an explicit mask; bf16 or fp16; contiguous q, k, v; in transformers "
                    'from_pretrained(..., attn_implementation="sdpa")'
                ),
                cost="no access to the attention weights; results differ in the last bits",
                predicted=step_without(breakdown, saved),
            ),
            Action(
                title="See why a fused backend refuses",
                change="with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): warns why",
            ),
        ),
        impact=step_impact(breakdown, saved),
    )


def fires() -> Case:
    """Scores of 16 sequences of 16 heads, 2048² in bf16, in each of 24 layers."""
    from advisor.rules.samples_time import a_mix, an_attention

    return a_case(
        a_breakdown(),
        an_attention(
            unfused_count=240,
            unfused_seconds=0.4,
            fused_count=0,
            scores_bytes=2 * 16 * 16 * 2048 * 2048,
        ),
        a_mix(
            seconds=(("matmul", 0.6), ("softmax", 0.2), ("elementwise", 0.1)),
            fused_attention_count=0,
        ),
    )


def clean() -> Case:
    """Fused attention, and one small written-out one over a few positions."""
    from advisor.rules.samples_time import a_mix, an_attention

    return a_case(
        a_breakdown(),
        an_attention(unfused_count=10, unfused_seconds=0.002, scores_bytes=65_536),
        a_mix(),
    )
