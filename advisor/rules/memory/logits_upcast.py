"""The logits of a whole micro-batch are held, often once more in fp32.

## What it means

The last layer gives every token one number for every entry of the vocabulary. With vocabularies of
100,000 entries and more, tokens × vocabulary × 4 bytes is often the largest tensor of the whole step,
and cross entropy, its softmax and its gradient keep two or three of them.

## How it is recognized

The refused request is tokens × vocabulary × 4 (or 2) bytes, by the settings and the model that the
log names; or it comes from the loss or the language model's head: `.float()` on logits, cross
entropy, log_softmax. Arithmetic that agrees to the last printed digit outweighs everything else.

## What to do

Compute the loss without the whole logits (fused linear cross entropy), or in chunks of tokens, or
split the vocabulary over ranks; do not call `.float()` on all of them.

## What it is confused with

Activations of the layers (MEM201), which checkpointing shrinks and logits are not. Evaluation that
keeps the logits of every batch (MEM206).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import (
    Action,
    Finding,
    Impact,
    Observation,
    Severity,
    Verification,
)
from advisor.rules.blocks import held_bytes, is_attributed, ledger_severity, site_facts
from advisor.rules.capacity import (
    failure_fact,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import in_frames, in_words, is_report, words
from advisor.rules.device_shares import is_oversubscribed
from advisor.rules.logit_sizes import (
    LARGE_LOGITS_BYTES,
    Logits,
    described_logits,
    requested_logits,
    written_logits,
)
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, LOG, MIB, a_case, a_failure, a_log
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord, MemoryLedger
    from advisor.model.transformer import TransformerShape

EXACT_SCORE = 0.95
"""Score where the request equals tokens × vocabulary × bytes, all three named by the log."""

ROUND_SCORE = 0.8
"""Score where the vocabulary is known and the request is the logits of a round number of tokens."""

AMBIGUOUS_SCORE = 0.4
"""Score where the same bytes are the embedding's too: as many tokens as a model is wide."""

FRAME_SCORE = 0.85
"""Score where the innermost frames cast, normalize or score the logits."""

LOSS_SCORE = 0.6
"""Score of a failure in the loss whose frames do not name logits: it may be another loss."""

STATED_SCORE = 0.7
"""Score where the text says that whole logits are held, or names sizes that make them large."""

LEAST_SITE_RATIO = 0.15
"""Share of the live bytes from which logits are worth a rule of their own in a snapshot."""

CHUNK_TOKENS = 1024
"""A chunk of this many tokens keeps the product efficient and its logits below 1 GiB."""

PHASES_WITHOUT_LOGITS = frozenset({Phase.OPTIMIZER_STEP, Phase.LOADING, Phase.CHECKPOINT, Phase.DATA})
"""Phases in which a request of that size is the embedding, its state or its copy."""

INNERMOST_FRAMES = 8
"""The cast or the softmax lies a few frames above the allocation."""

_LOGITS = words(
    "logits|lm_head|output_layer|log_softmax|cross_entropy|lmloss|logps|logprobs",
    r"logits[\w.\[\]: ,]*\.(?:float|to)\(|\blm_head\(|output_layer\(|log_softmax|cross_entropy"
    r"|ForCausalLMLoss|logprobs_from_logits|get_(?:batch|per_token)_logps|selective_log_softmax|\.logits\b"
    r"|\blogits = |logits\.(?:contiguous|log)",
)
_STATED = words(
    "logit",
    r"\b(?:full|whole|entire|all|complete|dense)\b.{0,20}\blogits\b"
    r"|logits?\b.{0,30}\b(?:upcast|cast to fp32|in fp32|to fp32|float32|materiali[sz]\w+|tensor dominates)"
    r"|logits_to_keep\s?=\s?0|\blogits?\b.{0,40}\b(?:oom|out of memory|too large|huge)",
)
_SITE = words(
    "logits|lm_head|cross_entropy|log_softmax|loss",
    r"logits|lm_head|cross_entropy|log_softmax|loss_utils|modules/loss\.py",
)


@rule("MEM203", "logits-upcast")
def logits_upcast(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
    shape: TransformerShape | None,
) -> Finding | None:
    """The request is the logits, by arithmetic, by its frames, or by the words around it."""
    if failure is None or not is_capacity_failure(failure):
        if is_attributed(ledger):
            return _from_ledger(ledger, record)
        return _from_words(log) if failure is None else None
    if failure.phase in PHASES_WITHOUT_LOGITS or is_oversubscribed(failure):
        return None
    logits = requested_logits(failure, log, shape)
    score, statement, facts = _by_place(failure, log)
    if logits is not None:
        score = _score(logits, score)
        statement = _statement(logits, failure)
        facts = (logits.fact, *facts)
    if not score:
        return None
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts),
        actions=_actions(logits),
        settles=None if score >= ROUND_SCORE else what_would_settle(failure),
        impact=Impact(recoverable_bytes=_won(logits) if logits is not None else None),
        ruled_out=ruled_out_by_figures(failure),
        supersedes=("MEM102", "MEM201", "MEM701") if score >= ROUND_SCORE else (),
    )


def _score(logits: Logits, placed: float) -> float:
    """The score of a match of bytes; a match that the place of the failure confirms leaves no doubt."""
    if logits.is_exact or placed >= FRAME_SCORE:
        return EXACT_SCORE
    return max(placed, AMBIGUOUS_SCORE if logits.is_ambiguous else ROUND_SCORE)


def _statement(logits: Logits, failure: Failure) -> str:
    request = failure.requested_bytes
    if request is None:
        return f"One tensor of logits takes {bytes_text(logits.size_bytes)}: {logits.words}."
    exactly = "exactly " if logits.is_exact else ""
    return f"The refused {bytes_text(request)} is {exactly}the logits of {logits.token_count:,} tokens in {logits.dtype}" + (
        ", or an embedding of that width." if logits.is_ambiguous else "."
    )


def _won(logits: Logits) -> int | None:
    """What a loss in chunks saves of one tensor."""
    if logits.is_ambiguous or logits.token_count <= CHUNK_TOKENS:
        return None
    return logits.size_bytes - logits.size_bytes * CHUNK_TOKENS // logits.token_count


def _by_place(failure: Failure, log: LogText | None) -> tuple[float, str, tuple[Observation, ...]]:
    """Where it failed, or what the text says of logits; a score of 0 where neither names them."""
    if failure.phase is Phase.EVALUATION:
        return 0.0, "", ()
    frame = in_frames(_LOGITS, failure, innermost=INNERMOST_FRAMES)
    if frame is not None and failure.phase is not Phase.BACKWARD:
        statement = "It failed on the logits: one number a token and entry of the vocabulary."
        return FRAME_SCORE, statement, (frame.observation("the refused request comes from"),)
    stated = in_words(_STATED, failure, log)
    if stated is not None:
        statement = "The text says that the logits of the whole micro-batch are held."
        return STATED_SCORE, statement, (stated.observation("the text says"),)
    if failure.phase is Phase.LOSS:
        return LOSS_SCORE, "It failed in the loss, where a language model holds its logits.", ()
    return 0.0, "", ()


def _from_words(log: LogText | None) -> Finding | None:
    """A description without a failure: words that say it, or sizes whose product is large."""
    if not is_report(log):
        return None
    stated = in_words(_STATED, None, log)
    written = written_logits(None, log)
    if written is not None and written.size_bytes < LARGE_LOGITS_BYTES:
        written = None
    logits = written or described_logits(log)
    facts = [stated.observation("the text says")] if stated is not None else []
    facts += [logits.fact] if logits is not None else []
    if not facts:
        return None
    return Finding(
        statement="The logits of a whole micro-batch are held at once; they are among the largest tensors of a step.",
        severity=Severity.WARNING,
        confidence=STATED_SCORE,
        observations=tuple(facts),
        actions=_actions(logits),
        settles=what_would_settle(None),
    )


def _from_ledger(ledger: MemoryLedger, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, None, record)
    sites = [site for site in ledger.sites if any(_SITE.search(frame) for frame in site.stack[:INNERMOST_FRAMES])]
    held = sum(site.live_bytes for site in sites)
    if severity is None or held < LEAST_SITE_RATIO * held_bytes(ledger) or held < LARGE_LOGITS_BYTES // 2:
        return None
    return told_of_refusal(
        Finding(
            statement=f"Logits and the loss hold {bytes_text(held)} at the peak.",
            severity=severity,
            confidence=0.85,
            observations=site_facts(sites, ledger.source),
            actions=_actions(None),
            impact=Impact(recoverable_bytes=held),
        ),
        ledger,
        None,
        record,
    )


def _actions(logits: Logits | None) -> tuple[Action, ...]:
    won = _won(logits) if logits is not None else None
    chunks = ""
    if logits is not None and won is not None:
        part = logits.size_bytes - won
        chunks = f": {bytes_text(part)} at a time instead of {bytes_text(logits.size_bytes)}"
    return (
        Action(
            title="Fuse the head with the loss, so that whole logits never exist",
            change="from liger_kernel.transformers import AutoLigerKernelForCausalLM  # fused linear cross entropy\n"
            "# or cut_cross_entropy.linear_cross_entropy(hidden, lm_head.weight, labels)",
            cost="the logits are no longer returned",
        ),
        Action(
            title=f"Compute the loss in chunks of {CHUNK_TOKENS} tokens{chunks}",
            change=f"for part in hidden.split({CHUNK_TOKENS}): loss += checkpoint(head_and_loss, part, labels_part)",
            cost="more launches, and the head runs twice",
            verified_by=Verification.ARITHMETIC if chunks else Verification.NONE,
        ),
        Action(
            title="Do not cast the whole logits to fp32",
            change="F.cross_entropy(logits.view(-1, vocab), labels.view(-1))  # upcasts inside, without logits.float()",
            cost="none with a loss that accumulates in fp32",
        ),
        Action(
            title="Keep only the logits that the loss needs, or split the vocabulary over ranks",
            change="model(..., logits_to_keep=number_of_completion_tokens)  # or vocabulary-parallel cross entropy",
            cost="tensor parallelism for the latter",
        ),
    )


def fires() -> Case:
    """The request is 4 × 4,096 tokens × 151,936 entries × 4 bytes: 9.27 GiB."""
    return a_case(
        a_failure(
            phase=Phase.LOSS,
            requested_bytes=int(9.27 * GIB),
            allocated_bytes=60 * GIB,
            free_bytes=4 * GIB,
            frames=(Frame(filename="loss.py", line=31, function="logprobs", code="logits = logits.float()"),),
        ),
        a_log(
            settings=(
                ("per_device_train_batch_size", "4"),
                ("max_seq_length", "4096"),
                ("vocab_size", "151936"),
            )
        ),
    )


def clean() -> Case:
    """The same job fails in a layer's forward, with a request that no number of tokens of logits makes."""
    return a_case(
        a_failure(
            source=LOG,
            phase=Phase.FORWARD,
            requested_bytes=112 * MIB,
            resolution_bytes=5 * 1024,
            frames=(Frame(filename="model.py", line=88, function="forward", code="return self.down_proj(x)"),),
        ),
        a_log(
            settings=(
                ("per_device_train_batch_size", "4"),
                ("max_seq_length", "4096"),
                ("vocab_size", "151936"),
            )
        ),
    )
