"""The weights are held in fp32 where bf16 would take half.

## What it means

A parameter takes 4 bytes in fp32 and 2 in bf16. For inference, for frozen weights, and for a model
that is computed in bf16 anyway, the second half buys nothing.

## How it is recognized

From a snapshot and the model's shape: the weights' block is about 4 bytes a parameter. From a log: it
fails while loading, with more live memory than the model would take in bf16; or the log says that it
loads in fp32.

## What to do

Load in bf16. In training, keep an fp32 master copy only if the optimizer needs one.

## What it is confused with

Mixed-precision training by autocast, whose fp32 weights are the master copy, is meant to be so. A
second copy of the model in bf16 (MEM106) makes 4 bytes a parameter too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, LogText, Phase
from advisor.model.finding import (
    Action,
    Finding,
    Impact,
    Observation,
    Prediction,
    Severity,
    Verification,
)
from advisor.rules.blocks import block_fact, ledger_severity
from advisor.rules.capacity import failure_fact, is_capacity_failure, severity_of
from advisor.rules.clues import anywhere, words
from advisor.rules.model_size import (
    FULL_BYTES_PER_PARAMETER,
    HALF_BYTES_PER_PARAMETER,
    arithmetic_fact,
    model_size,
)
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, SNAPSHOT, a_case, a_failure, a_ledger, a_log
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text, parameters_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord, MemoryLedger
    from advisor.model.transformer import TransformerShape

LEAST_BYTES_PER_PARAMETER = 3.6
"""Bytes of the weights' block over parameters from which it is fp32: 4, less what a model may share
between its embedding and its head."""

MOST_BYTES_PER_PARAMETER = 4.4
"""Above this there is something else than one fp32 copy in the block."""

BEYOND_HALF_RATIO = 1.1
"""Live bytes while loading, over what bf16 weights take in all, from which they cannot be bf16: a
tenth more than rounding and buffers."""

_STATED = words(
    "fp32|float|precision",
    r"(?:load\w*|weights|model|kept|cast|defaults?)\b.{0,40}\b(?:fp32|float32|full[- ]precision)\b"
    r"|torch_?dtype\s*=\s*torch\.float(?:32)?\b|\.float\(\)\s*(?:\.to|\.cuda)",
)


@rule("MEM105", "full-precision-weights")
def full_precision_weights(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
    shape: TransformerShape | None,
) -> Finding | None:
    """About 4 bytes a parameter in the weights' block, or fp32 loading that does not fit."""
    if ledger is not None and shape is not None:
        return _from_ledger(ledger, failure, record, shape)
    if failure is None or not is_capacity_failure(failure) or failure.phase is not Phase.LOADING:
        return None
    size = model_size(failure, log, shape)
    live = failure.allocated_bytes
    facts: tuple[Observation, ...] = ()
    saved: int | None = None
    stated = anywhere(_STATED, failure, log) or _setting(log)
    if size is not None and live is not None:
        half = size.parameter_count * HALF_BYTES_PER_PARAMETER
        full = size.parameter_count * FULL_BYTES_PER_PARAMETER
        wanted = live + (failure.requested_bytes or 0)
        if BEYOND_HALF_RATIO * half <= wanted <= full * BEYOND_HALF_RATIO:
            saved = int(half)
            facts = (
                size.fact,
                arithmetic_fact(f"{parameters_text(size.parameter_count)} parameters × 2 bytes (bf16)", half, size.fact),
            )
    if saved is None and stated is None:
        return None
    said = () if stated is None or isinstance(stated, Observation) else (stated.observation("the log says"),)
    said = (stated,) if isinstance(stated, Observation) else said
    fits = None if saved is None or not failure.total_bytes else saved < failure.total_bytes
    return Finding(
        statement="The model is being loaded in fp32, 4 bytes a parameter; in bf16 it takes half"
        + (f", {bytes_text(saved)}." if saved is not None else "."),
        severity=severity_of(failure),
        confidence=0.75 if saved is not None else 0.5,
        observations=(failure_fact(failure), *facts, *said),
        actions=(_in_bf16(Prediction(peak_bytes=saved, fits=fits)),),
        settles=Action(
            title="Print the dtype of the weights",
            change="print(next(model.parameters()).dtype)",
        ),
        impact=Impact(recoverable_bytes=saved),
    )


def _setting(log: LogText | None) -> Observation | None:
    for name in ("torch_dtype", "dtype"):
        text = (log.setting(name) or "") if log is not None else ""
        if log is not None and text.rpartition(".")[2] in {"float32", "float", "fp32"}:
            return Observation(statement=f"{name} is {text}", source=log.source)
    return None


def _from_ledger(
    ledger: MemoryLedger,
    failure: Failure | None,
    record: AllocatorRecord | None,
    shape: TransformerShape,
) -> Finding | None:
    size = model_size(None, None, shape)
    severity = ledger_severity(ledger, failure, record)
    weights = ledger.entry("weights")
    if size is None or severity is None or not weights:
        return None
    each = weights / size.parameter_count
    if not LEAST_BYTES_PER_PARAMETER <= each <= MOST_BYTES_PER_PARAMETER:
        return None
    saved = weights // 2
    return told_of_refusal(
        Finding(
            statement=f"The weights take {bytes_text(weights)}, {each:.1f} bytes a parameter: they are in "
            f"fp32. In bf16 they take {bytes_text(saved)}.",
            severity=min(severity, Severity.WARNING),
            confidence=0.7,
            observations=(block_fact(ledger, "weights"), size.fact),
            actions=(_in_bf16(Prediction(peak_bytes=None)),),
            settles=Action(
                title="Print the dtype of the weights",
                change="print(next(model.parameters()).dtype)",
            ),
            impact=Impact(recoverable_bytes=saved),
        ),
        ledger,
        failure,
        record,
    )


def _in_bf16(predicted: Prediction) -> Action:
    return Action(
        title="Load the weights in bf16",
        change="from_pretrained(..., torch_dtype=torch.bfloat16)  # or model.to(torch.bfloat16) on the host",
        cost="pure bf16 training needs an fp32 master copy or stochastic rounding to keep its accuracy",
        predicted=predicted,
        verified_by=Verification.ARITHMETIC if predicted.peak_bytes is not None else Verification.NONE,
    )


def fires() -> Case:
    """A 7B model fails at 22 GiB while it is loaded onto a card of 24 GiB."""
    return a_case(
        a_failure(
            phase=Phase.LOADING,
            total_bytes=int(23.7 * GIB),
            requested_bytes=GIB // 4,
            allocated_bytes=int(23.2 * GIB),
            free_bytes=GIB // 8,
        ),
        a_log(settings=(("model_name_or_path", "example/model-7b"),)),
    )


def clean() -> Case:
    """The weights of the same model take 2 bytes a parameter on a full device."""
    return a_case(a_ledger(device_bytes=24 * GIB, weights=13 * GIB, kv_cache=10 * GIB), _a_shape_of_seven_billion())


def _a_shape_of_seven_billion() -> TransformerShape:
    from advisor.model.transformer import TransformerShape

    return TransformerShape(
        source=SNAPSHOT,
        name="example-7b",
        layer_count=32,
        hidden_size=4096,
        head_count=32,
        kv_head_count=32,
        head_size=128,
        ffn_size=11008,
        vocabulary_size=32000,
    )
