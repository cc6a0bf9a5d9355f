"""A second set of the model's parameters is held on the device.

## What it means

A moving average (EMA), a reference or teacher model, an old policy or the replicas of `DataParallel`
are full copies of the weights. Each takes as much as the model itself.

## How it is recognized

From a snapshot: a good part of the weights was allocated by frames that copy or replicate a model.
From a traceback: the failing request comes from such a frame. From words alone only as a candidate.

## What to do

Share the weights where they are equal (LoRA's base is its own reference model), keep the copy on the
host, or replace `DataParallel` by `DistributedDataParallel`.

## What it is confused with

One model in fp32 (MEM105), twice the bytes of bf16. A checkpoint that was loaded onto the device and
never released (MEM107).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText
from advisor.model.finding import Action, Finding, Impact, Severity
from advisor.model.memory import AllocationSite, AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import fits_after, is_attributed, ledger_severity, site_facts
from advisor.rules.capacity import (
    failure_fact,
    generic,
    is_capacity_failure,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import in_frames, in_words, words
from advisor.rules.remedies import saving
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure, a_ledger, a_record
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case

LEAST_COPY_BYTES = 256 * MIB
"""A copy smaller than this does not decide whether a job fits."""

LEAST_COPY_RATIO = 0.25
"""Share of the weights' block that a copy takes at least: a full copy beside up to two other models."""

FRAME_SCORE = 0.85
"""Score where the refused request itself comes from a frame that copies a model."""

WORD_SCORE = 0.3
"""Score where the log only names a second model: many jobs with one fail for another cause."""

_COPYING = words(
    "deepcopy|coalesced|replicate|reference|ref|teacher|ema|averagedmodel|swa_utils|old",
    r"deepcopy|_broadcast_coalesced|parallel/replicate\.py|in replicate\b|create_reference_model"
    r"|\bref(?:erence)?_?model|\bteacher|ema_?model|\bema\.py|AveragedModel|swa_utils|old_?policy",
)
_NAMED = words(
    "ema|moving average|model|teacher|dataparallel|deepcopy|copies|copy",
    r"\bEMA\b|moving average|\bref(?:erence)?[ _-]?model|\bteacher\b|\bDataParallel\b|nn\.DataParallel"
    r"|deepcopy\(|second (?:copy|model)|two (?:copies|models)|copy of the (?:model|weights)",
)


@rule("MEM106", "second-model-copy")
def second_model_copy(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """Weights allocated by frames that copy a model, or a failure in such a frame."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    if failure is None or not is_capacity_failure(failure):
        return None
    clue = in_frames(_COPYING, failure)
    score = FRAME_SCORE
    if clue is None:
        clue = in_words(_NAMED, failure, log)
        score = generic(WORD_SCORE, failure)
    if clue is None:
        return None
    return Finding(
        statement="It failed while a copy of the model was made on the device."
        if score == FRAME_SCORE
        else "The log names a second model; its weights lie on the device beside the first one's.",
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), clue.observation("a second set of parameters")),
        actions=_actions(None, None, 0),
        settles=what_would_settle(failure),
    )


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    copies = [site for site in ledger.sites if site.block == "weights" and any(_COPYING.search(frame) for frame in site.stack)]
    copied = sum(site.live_bytes for site in copies)
    severity = ledger_severity(ledger, failure, record)
    weights = ledger.entry("weights")
    if severity is None or copied < max(LEAST_COPY_BYTES, int(LEAST_COPY_RATIO * weights)):
        return None
    fits = fits_after(ledger, record, copied)
    return told_of_refusal(
        Finding(
            statement=f"{bytes_text(copied)} of the {bytes_text(weights)} of weights are a second model's"
            + ("; without it the job fits." if fits and severity is Severity.ERROR else "."),
            severity=severity,
            confidence=0.8,
            observations=site_facts(copies, ledger.source),
            actions=_actions(ledger, record, copied),
            impact=Impact(recoverable_bytes=copied),
        ),
        ledger,
        failure,
        record,
    )


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None, copied_bytes: int) -> tuple[Action, ...]:
    predicted, verified_by = saving(ledger, record, copied_bytes)
    return (
        Action(
            title="Keep the copy in host memory",
            change='copy.to("cpu")  # an EMA is updated every few steps; a reference model is run in its own phase',
            cost="copies over PCIe whenever it is used",
            predicted=predicted,
            verified_by=verified_by,
        ),
        Action(
            title="Share the weights where they are equal",
            change="trl: ref_model=None with a peft_config (the base without adapters is the reference)",
            cost="only with adapters",
            predicted=predicted,
            verified_by=verified_by,
        ),
        Action(
            title="Replace DataParallel",
            change="torchrun + torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])",
            cost="one process a device",
        ),
    )


def fires() -> Case:
    """A snapshot at the failure: half of the weights come from deepcopy."""
    return a_case(
        a_ledger(
            device_bytes=40 * GIB,
            at=Moment.OOM,
            weights=30 * GIB,
            activations=9 * GIB,
            sites=(_a_site("model.py:40 in __init__"), _a_site("ema.py:12 in __init__", "copy.py:128 in deepcopy")),
        ),
        a_record(oom_count=1, oom_requested_bytes=2 * GIB),
    )


def clean() -> Case:
    """Two layers' weights of the same size come from one model; the device is as full."""
    return a_case(
        a_failure(frames=(Frame(filename="train.py", line=9, function="main", code="loss.backward()"),)),
        a_ledger(
            device_bytes=40 * GIB,
            at=Moment.OOM,
            weights=30 * GIB,
            activations=9 * GIB,
            sites=(_a_site("model.py:40 in __init__"), _a_site("model.py:41 in __init__")),
        ),
        a_record(oom_count=1, oom_requested_bytes=2 * GIB),
    )


def _a_site(label: str, *above: str) -> AllocationSite:
    return AllocationSite(
        label=label,
        block="weights",
        live_bytes=15 * GIB,
        count=200,
        largest_bytes=GIB,
        why="a parameter",
        stack=(label, *above),
    )
