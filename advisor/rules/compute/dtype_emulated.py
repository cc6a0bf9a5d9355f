"""The job computes in bf16 on a card that has no arithmetic for it.

## What it means

bf16 came to NVIDIA's cards with Ampere (compute capability 8.0). On V100 and T4 PyTorch still
accepts it: values are converted to fp32, computed there and converted back, without tensor cores.
It is slower than fp32, and many times slower than fp16.

## How it is recognized

Matrix products in bf16, by their kernels' names in a trace, on a card of compute capability below
8.0. In a log, by an engine's refusal of bf16 on such a card.

## What to do

Use fp16, with loss scaling in training.

## What it is confused with

bf16 on Ampere and later, and on AMD's CDNA cards, where it is native.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, share_of_window
from advisor.rules.wording import count_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.ceilings import DeviceCeilings
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown

FIRST_BF16 = 8
"""Major compute capability of the first NVIDIA cards with bf16 arithmetic (Ampere)."""

LEAST_RATIO = 0.05
"""Of the kernels' time: a stray conversion is no reason to change the format."""

TOPIC = "half-precision"
"""Under which a log's mentions keep lines about bf16."""

_UNSUPPORTED = re.compile(
    r"(?:bf16|bfloat16).{0,60}(?:not support|unsupported|only supported on)|"
    r"(?:n't|not) support.{0,20}(?:bf16|bfloat16)",
    re.IGNORECASE,
).search

FP16 = Action(
    title="Compute in fp16 instead",
    change=(
        'training: torch.autocast("cuda", dtype=torch.float16) with torch.amp.GradScaler, in '
        "transformers fp16=True, bf16=False; serving: --dtype float16"
    ),
    cost="fp16 has a narrow range: models trained in bf16 can overflow; check the outputs",
)


@rule("CMP118", "dtype-emulated")
def dtype_emulated(
    breakdown: StepBreakdown | None,
    mix: KernelMix | None,
    ceilings: DeviceCeilings | None,
    log: LogText | None,
    failure: Failure | None,
) -> Finding | None:
    """Fire on bf16 products on a card without bf16, else on a log that says so."""
    if mix is not None:
        return _by_trace(breakdown, mix, ceilings)
    return _by_log(log) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown | None, mix: KernelMix, ceilings: DeviceCeilings | None) -> Finding | None:
    if ceilings is not None and ceilings.vendor != "NVIDIA":
        return None
    capability = mix.capability or (ceilings.capability if ceilings is not None else "")
    major, dot, _ = capability.partition(".")
    name = mix.device_name or (ceilings.name if ceilings is not None else "this card")
    if not dot or not major.isdigit() or int(major) >= FIRST_BF16 or "AMD" in name:
        return None
    if not mix.bf16_count or mix.bf16_seconds < LEAST_RATIO * mix.device_seconds:
        return None
    ratio = None
    if breakdown is not None:
        ratio = share_of_window(breakdown, mix.bf16_seconds)
    return Finding(
        statement=(
            f"{name} has no bf16 arithmetic (compute capability {capability}): "
            f"{count_text(mix.bf16_count, 'product')} in bf16 are emulated and take "
            f"{seconds_text(mix.bf16_seconds)}."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.9, breakdown, mix),
        observations=(
            Observation(
                statement=f"kernels of bf16 products: {seconds_text(mix.bf16_seconds)}",
                value=mix.bf16_seconds,
                unit="seconds",
                source=mix.source,
            ),
        ),
        actions=(FP16,),
        impact=Impact(step_ratio=ratio),
    )


def _by_log(log: LogText) -> Finding | None:
    mention = next((each for each in log.mentions if each.topic == TOPIC and _UNSUPPORTED(each.text)), None)
    if mention is None:
        return None
    return Finding(
        statement="The log says that this card does not support bf16.",
        severity=Severity.WARNING,
        confidence=0.85,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=(FP16,),
    )


def fires() -> Case:
    """bf16 autocast on a V100."""
    from advisor.rules.samples_time import a_mix

    return a_case(
        a_breakdown(),
        a_mix(
            device_name="Tesla V100-SXM2-16GB",
            capability="7.0",
            bf16_seconds=0.5,
            bf16_count=2_000,
            tensor_core_seconds=0.0,
        ),
    )


def clean() -> Case:
    """The same job on an A100."""
    from advisor.rules.samples_time import a_mix

    return a_case(a_breakdown(), a_mix(bf16_seconds=0.5, bf16_count=2_000))
