"""Weights, gradients and optimizer states together exceed the device, whatever the batch.

## What it means

Mixed-precision training with AdamW keeps 16 bytes a trainable parameter: weight 2, gradient 2, an
fp32 master copy 4 and two moments 8. A 7B model needs 112 GB before the first activation. No batch
size makes that fit on one device.

## How it is recognized

By arithmetic, where the number of parameters is known (a declared shape, or the model's name in the
log) and all of them are trained; by a snapshot, where the three blocks fill the device; and as a
candidate only, on a device of a few GiB, above all where a smaller batch did not help.

## What to do

Train adapters (LoRA, QLoRA), shard the states over devices (FSDP, ZeRO), keep the moments in 8 bits,
or keep the states in host memory.

## What it is confused with

Activations (MEM201), which a smaller batch shrinks. Optimizer states alone (MEM103), where weights
and gradients would fit without them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from advisor.model.failure import Failure, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import block_fact, is_attributed, ledger_severity
from advisor.rules.capacity import (
    SMALL_DEVICE_BYTES,
    failure_fact,
    generic,
    is_capacity_failure,
    ruled_out_by_figures,
    serves_only,
    severity_of,
    smallest_batch,
)
from advisor.rules.clues import in_words, words
from advisor.rules.model_size import (
    adapters,
    arithmetic_fact,
    is_full_finetune,
    model_size,
    state_bytes,
)
from advisor.rules.remedies import eight_bit_optimizer, lora, offloaded_states, sharded_states
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_ledger, a_log, a_record
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text, parameters_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.transformer import TransformerShape

STATE_BLOCKS = ("weights", "gradients", "optimizer_states")
"""The blocks that do not depend on the batch."""

STATES_RATIO = 0.9
"""Share of the device that the states take where nothing is left for a batch: a context, cuBLAS and
one layer's activations need the rest."""

PRIOR_BY_PHASE = {
    Phase.FORWARD: 0.25,
    Phase.BACKWARD: 0.25,
    Phase.LOSS: 0.2,
    Phase.OPTIMIZER_STEP: 0.3,
    Phase.UNKNOWN: 0.25,
    Phase.LOADING: 0.1,
}
"""Score by phase where nothing else is known."""

SMALL_DEVICE_BONUS = 0.2
"""Added on a device of at most 4.5 GiB, which the states of an ordinary model fill."""

BATCH_DID_NOT_HELP_BONUS = 0.15
"""Added where the text says that a smaller batch did not help: what is left does not depend on it."""

NAMED_SCORE = 0.7
"""Score of arithmetic on a size read from the model's name: precision and optimizer are presumed."""

SHAPE_SCORE = 0.9
"""Score of arithmetic on a declared shape."""

PRESUMED_SCORE = 0.55
"""Highest score where nothing says that all parameters are trained with AdamW: the arithmetic is right, its premise is a guess."""

_BATCH_DID_NOT_HELP = words(
    "batch",
    r"(?:smaller|reduc\w+|lower\w*|decreas\w+|cut)\s.{0,20}batch.{0,60}"
    r"(?:did(?: not|n't)|does(?: not|n't)|no (?:effect|help|difference)|still)"
    r"|batch(?:[ _]?size)?\s?(?:=|of|is)?\s?1\b.{0,40}(?:still|oom|fail|too)",
)


@rule("MEM102", "model-states-exceed-device")
def model_states_exceed_device(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
    shape: TransformerShape | None,
) -> Finding | None:
    """States by arithmetic or by the ledger exceed the device; a small device is a candidate."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    if failure is None or not is_capacity_failure(failure) or failure.phase not in PRIOR_BY_PHASE:
        return None
    if adapters(failure, log) is not None or serves_only(failure, log):
        return None
    facts = [failure_fact(failure)]
    score = _prior(failure, log)
    statement = "Weights, gradients and optimizer states may be too large for the device, whatever the batch; the message does not say."
    size = model_size(failure, log, shape)
    states = state_bytes(size.parameter_count, failure, log) if size is not None else None
    exceeds = states is not None and states.total > (failure.total_bytes or math.inf) and _is_training(failure, log)
    if exceeds and size is not None and states is not None:
        score = SHAPE_SCORE if shape is not None else NAMED_SCORE
        if failure.phase is not Phase.OPTIMIZER_STEP and not _names_the_optimizer(log):
            score = min(score, PRESUMED_SCORE)
        facts += [
            size.fact,
            arithmetic_fact(states.words, states.total, size.fact),
        ]
        statement = (
            f"If all of them are trained in mixed precision with AdamW, {parameters_text(size.parameter_count)} parameters "
            f"keep {bytes_text(states.total)} on each device before any activation; it has "
            f"{bytes_text(failure.total_bytes or 0)}."
        )
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=tuple(facts),
        actions=_actions(None, None),
        settles=None if exceeds and shape is not None else smallest_batch(),
        ruled_out=ruled_out_by_figures(failure),
    )


def _is_training(failure: Failure, log: LogText | None) -> bool:
    trains = (Phase.FORWARD, Phase.BACKWARD, Phase.LOSS, Phase.OPTIMIZER_STEP)
    return is_full_finetune(failure, log) or failure.phase in trains[1:]


def _names_the_optimizer(log: LogText | None) -> bool:
    return log is not None and log.mentioned("adam", "adamw", "full-fine-tune") is not None


def _prior(failure: Failure, log: LogText | None) -> float:
    prior = PRIOR_BY_PHASE[failure.phase]
    if failure.total_bytes is not None and failure.total_bytes <= SMALL_DEVICE_BYTES:
        prior += SMALL_DEVICE_BONUS
    if in_words(_BATCH_DID_NOT_HELP, failure, log) is not None:
        prior += BATCH_DID_NOT_HELP_BONUS
    return generic(prior, failure)


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, failure, record)
    states = sum(map(ledger.entry, STATE_BLOCKS))
    if severity not in {Severity.ERROR, Severity.WARNING} or not ledger.device_bytes:
        return None
    trained = ledger.entry("gradients") + ledger.entry("optimizer_states")
    if not trained or states < STATES_RATIO * ledger.device_bytes:
        return None
    return told_of_refusal(
        Finding(
            statement=f"Weights, gradients and optimizer states take {bytes_text(states)} of "
            f"{bytes_text(ledger.device_bytes)}: no batch fits beside them.",
            severity=severity,
            confidence=0.9,
            observations=tuple(block_fact(ledger, block) for block in STATE_BLOCKS),
            actions=_actions(ledger, record),
            impact=Impact(recoverable_bytes=trained),
            supersedes=("MEM103",),
        ),
        ledger,
        failure,
        record,
    )


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> tuple[Action, ...]:
    return lora(), sharded_states(), eight_bit_optimizer(ledger, record), offloaded_states()


def fires() -> Case:
    """All parameters of a 7B model are trained on one card of 80 GiB: 104 GiB of states."""
    return a_case(
        a_failure(
            phase=Phase.BACKWARD,
            requested_bytes=GIB // 2,
            allocated_bytes=78 * GIB,
            reserved_unallocated_bytes=GIB // 8,
            free_bytes=GIB // 4,
        ),
        a_log(settings=(("model_name_or_path", "example/model-7b"),)),
    )


def clean() -> Case:
    """A snapshot of a training whose states take a third of the device: the batch decides."""
    return a_case(
        a_ledger(
            at=Moment.OOM,
            weights=8 * GIB,
            gradients=8 * GIB,
            optimizer_states=12 * GIB,
            activations=50 * GIB,
        ),
        a_record(oom_count=1, oom_requested_bytes=4 * GIB),
    )
