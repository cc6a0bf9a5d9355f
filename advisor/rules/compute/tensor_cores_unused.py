"""Matrix products run in full fp32 on a device whose tensor cores would be several times faster.

## What it means

Since 2017 NVIDIA's data-center cards have units for matrix products that reach eight times and
more the rate of the ordinary ones. They work on fp16 and, since Ampere, on bf16 and TF32 (fp32
numbers rounded to 10 bits of mantissa inside the product). PyTorch leaves TF32 off for matrix
products, so a model in fp32 does not use them.

## How it is recognized

By the kernels' names in a trace (`sgemm`, cuDNN's fp32 convolutions, without `tf32` or
`tensorop`): they take at least 10% of the time, on a card with tensor cores. In a log, by
PyTorch's own warning that TensorFloat32 is available and not enabled. AMD's matrix cores also
work in fp32; there the rule does not apply.

## What to do

On Ampere and later, one line turns TF32 on; bf16 autocast gains more. On Volta and Turing use
fp16 autocast with loss scaling.

## What it is confused with

Cards without tensor cores (Pascal, GTX 16). Scientific code that needs all 24 bits. Kernels that
are fp32 but not matrix products, which would not gain.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Impact, Observation, Prediction, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, seconds_while_computing, step_impact, step_without
from advisor.rules.wording import count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.ceilings import DeviceCeilings
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown

LEAST_RATIO = 0.10
"""Of the window, in fp32 products: less is not worth a change of precision."""

FIRST_TENSOR_CORES = (7, 0)
"""Compute capability of the first card with tensor cores (Volta)."""

FIRST_TF32 = (8, 0)
"""Compute capability of the first card with TF32 and bf16 (Ampere)."""

_COMPARES = re.compile(
    r"(?:\bx ?\d+|\d+ ?x\b|times|slower|faster).{0,60}(?:float32|fp32).{0,40}(?:float16|fp16|half|bf16)|"
    r"(?:float32|fp32).{0,60}(?:\bx ?\d+|\d+ ?x\b|times|slower).{0,40}(?:float16|fp16|half|bf16)",
    re.IGNORECASE,
).search
"""A line that compares the speed of both formats."""

TF32_PRECISION = Action(
    title="Let fp32 matrix products use TF32",
    change=('torch.set_float32_matmul_precision("high"); for convolutions torch.backends.cudnn.allow_tf32 = True'),
    cost="products are rounded to 10 bits of mantissa (range as fp32); sums stay fp32",
)

BF16 = Action(
    title="Train in bf16",
    change='with torch.autocast("cuda", dtype=torch.bfloat16): around forward and loss',
    cost="7 bits of mantissa in products and activations; compare the loss curves",
)

FP16 = Action(
    title="Train in fp16 with loss scaling",
    change=('with torch.autocast("cuda", dtype=torch.float16): around forward and loss; torch.amp.GradScaler around backward and step'),
    cost="fp16 has a narrow range: the scaler skips steps that overflow; compare the loss curves",
)


@rule("CMP104", "tensor-cores-unused")
def tensor_cores_unused(
    breakdown: StepBreakdown | None,
    mix: KernelMix | None,
    ceilings: DeviceCeilings | None,
    log: LogText | None,
    failure: Failure | None,
) -> Finding | None:
    """Fire on fp32 product kernels on a card with tensor cores, else on PyTorch's warning."""
    if breakdown is not None and mix is not None:
        return _by_trace(breakdown, mix, ceilings)
    return _by_log(log) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown, mix: KernelMix, ceilings: DeviceCeilings | None) -> Finding | None:
    capability = _capability(mix, ceilings)
    name = mix.device_name or (ceilings.name if ceilings is not None else "this card")
    if capability is None or capability < FIRST_TENSOR_CORES or "GTX 16" in name:
        return None
    taken = seconds_while_computing(breakdown, mix, mix.fp32_matmul_seconds)
    if taken < LEAST_RATIO * breakdown.window_seconds:
        return None
    has_tf32 = capability >= FIRST_TF32
    speedup = _speedup(ceilings, has_tf32=has_tf32)
    saved = taken * (1.0 - 1.0 / speedup) if speedup else None
    predicted = Prediction() if saved is None else step_without(breakdown, saved)
    first = TF32_PRECISION if has_tf32 else FP16
    return Finding(
        statement=(
            f"Matrix products in full fp32 take {per_step_text(breakdown, taken)} on {name}, whose tensor cores stay unused by them."
        ),
        # On older cards the remedy changes the training's numbers: a decision, not a setting.
        severity=Severity.WARNING if has_tf32 else Severity.INFO,
        confidence=certainty(0.9, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"{count_text(mix.fp32_matmul_count, 'fp32 product kernel')}: "
                    f"{seconds_text(mix.fp32_matmul_seconds)}, "
                    f"{ratio_text(mix.fp32_matmul_seconds / mix.device_seconds)} of the kernels' time"
                ),
                value=mix.fp32_matmul_seconds,
                unit="seconds",
                source=mix.source,
            ),
            Observation(
                statement=(
                    f"on tensor cores: {seconds_text(mix.tensor_core_seconds)}; the card has "
                    f"compute capability {capability[0]}.{capability[1]}"
                ),
                value=mix.tensor_core_seconds,
                unit="seconds",
                source=mix.source,
            ),
        ),
        actions=(
            Action(
                title=first.title,
                change=first.change,
                cost=first.cost,
                predicted=predicted,
            ),
            *((BF16,) if has_tf32 else ()),
        ),
        impact=Impact() if saved is None else step_impact(breakdown, saved),
    )


def _speedup(ceilings: DeviceCeilings | None, *, has_tf32: bool) -> float | None:
    """How many times faster the tensor cores' dense peak is; None where a peak is unknown."""
    if ceilings is None:
        return None
    plain = ceilings.dense_peaks.get("fp32")
    fast = ceilings.dense_peaks.get("tf32" if has_tf32 else "fp16")
    if plain is None or fast is None or not plain.value:
        return None
    return max(1.0, fast.value / plain.value)


def _capability(mix: KernelMix, ceilings: DeviceCeilings | None) -> tuple[int, int] | None:
    """The NVIDIA compute capability; None for AMD and where nothing tells it."""
    if ceilings is not None and ceilings.vendor != "NVIDIA":
        return None
    text = mix.capability or (ceilings.capability if ceilings is not None else "")
    major, dot, minor = text.partition(".")
    if not dot or not major.isdigit() or not minor.isdigit() or _is_amd(mix.device_name):
        return None
    return int(major), int(minor)


def _is_amd(device_name: str) -> bool:
    return "AMD" in device_name or "Radeon" in device_name or "Instinct" in device_name


def _by_log(log: LogText) -> Finding | None:
    mention = log.mentioned("tf32-disabled")
    if mention is None:
        return _by_comparison(log)
    return Finding(
        statement=("PyTorch says that this card could do fp32 matrix products on its tensor cores (TF32) and that it is not allowed to."),
        severity=Severity.WARNING,
        confidence=0.9,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=(TF32_PRECISION, BF16),
        settles=Action(
            title="Record a trace to see how much of the time these products take",
            change="torch.profiler with activities=[CPU, CUDA] around a few steps",
        ),
    )


def _by_comparison(log: LogText) -> Finding | None:
    """Somebody measured the same product in fp32 and fp16 and wonders at the difference."""
    mention = next((each for each in log.mentions if each.topic == "float32" and _COMPARES(each.text)), None)
    if mention is None:
        return None
    return Finding(
        statement="By the log, fp32 is several times slower than 16-bit formats here: so it is without TF32.",
        severity=Severity.WARNING,
        confidence=0.5,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=(TF32_PRECISION, BF16),
        settles=Action(
            title="See whether TF32 is allowed",
            change="print(torch.get_float32_matmul_precision(), torch.cuda.get_device_capability())",
        ),
    )


def fires() -> Case:
    """An fp32 training on an A100 with PyTorch's defaults."""
    from advisor.rules.samples_time import a_ceiling, a_mix

    return a_case(
        a_breakdown(launch=0.1),
        a_mix(fp32_matmul_seconds=0.6, fp32_matmul_count=2_000, tensor_core_seconds=0.0),
        a_ceiling(),
    )


def clean() -> Case:
    """The same products as TF32, with a few small fp32 ones left."""
    from advisor.rules.samples_time import a_ceiling, a_mix

    return a_case(
        a_breakdown(launch=0.1),
        a_mix(fp32_matmul_seconds=0.01, fp32_matmul_count=40, tensor_core_seconds=0.59),
        a_ceiling(),
    )
