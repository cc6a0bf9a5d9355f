"""What the forward pass keeps for backward is the largest part of the memory in use.

## What it means

Training keeps the intermediate results of every layer until the backward pass has used them. Their
size grows with the batch and with the sequence length, and not at all with the optimizer. They are
the commonest reason why a model that loads does not train.

## How it is recognized

From a snapshot: activations are the largest block, at least 40% of the live bytes, and the device is
full. From a message alone only as a candidate: the request failed in forward or backward, and its
figures exclude fragmentation and other processes. A snapshot settles it.

## What to do

Checkpoint the layers (about a third more compute), halve the micro-batch and accumulate twice as
often, or shorten the sequence.

## What it is confused with

Logits (MEM203) and attention scores (MEM202) are activations too, with a cheaper remedy of their
own. Optimizer states (MEM103) do not shrink with the batch. Fragmentation (MEM401) has memory
reserved and unused. Where this process holds little of the device, the largest of its blocks is not
the cause: what lies outside is (MEM601, MEM602).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, RuledOut, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import block_fact, dominates, is_attributed, ledger_severity, site_facts
from advisor.rules.capacity import (
    SMALL_DEVICE_BYTES,
    failure_fact,
    generic,
    is_capacity_failure,
    ruled_out_by_figures,
    serves_only,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import Clue, anywhere, in_words, is_report, words
from advisor.rules.remedies import checkpointing, halved_micro_batch, saving, shorter_sequence
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_ledger, a_record
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case

PRIOR_BY_PHASE = {
    Phase.BACKWARD: 0.55,
    Phase.FORWARD: 0.5,
    Phase.LOSS: 0.4,
    Phase.UNKNOWN: 0.4,
    Phase.EVALUATION: 0.25,
    Phase.GENERATION: 0.2,
    Phase.DATA: 0.2,
    Phase.OPTIMIZER_STEP: 0.15,
}
"""Score by phase where nothing else is known; phases that keep no activations are missing."""

SMALL_DEVICE_FACTOR = 0.75
"""On a device that can hardly hold the states (MEM102), activations are the less likely cause."""

SERVING_FACTOR = 0.5
"""An engine that only serves keeps one layer's activations at a time."""

STATED_SCORE = 0.7
"""Score where the text itself says that checkpointing was taken out or activations do not fit."""

BATCH_SCORE = 0.55
"""Score where the text says that a smaller batch or input fits."""

_STATED = words(
    "checkpointing|activation",
    r"(?:without|no|removed?|removing|replac\w+|disabl\w+|turn\w* off)\s+(?:the\s+)?"
    r"(?:gradient|activation)[ _-]?checkpointing"
    r"|(?:gradient|activation)[ _-]?checkpointing\s+(?:is\s+|was\s+)?(?:off|disabled|removed)"
    r"|activations?\b.{0,40}\b(?:dominate|do not fit|don't fit|too large|most of)",
)
_BATCH = words(
    "batch|works|fits|helps|helped|fine|solved|fixed|oom|fail",
    r"batch(?:[ _]?size)?\s+(?:of\s+)?\d+\s+(?:works|fits|is fine|runs)"
    r"|(?:smaller|lower|reduc\w+|halv\w+)\s+(?:the\s+)?(?:batch|resolution|image|crop|input)\w*"
    r"(?:[ _]size)?\s+(?:works|fits|helps|helped|is fine|solved|fixed)"
    r"|batch(?:[ _]?size)? (?:is )?too (?:large|big)"
    r"|(?:larger|bigger|longer|higher)\s+(?:batch|sequence|resolution|image|crop)\w*.{0,20}(?:oom|fail)",
)


@rule("MEM201", "activations-dominate")
def activations_dominate(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """Saved-for-backward is the largest block, or the likeliest cause of a failure in training."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    stated = anywhere(_STATED, failure, log)
    if failure is None or not is_capacity_failure(failure):
        is_said = stated is not None and failure is None and is_report(log)
        return _from_words(stated) if stated is not None and is_said else None
    prior = PRIOR_BY_PHASE.get(failure.phase)
    if prior is None:
        return None
    total = failure.total_bytes
    if total is not None and total <= SMALL_DEVICE_BYTES:
        prior *= SMALL_DEVICE_FACTOR
    if serves_only(failure, log):
        prior *= SERVING_FACTOR
    batch = in_words(_BATCH, failure, log)
    if batch is not None:
        prior = max(prior, BATCH_SCORE)
    score = STATED_SCORE if stated is not None else generic(prior, failure)
    clues = [clue.observation("the text speaks of the activations' size") for clue in (stated, batch) if clue]
    return Finding(
        statement="The device was full of live memory. In training, what the forward pass keeps for "
        "backward is the commonest reason" + (", and the text says so." if clues else "; the message itself does not say which block."),
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *clues),
        actions=_actions(None, None),
        settles=what_would_settle(failure),
        ruled_out=ruled_out_by_figures(failure),
    )


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, failure, record)
    if severity is None or not dominates(ledger, "activations"):
        return None
    activations = ledger.entry("activations")
    predicted, _ = saving(ledger, record, activations / 2)
    sites = [site for site in ledger.sites if site.block == "activations"]
    reach = {True: "; half of them would fit", False: "; even half of them would not fit"}
    return told_of_refusal(
        Finding(
            statement="Activations, what the forward pass keeps for backward, are the largest block: "
            f"{bytes_text(activations)}"
            + (reach.get(predicted.fits, "") if severity is not Severity.INFO and predicted.fits is not None else "")
            + ".",
            severity=severity,
            confidence=0.9,
            observations=(block_fact(ledger, "activations"), *site_facts(sites, ledger.source)),
            actions=_actions(ledger, record),
            impact=Impact(recoverable_bytes=activations // 2),
            ruled_out=tuple(
                RuledOut(code=code, because=f"{name.replace('_', ' ')} held {bytes_text(ledger.entry(name))}")
                for code, name in (("MEM103", "optimizer_states"), ("MEM301", "kv_cache"))
                if ledger.entries.get(name) is not None
            ),
        ),
        ledger,
        failure,
        record,
    )


def _from_words(stated: Clue) -> Finding:
    return Finding(
        statement="The text says that activations are what does not fit.",
        severity=Severity.WARNING,
        confidence=0.5,
        observations=(stated.observation("the text speaks of the activations' size"),),
        actions=_actions(None, None),
        settles=what_would_settle(None),
    )


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> tuple[Action, ...]:
    return checkpointing(ledger, record), halved_micro_batch(ledger, record), shorter_sequence()


def fires() -> Case:
    """A snapshot at the failure: 48 of 76 GiB are activations."""
    return a_case(
        a_failure(requested_bytes=2 * GIB, phase=Phase.FORWARD),
        a_ledger(
            at=Moment.OOM,
            weights=16 * GIB,
            gradients=6 * GIB,
            optimizer_states=6 * GIB,
            activations=48 * GIB,
            non_pytorch=1 * GIB,
        ),
        a_record(oom_count=1, oom_requested_bytes=2 * GIB),
    )


def clean() -> Case:
    """Activations are the largest block of a training that has half of its device free."""
    return a_case(
        a_ledger(weights=8 * GIB, gradients=4 * GIB, optimizer_states=8 * GIB, activations=20 * GIB),
        a_record(),
    )
