"""Tokens are generated a few sequences at a time: the time goes to reading weights.

## What it means

To generate the next token, every weight is read once and used for two operations a sequence. At
batch B that is B operations a byte (in 16-bit formats), and a device needs hundreds to be limited
by its arithmetic. So the time of a step is about bytes / bandwidth, whatever the arithmetic could
do, and hardly depends on the batch.

## How it is recognized

The trace shows generation: by a mark of the engine (vLLM and SGLang write one a step), by kernels
that read a paged KV cache, or by products that are nearly all matrix times vector. The batch,
where known, is below the ridge point. No backward pass is in it.

## What to do

Read fewer bytes, or use each for more sequences.

## What it is confused with

Prefill, which processes whole prompts and is limited by computing. Generation that waits for
launches between short kernels: HST101. A step that waits for the host or its scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty
from advisor.rules.wording import count_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.ceilings import DeviceCeilings
    from advisor.model.kernels import DecodeSigns, KernelMix
    from advisor.model.step_time import StepBreakdown

LEAST_READING_RATIO = 0.50
"""Of the kernels' time, in products and attention: the kernels that read weights and cache."""

LEAST_VECTOR_RATIO = 0.60
"""Of the products' time, in matrix-vector products: the sign of one sequence at a time, without
a mark."""

TYPICAL_RIDGE = 150.0
"""FLOP a byte; the smallest ridge point of data-center cards in 16-bit formats (A100: 153, H100:
295)."""

ACTIONS = (
    Action(
        title="Serve more sequences a step",
        change="raise max_num_seqs (vLLM) or the batch: a step takes nearly as long, and yields more",
        cost="KV cache memory and latency of the single request",
    ),
    Action(
        title="Read smaller weights",
        change="int4 or fp8 weights: a quarter or half of the bytes, and nearly of the time",
        cost="accuracy; measure on your own evaluation",
    ),
    Action(
        title="Guess several tokens and check them at once",
        change="speculative decoding with a small draft model or n-grams",
        cost="memory for the draft; gains only where guesses are accepted",
    ),
)


@rule("CMP112", "decode-memory-bound")
def decode_memory_bound(
    decode: DecodeSigns,
    breakdown: StepBreakdown | None,
    mix: KernelMix | None,
    ceilings: DeviceCeilings | None,
) -> Finding | None:
    """Fire on generation at a batch below the ridge point."""
    if not decode.device_seconds or (mix is not None and mix.backward_ratio > 0):
        return None
    reading = (decode.matmul_seconds + decode.attention_seconds) / decode.device_seconds
    vector = decode.vector_matmul_seconds / decode.matmul_seconds if decode.matmul_seconds else 0.0
    is_shown = bool(decode.mark or decode.paged_attention_count) and not decode.has_prefill
    if reading < LEAST_READING_RATIO or not (is_shown or vector >= LEAST_VECTOR_RATIO):
        return None
    known_ridge = ceilings.ridge_point("bf16") if ceilings is not None else None
    ridge = known_ridge or TYPICAL_RIDGE
    if decode.sequence_count is not None and decode.sequence_count >= ridge:
        return None
    needed = f"{ridge:.0f} would be needed" if known_ridge else f"data-center cards need {ridge:.0f} and more"
    batch = (
        f" at {count_text(decode.sequence_count, 'sequence')} a step, about {decode.sequence_count} FLOP a byte where {needed}"
        if decode.sequence_count is not None
        else ""
    )
    claimed = 0.85 if decode.mark and decode.sequence_count else 0.7 if is_shown else 0.6
    return Finding(
        statement=(f"This is token generation{batch}: its pace is set by reading weights and KV cache from memory, and not by computing."),
        severity=Severity.INFO,
        confidence=certainty(claimed, breakdown, mix) if not decode.mark else claimed,
        observations=(
            Observation(
                statement=f"products and attention: {ratio_text(reading)} of the kernels' time",
                value=reading,
                unit="ratio",
                source=decode.source,
            ),
            Observation(statement=_sign(decode, vector), source=decode.source),
        ),
        actions=ACTIONS,
        settles=Action(
            title="Compare the measured step with bytes / bandwidth",
            change="advisor-cli roofline --device NAME --model MODEL --phase decode --batch N",
        ),
    )


def _sign(decode: DecodeSigns, vector: float) -> str:
    if decode.mark:
        return f'the engine marks the step "{decode.mark[:80]}"'
    if decode.paged_attention_count:
        return f"{count_text(decode.paged_attention_count, 'kernel')} read a paged KV cache"
    return f"{ratio_text(vector)} of the products' time is matrix times vector"


def fires() -> Case:
    """A decode step of 32 sequences, as an engine marks it."""
    from advisor.rules.samples_time import a_decode, a_mix

    return a_case(
        a_breakdown(),
        a_decode(
            mark="step[DECODE bs=32]",
            sequence_count=32,
            step_count=10,
            paged_attention_count=320,
            vector_matmul_seconds=0.5,
        ),
        a_mix(),
    )


def clean() -> Case:
    """Prompts are processed in the same step: products of thousands of rows."""
    from advisor.rules.samples_time import a_decode, a_mix

    return a_case(
        a_breakdown(),
        a_decode(
            mark="execute_context_4(4096)_generation_28(28)",
            sequence_count=28,
            step_count=10,
            has_prefill=True,
            paged_attention_count=320,
        ),
        a_mix(),
    )
