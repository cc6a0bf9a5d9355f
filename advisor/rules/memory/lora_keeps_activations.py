"""Adapters are trained, and activations still fill the device: LoRA does not shrink them.

## What it means

LoRA trains a small part of the parameters, so gradients and optimizer states shrink to tens of MB.
The forward pass keeps as much for backward as in full fine-tuning, for gradients flow through every
frozen layer to reach the adapters.

## How it is recognized

The log speaks of LoRA, QLoRA or adapters (best: the line with the number of trainable parameters),
and the job runs out of memory in training, or a snapshot shows activations as the largest block.

## What to do

As for activations: checkpoint the layers, with gradients enabled on the inputs, use a smaller
micro-batch, or shorten the sequence. A smaller rank does not help.

## What it is confused with

Weights that fill the device by themselves (MEM101): QLoRA shrinks those. Checkpointing that was asked
for and does nothing because the inputs are frozen (MEM208).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, LogText, Mention, Phase
from advisor.model.finding import Action, Finding, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import block_fact, dominates, is_attributed, ledger_severity
from advisor.rules.capacity import (
    failure_fact,
    generic,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import words
from advisor.rules.model_size import adapters
from advisor.rules.remedies import checkpointing, halved_micro_batch, shorter_sequence
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_ledger, a_log, a_record
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case

PHASES = frozenset({Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.UNKNOWN})
"""Phases in which activations are held."""

PRIOR = 0.45
"""Score where the log only names LoRA and the failure carries no cause."""

FEW_TRAINABLE_SCORE = 0.55
"""Score where the log prints how few parameters are trainable: states cannot be what fills the device."""

LEDGER_SCORE = 0.85
"""Score where a snapshot shows activations as the largest block."""

FEW_TRAINABLE_RATIO = 0.1
"""Trainable over all parameters up to which states are small beside the weights: 14 bytes of each
trainable one are less than the 2 bytes of every other."""

_TRAINABLE = words(
    "trainable",
    r"trainable%?\s*:?\s*(\d+(?:\.\d+)?)\s*%?|(\d+(?:\.\d+)?)\s?% trainable",
)


@rule("MEM204", "lora-keeps-activations")
def lora_keeps_activations(
    log: LogText,
    failure: Failure | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """Adapters are named, and training runs out of memory."""
    clue = adapters(failure, log)
    if clue is None:
        return None
    said = clue.observation("adapters are trained")
    if is_attributed(ledger):
        severity = ledger_severity(ledger, failure, record)
        if severity not in {Severity.ERROR, Severity.WARNING} or not dominates(ledger, "activations"):
            return None
        found = Finding(
            statement="LoRA shrinks gradients and optimizer states, not activations, and activations are what fills the device.",
            severity=severity,
            confidence=LEDGER_SCORE,
            observations=(block_fact(ledger, "activations"), said),
            actions=_actions(ledger, record),
        )
        return told_of_refusal(found, ledger, failure, record)
    if failure is None or not is_capacity_failure(failure) or failure.phase not in PHASES:
        return None
    share = _trainable_ratio(log)
    few = share is not None and share <= FEW_TRAINABLE_RATIO
    return Finding(
        statement="LoRA shrinks gradients and optimizer states, not activations: they are as large as in "
        "full fine-tuning" + (f", and only {ratio_text(share)} of the parameters are trained." if few and share is not None else "."),
        severity=severity_of(failure),
        confidence=generic(FEW_TRAINABLE_SCORE if few else PRIOR, failure),
        observations=(failure_fact(failure), said),
        actions=_actions(None, None),
        settles=what_would_settle(failure),
        ruled_out=ruled_out_by_figures(failure),
    )


def _trainable_ratio(log: LogText) -> float | None:
    for mention in log.mentions:
        match = _TRAINABLE.search(mention.text)
        if match:
            return float(match.group(1) or match.group(2)) / 100
    return None


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> tuple[Action, ...]:
    return (
        checkpointing(ledger, record),
        Action(
            title="Let gradients reach the frozen inputs, or checkpointing does nothing",
            change="model.enable_input_require_grads()  # before get_peft_model, with checkpointing",
        ),
        halved_micro_batch(ledger, record),
        shorter_sequence(),
    )


def fires() -> Case:
    """LoRA of an 8B model at a long sequence: activations fill the device."""
    return a_case(
        a_failure(phase=Phase.FORWARD, requested_bytes=GIB),
        a_log(mentions=(_trainable("trainable params: 41,943,040 || trainable%: 0.5196"),)),
        a_ledger(at=Moment.OOM, weights=15 * GIB, optimizer_states=GIB, activations=60 * GIB),
        a_record(oom_count=1, oom_requested_bytes=GIB),
    )


def clean() -> Case:
    """LoRA trains with room to spare."""
    return a_case(
        a_log(mentions=(_trainable("trainable params: 41,943,040 || trainable%: 0.5196"),)),
        a_ledger(weights=15 * GIB, optimizer_states=GIB, activations=20 * GIB),
        a_record(),
    )


def _trainable(text: str) -> Mention:
    return Mention(topic="lora", line=10, text=text)
