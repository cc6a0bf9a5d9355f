"""Activation checkpointing was asked for, and the activations did not shrink.

## What it means

Checkpointing keeps only the inputs of the wrapped blocks. It does nothing where those inputs need no
gradient (frozen embeddings under LoRA, with the reentrant kind), where the wrapper is around the
wrong module, or where a cache (`use_cache`) keeps every layer's keys and values anyway.

## How it is recognized

PyTorch warns that none of the inputs require gradients; or checkpointing is on by the log's settings
and the traceback of a forward pass shows no frame of it; or a snapshot shows activations as the
largest block all the same.

## What to do

`enable_input_require_grads()`, the non-reentrant kind, the right boundary, no cache in training.

## What it is confused with

Activations that are large although checkpointing works (MEM201): one layer's own, or the logits
(MEM203).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Mention, Phase
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.rules.blocks import block_fact, dominates, is_attributed, ledger_severity
from advisor.rules.capacity import failure_fact, is_capacity_failure, severity_of, what_would_settle
from advisor.rules.clues import in_frames, in_words, is_report, words
from advisor.rules.remedies import checkpointing
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, LOG, a_case, a_failure, a_log
from advisor.rules.shortage import told_of_refusal

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord, MemoryLedger

WARNED_SCORE = 0.85
"""Score where PyTorch itself warns that the inputs need no gradients."""

STATED_SCORE = 0.75
"""Score where the text says that checkpointing does not save memory."""

LEDGER_SCORE = 0.7
"""Score where checkpointing is on and a snapshot shows activations as the largest block."""

PHASES_WITHOUT_ACTIVATIONS = frozenset({Phase.LOADING, Phase.OPTIMIZER_STEP, Phase.CHECKPOINT, Phase.ENGINE_START})
"""Phases whose failures checkpointing does not touch."""

NO_FRAME_SCORE = 0.6
"""Score where checkpointing is on and the failing forward pass does not run inside it."""

_WARNED = words(
    "none of the inputs",
    r"None of the inputs have requires_grad\s?=\s?True",
)
_STATED = words(
    "checkpoint",
    r"checkpointing\b.{0,60}\b(?:no effect|does(?: not|n't) (?:help|reduce|save|work|shrink)|did(?: not|n't) (?:help|"
    r"reduce|save|shrink)|ineffective|makes no difference|same memory|not (?:applied|effective|working|active)|ignored|"
    r"doubl\w+)|only checkpoints (?:layers|modules|blocks) whose",
)
_ON_SETTINGS = ("gradient_checkpointing", "activation_checkpointing", "use_gradient_checkpointing", "recompute")
_TRUE = frozenset({"true", "1", "yes", "unsloth", "full", "selective"})
_CHECKPOINT_FRAME = words(
    "checkpoint",
    r"checkpoint(?:ing)?\.py|CheckpointFunction|checkpoint_wrapper|_gradient_checkpointing",
)
_LAYER_FRAME = words(
    "layer|block",
    r"(?:decoder|encoder)_?layer|DecoderLayer|EncoderLayer|in forward: .{0,30}(?:layer_module|block)\(",
)


@rule("MEM208", "recompute-ineffective")
def recompute_ineffective(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """Checkpointing is on by the log and activations did not shrink."""
    on = _is_on(log)
    if is_attributed(ledger):
        severity = ledger_severity(ledger, failure, record)
        if on is None or severity is None or not dominates(ledger, "activations"):
            return None
        held = (block_fact(ledger, "activations"), on)
        found = _finding(severity, LEDGER_SCORE, held, ledger.entry("activations") // 2)
        return told_of_refusal(found, ledger, failure, record)
    if failure is None:
        stated = in_words(_STATED, None, log) if is_report(log) else None
        said = (stated.observation("the text says"),) if stated is not None else ()
        return _finding(Severity.WARNING, STATED_SCORE, said) if said else None
    if not is_capacity_failure(failure) or failure.phase in PHASES_WITHOUT_ACTIVATIONS:
        return None
    score, facts = _from_text(failure, log, on)
    return _finding(severity_of(failure), score, (failure_fact(failure), *facts)) if score else None


def _from_text(failure: Failure, log: LogText | None, on: Observation | None) -> tuple[float, tuple[Observation, ...]]:
    """How sure the text makes it, and by what; a score of 0 where it says nothing."""
    warned = in_words(_WARNED, failure, log)
    if warned is not None:
        return WARNED_SCORE, (warned.observation("PyTorch warns that checkpointing has nothing to work on"),)
    stated = in_words(_STATED, failure, log)
    if stated is not None:
        return STATED_SCORE, (stated.observation("the text says"),)
    is_outside = in_frames(_LAYER_FRAME, failure) is not None and in_frames(_CHECKPOINT_FRAME, failure) is None
    if on is None or failure.phase is not Phase.FORWARD or not is_outside:
        return 0.0, ()
    absent = Observation(
        statement="the traceback passes through the layers and shows no frame of checkpointing",
        source=failure.source,
    )
    return NO_FRAME_SCORE, (on, absent)


def _is_on(log: LogText | None) -> Observation | None:
    for name in _ON_SETTINGS if log is not None else ():
        text = log.setting(name) or "" if log is not None else ""
        if log is not None and text.strip("'\"").lower() in _TRUE:
            return Observation(statement=f"{name} is {text}", source=log.source)
    return None


def _finding(severity: Severity, score: float, facts: tuple[Observation, ...], saved_bytes: int | None = None) -> Finding:
    return Finding(
        statement="Checkpointing was asked for, and the activations are not smaller for it.",
        severity=severity,
        confidence=score,
        observations=facts,
        actions=(
            Action(
                title="Let gradients reach the inputs of the checkpointed blocks",
                change="model.enable_input_require_grads()  # with frozen embeddings (LoRA, QLoRA)",
                cost="none",
            ),
            Action(
                title="Use the kind that does not need it",
                change='model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})',
                cost="none",
            ),
            Action(
                title="Turn the cache off and the training mode on",
                change="model.config.use_cache = False; model.train()  # checkpointing is skipped in eval mode",
                cost="none",
            ),
            checkpointing(None, None),
        ),
        settles=what_would_settle(None),
        impact=Impact(recoverable_bytes=saved_bytes),
    )


def fires() -> Case:
    """PyTorch warned that the inputs need no gradients, and forward ran out of memory."""
    return a_case(
        a_failure(phase=Phase.FORWARD, requested_bytes=GIB),
        a_log(
            mentions=(
                Mention(
                    topic="gradient-checkpointing",
                    line=60,
                    text="UserWarning: None of the inputs have requires_grad=True. Gradients will be None",
                ),
            )
        ),
    )


def clean() -> Case:
    """Checkpointing is on, and the failing frame runs inside it: it works, and still it does not fit."""
    return a_case(
        a_failure(
            source=LOG,
            phase=Phase.FORWARD,
            requested_bytes=GIB,
            frames=(
                Frame(filename="model.py", line=50, function="forward", code="x = checkpoint(decoder_layer, x)"),
                Frame(filename="torch/utils/checkpoint.py", line=480, function="checkpoint", code="ret = function(*args)"),
                Frame(filename="model.py", line=31, function="forward", code="return self.up_proj(x)"),
            ),
        ),
        a_log(settings=(("gradient_checkpointing", "True"),)),
    )
