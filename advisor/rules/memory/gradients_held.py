"""Gradients of the last step stay in memory while the next forward pass makes its own peak.

## What it means

Gradients are as large as the trainable weights. They are needed from backward to the optimizer's step. If they are set
to zero instead of dropped, or accumulated over micro-batches, they are also there during forward, when activations
reach their peak.

## How it is recognized

In a snapshot whose peak lies in the forward pass, gradients are at least 10% of what is live.

## What to do

zero_grad(set_to_none=True) (the default since torch 2.0) before the forward pass. With accumulation, fewer micro-batches or
gradients in bf16.

## What it is confused with

A peak in backward or in the optimizer's step has all gradients, and must. With accumulation they are meant to stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Impact, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import block_fact, held_bytes, is_attributed, ledger_severity
from advisor.rules.facts import plain_fact
from advisor.rules.remedies import saving
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_ledger, a_record

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText

LIVE_RATIO = 0.1
"""Share of the live bytes below which dropping the gradients changes little."""

ACCUMULATION_SETTINGS = (
    "gradient_accumulation_steps",
    "accumulate_grad_batches",
    "grad_accum_steps",
)


@rule("MEM104", "gradients-held")
def gradients_held(ledger: MemoryLedger, record: AllocatorRecord, failure: Failure | None, log: LogText | None) -> Finding | None:
    """Gradients are live at a peak in the forward pass."""
    gradients, held = ledger.entry("gradients"), held_bytes(ledger)
    if not is_attributed(ledger) or ledger.at is Moment.DUMP or record.peak_phase != "forward":
        return None
    if not held or gradients < LIVE_RATIO * held:
        return None
    severity = ledger_severity(ledger, failure, record)
    if severity is None:
        return None
    accumulates = _accumulates(log)
    predicted, verified_by = saving(ledger, record, gradients)
    facts = [
        block_fact(ledger, "gradients"),
        plain_fact("the peak lies in the forward pass", record.source),
    ]
    drop = Action(
        title="Drop gradients after the step",
        change="optimizer.zero_grad(set_to_none=True)  # right after optimizer.step(), before the next forward",
        predicted=predicted,
        verified_by=verified_by,
    )
    shrink = Action(
        title="Accumulate in bf16, or over fewer micro-batches",
        change="gradient dtype bf16 (FSDP MixedPrecision(reduce_dtype=...)), gradient_accumulation_steps halved with twice the micro-batch",
        cost="accumulated bf16 gradients are less exact",
    )
    return Finding(
        statement="Gradients of an earlier backward pass are still in memory while the forward pass makes the peak"
        + ("; this job accumulates, so they are meant to stay." if accumulates else "."),
        severity=Severity.INFO if accumulates else min(severity, Severity.WARNING),
        confidence=0.5 if accumulates else 0.65,
        observations=tuple(facts),
        actions=(shrink,) if accumulates else (drop, shrink),
        settles=Action(
            title="See where the gradients are dropped",
            change="print([p.grad is None for p in model.parameters()][:5])  # at the start of forward",
        ),
        impact=Impact(recoverable_bytes=gradients),
    )


def _accumulates(log: LogText | None) -> bool:
    for name in ACCUMULATION_SETTINGS:
        value = (log.setting(name) or "").strip() if log is not None else ""
        if value.isdigit() and int(value) > 1:
            return True
    return False


def fires() -> Case:
    """14 GiB of gradients at a peak in forward, on a device that is full."""
    return a_case(
        a_ledger(weights=14 * GIB, gradients=14 * GIB, optimizer_states=28 * GIB, activations=20 * GIB),
        a_record(peak_phase="forward"),
    )


def clean() -> Case:
    """The same at a peak in backward, where gradients must be."""
    return a_case(
        a_ledger(weights=14 * GIB, gradients=14 * GIB, optimizer_states=28 * GIB, activations=20 * GIB),
        a_record(peak_phase="backward"),
    )
