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

import re

from advisor.model.case import Case
from advisor.model.evidence import Source
from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import (
    Action,
    Finding,
    Impact,
    Observation,
    Prediction,
    Severity,
    Verification,
)
from advisor.model.memory import AllocatorRecord, MemoryLedger
from advisor.model.transformer import TransformerShape
from advisor.rules.blocks import held_bytes, is_attributed, ledger_severity, site_facts
from advisor.rules.capacity import (
    failure_fact,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import Clue, in_frames, in_words
from advisor.rules.facts import bytes_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, LOG, MIB, a_case, a_failure, a_log
from advisor.rules.tensor_shapes import (
    ELEMENT_BYTES,
    product,
    token_count,
    tokens_of_logits,
    vocabulary,
    within_tolerance,
)
from advisor.rules.wording import bytes_text

EXACT_SCORE = 0.95
"""Score where the request equals tokens × vocabulary × bytes, all three named by the log."""

ROUND_SCORE = 0.8
"""Score where the vocabulary is known and the request is the logits of a round number of tokens."""

FRAME_SCORE = 0.85
"""Score where the innermost frames cast, normalize or score the logits."""

LOSS_SCORE = 0.6
"""Score of a failure in the loss whose frames do not name logits: it may be another loss."""

STATED_SCORE = 0.7
"""Score where the text says that whole logits are held, or names sizes that make them large."""

LARGE_LOGITS_BYTES = 2 * GIB
"""Logits from this size decide on cards of 24 to 80 GiB, for the step holds two or three such tensors."""

LEAST_SITE_RATIO = 0.15
"""Share of the live bytes from which logits are worth a rule of their own in a snapshot."""

CHUNK_TOKENS = 1024
"""A chunk of this many tokens keeps the product efficient and its logits below 1 GiB."""

INNERMOST_FRAMES = 8
"""The cast or the softmax lies a few frames above the allocation."""

_LOGITS = re.compile(
    r"logits[\w.\[\]: ,]*\.(?:float|to)\(|\blm_head\(|output_layer\(|log_softmax|cross_entropy"
    r"|ForCausalLMLoss|logprobs_from_logits|get_(?:batch|per_token)_logps|selective_log_softmax|\.logits\b"
    r"|\blogits = |logits\.(?:contiguous|log)",
)
_STATED = re.compile(
    r"\b(?:full|whole|entire|all|complete|dense)\b.{0,20}\blogits\b|logits?\b.{0,30}\b(?:upcast|cast to fp32|in fp32|"
    r"to fp32|float32|materiali[sz]\w+|tensor dominates)|\.float\(\).{0,20}logits|logits\w*\.float\(\)"
    r"|logits_to_keep\s?=\s?0|\blogits?\b.{0,40}\b(?:oom|out of memory|too large|huge)",
    re.IGNORECASE,
)
_SITE = re.compile(r"logits|lm_head|cross_entropy|log_softmax|loss_utils|modules/loss\.py", re.IGNORECASE)


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
    found = _by_bytes(failure, log, shape) or _by_place(failure, log)
    if found is None:
        return None
    score, statement, facts, tokens = found
    request = failure.requested_bytes
    won = None
    if request is not None and tokens and tokens > CHUNK_TOKENS:
        won = request - request * CHUNK_TOKENS // tokens
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts),
        actions=_actions(request, tokens),
        settles=None if score >= ROUND_SCORE else what_would_settle(failure),
        impact=Impact(recoverable_bytes=won if won is not None else (request if score >= FRAME_SCORE else None)),
        ruled_out=ruled_out_by_figures(failure),
        supersedes=("MEM201", "MEM701") if score >= ROUND_SCORE else (),
    )


_Found = tuple[float, str, tuple[Observation, ...], int | None]


def _by_bytes(failure: Failure, log: LogText | None, shape: TransformerShape | None) -> _Found | None:
    """The request as a product of sizes that the log names."""
    request = failure.requested_bytes
    written = product(failure, log)
    if written is not None:
        factors, element_bytes, clue = written
        size = factors[0] * factors[1] * factors[2] * element_bytes
        if request is None or within_tolerance(failure, size):
            return _exact(
                size, f"{factors[0]} × {factors[1]:,} × {factors[2]:,} × {element_bytes} bytes", clue, factors[0] * factors[1]
            )
    words = vocabulary(failure, log)
    rows = shape.vocabulary_size if shape is not None else words.count if words is not None else None
    if rows is None or request is None:
        return None
    source = words.clue.source if words is not None and words.clue is not None else failure.source
    name = f"vocabulary {rows:,}" if shape is not None or words is None else words.words
    tokens = token_count(failure, log)
    if tokens is not None:
        for dtype, element_bytes in ELEMENT_BYTES.items():
            size = tokens.count * rows * element_bytes
            if within_tolerance(failure, size):
                return (
                    EXACT_SCORE,
                    f"The refused {bytes_text(request)} is exactly the logits of the micro-batch in {dtype}.",
                    (_fact(f"{tokens.words} × {name} × {element_bytes} bytes", size, source),),
                    tokens.count,
                )
    matched = tokens_of_logits(failure, rows)
    if matched is None:
        return None
    count, dtype = matched
    return (
        ROUND_SCORE,
        f"The refused {bytes_text(request)} is the logits of {count:,} tokens in {dtype}.",
        (_fact(f"{count:,} tokens × {name} × {ELEMENT_BYTES[dtype]} bytes", count * rows * ELEMENT_BYTES[dtype], source),),
        count,
    )


def _exact(size: int, words: str, clue: Clue, tokens: int) -> _Found:
    return (
        EXACT_SCORE,
        f"One tensor of logits takes {bytes_text(size)}: {words}.",
        (_fact(words, size, clue.source),),
        tokens,
    )


def _fact(words: str, size: int, source: Source) -> Observation:
    return bytes_fact(f"{words} = {bytes_text(size)}", size, source)


def _by_place(failure: Failure, log: LogText | None) -> _Found | None:
    """Where it failed, or what the text says of logits."""
    if failure.phase in {Phase.OPTIMIZER_STEP, Phase.LOADING, Phase.CHECKPOINT, Phase.EVALUATION}:
        return None
    frame = in_frames(_LOGITS, failure, innermost=INNERMOST_FRAMES)
    if frame is not None and failure.phase is not Phase.BACKWARD:
        statement = "It failed on the logits: one number a token and entry of the vocabulary."
        return FRAME_SCORE, statement, (frame.observation("the refused request comes from"),), None
    stated = in_words(_STATED, failure, log)
    if stated is not None:
        statement = "The text says that the logits of the whole micro-batch are held."
        return STATED_SCORE, statement, (stated.observation("the text says"),), None
    if failure.phase is Phase.LOSS:
        return LOSS_SCORE, "It failed in the loss, where a language model holds its logits.", (), None
    return None


def _from_words(log: LogText | None) -> Finding | None:
    """A description without a failure: sizes whose product is large, or words that say it."""
    stated = in_words(_STATED, None, log)
    words, tokens = vocabulary(None, log), token_count(None, log)
    facts: list[Observation] = [stated.observation("the text says")] if stated is not None else []
    large = False
    if words is not None and words.clue is not None and tokens is not None and tokens.clue is not None:
        size = tokens.count * words.count * ELEMENT_BYTES["fp32"]
        large = size >= LARGE_LOGITS_BYTES
        if large:
            facts.append(_fact(f"{tokens.words} × {words.words} × 4 bytes", size, tokens.clue.source))
    written = product(None, log)
    if written is not None and written[0][2] >= 1_000:  # noqa: PLR2004 - a vocabulary has thousands of entries
        factors, element_bytes, clue = written
        size = factors[0] * factors[1] * factors[2] * element_bytes
        large = size >= LARGE_LOGITS_BYTES
        facts.append(_fact(f"{factors[0]} × {factors[1]:,} × {factors[2]:,} × {element_bytes} bytes", size, clue.source))
    if not facts or (stated is None and not large):
        return None
    return Finding(
        statement="The logits of a whole micro-batch are held at once; they are among the largest tensors of a step.",
        severity=Severity.WARNING,
        confidence=STATED_SCORE,
        observations=tuple(facts),
        actions=_actions(None, None),
        settles=what_would_settle(None),
    )


def _from_ledger(ledger: MemoryLedger, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, None, record)
    sites = [site for site in ledger.sites if any(_SITE.search(frame) for frame in site.stack[:INNERMOST_FRAMES])]
    held = sum(site.live_bytes for site in sites)
    if severity is None or held < LEAST_SITE_RATIO * held_bytes(ledger) or held < LARGE_LOGITS_BYTES // 2:
        return None
    return Finding(
        statement=f"Logits and the loss hold {bytes_text(held)} at the peak.",
        severity=severity,
        confidence=0.85,
        observations=site_facts(sites, ledger.source),
        actions=_actions(None, None),
        impact=Impact(recoverable_bytes=held),
    )


def _actions(request: int | None, tokens: int | None) -> tuple[Action, ...]:
    chunk = Prediction()
    verified_by = Verification.NONE
    chunk_words = ""
    if request is not None and tokens and tokens > CHUNK_TOKENS:
        part = request * CHUNK_TOKENS // tokens
        chunk_words = f": {bytes_text(part)} at a time instead of {bytes_text(request)}"
        verified_by = Verification.ARITHMETIC
    return (
        Action(
            title="Fuse the head with the loss, so that whole logits never exist",
            change="from liger_kernel.transformers import AutoLigerKernelForCausalLM  # fused linear cross entropy\n"
            "# or cut_cross_entropy.linear_cross_entropy(hidden, lm_head.weight, labels)",
            cost="the logits are no longer returned",
        ),
        Action(
            title=f"Compute the loss in chunks of {CHUNK_TOKENS} tokens{chunk_words}",
            change=f"for part in hidden.split({CHUNK_TOKENS}): loss += checkpoint(head_and_loss, part, labels_part)",
            cost="more launches, and the head runs twice",
            predicted=chunk,
            verified_by=verified_by,
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
            frames=(
                Frame(filename="model.py", line=88, function="forward", code="return self.down_proj(x)"),
            ),
        ),
        a_log(
            settings=(
                ("per_device_train_batch_size", "4"),
                ("max_seq_length", "4096"),
                ("vocab_size", "151936"),
            )
        ),
    )
