"""The cache of keys and values is the largest block of memory in inference.

## What it means

Generation keeps the keys and values of every token of every request: layers × 2 × key heads × head
width × bytes a token (131 KB for Llama-3-8B in bf16). It grows with the context and with the number of
requests, and can exceed the weights.

## How it is recognized

A snapshot shows the cache as the largest block; or the refused request appends to past keys
(`torch.cat` in a cache's update); or generation fails, and the text speaks of the cache.

## What to do

Fewer or shorter requests, a quantized or static cache, a model with grouped keys (GQA), or offload.

## What it is confused with

An engine that refuses to start for want of cache (MEM302), which says so itself. Gradients enabled in
generation (MEM205).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind, Frame, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Observation
from advisor.rules.blocks import block_fact, dominates, is_attributed, ledger_severity
from advisor.rules.capacity import (
    failure_fact,
    generic,
    is_capacity_failure,
    ruled_out_by_figures,
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
    from advisor.model.memory import AllocatorRecord, MemoryLedger

APPENDING_SCORE = 0.8
"""Score where the refused request appends to past keys and values."""

STATED_SCORE = 0.6
"""Score where the text speaks of the cache's memory."""

GENERATION_SCORE = 0.5
"""Score of a failure in generation whose frames do not name the cache."""

REFUSED_SCORE = 0.5
"""Score where an engine refuses for want of cache: MEM302 names the budget, this the block."""

INNERMOST_FRAMES = 6
"""A cache's update lies a few frames above the allocation."""

_APPENDING = words(
    "past|cache",
    r"past_key|key_cache|value_cache|cache_utils\.py|DynamicCache|past_key_values|kv_cache|layer_past"
    r"|torch\.cat\(.{0,30}\b(?:past|cache)",
)
_STATED = words(
    "cache|past_key_values|context|requests",
    r"\bkv[ _-]?cache\b|past_key_values|(?:long|longer|large|\d+k)\s+context.{0,40}(?:inference|generat|oom|out of memory)"
    r"|(?:too many|concurrent|more)\s+requests",
)


@rule("MEM301", "kv-cache-dominates")
def kv_cache_dominates(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """The cache is the largest block, or the refused request appends to it."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    if failure is None:
        return None
    if failure.kind is FailureKind.KV_CACHE_REFUSED:
        statement = "The engine has too little memory for keys and values beside the weights."
        return _finding(failure, REFUSED_SCORE, statement, ())
    return _from_text(failure, log) if is_capacity_failure(failure) else None


def _from_text(failure: Failure, log: LogText | None) -> Finding | None:
    frame = in_frames(_APPENDING, failure, innermost=INNERMOST_FRAMES)
    if frame is not None and failure.phase not in {Phase.BACKWARD, Phase.ENGINE_START}:
        statement = "It failed while it appended to the keys and values of earlier tokens."
        return _finding(failure, APPENDING_SCORE, statement, (frame.observation("the refused request comes from"),))
    stated = in_words(_STATED, failure, log)
    if stated is not None and failure.phase in {Phase.GENERATION, Phase.UNKNOWN, Phase.ENGINE_START}:
        statement = "The text speaks of keys and values kept for long contexts or many requests."
        return _finding(failure, generic(STATED_SCORE, failure), statement, (stated.observation("the text says"),))
    if failure.phase is Phase.GENERATION:
        statement = (
            "It failed in generation, where the keys and values of all tokens are kept; the message does not say how large they are."
        )
        return _finding(failure, generic(GENERATION_SCORE, failure), statement, ())
    return None


def _finding(failure: Failure, score: float, statement: str, facts: tuple[Observation, ...]) -> Finding:
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts),
        actions=_actions(None, None),
        settles=what_would_settle(failure) if score < APPENDING_SCORE else None,
        ruled_out=ruled_out_by_figures(failure) if is_capacity_failure(failure) else (),
    )


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, failure, record)
    if severity is None or not dominates(ledger, "kv_cache"):
        return None
    cache = ledger.entry("kv_cache")
    return told_of_refusal(
        Finding(
            statement=f"Keys and values of earlier tokens are the largest block: {bytes_text(cache)}.",
            severity=severity,
            confidence=0.9,
            observations=(block_fact(ledger, "kv_cache"),),
            actions=_actions(ledger, record),
            impact=Impact(recoverable_bytes=cache // 2),
        ),
        ledger,
        failure,
        record,
    )


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> tuple[Action, ...]:
    cache = ledger.entry("kv_cache") if ledger is not None else 0
    predicted, verified_by = saving(ledger, record, cache / 2)
    return (
        Action(
            title="Halve the requests at a time, or the context",
            change="max_num_seqs=N/2  # or max_model_len, max_new_tokens; in a loop: a smaller batch",
            cost="throughput, or shorter answers",
            predicted=predicted,
            verified_by=verified_by,
        ),
        Action(
            title="Keep keys and values in 8 bits",
            change='kv_cache_dtype="fp8"  # vLLM; transformers: cache_implementation="quantized"',
            cost="a little accuracy",
            predicted=predicted,
            verified_by=verified_by,
        ),
        Action(
            title="Allocate the cache once, at its full size",
            change='model.generate(..., cache_implementation="static")  # no torch.cat of past keys: half the peak of an append',
            cost="the full size from the start",
        ),
        Action(
            title="Keep the cache on the host",
            change='model.generate(..., cache_implementation="offloaded")',
            cost="every layer's cache crosses PCIe in every step",
        ),
    )


def fires() -> Case:
    """Generation fails while it appends to the cache of a long context."""
    return a_case(
        a_failure(
            phase=Phase.GENERATION,
            requested_bytes=512 * MIB,
            allocated_bytes=78 * GIB,
            frames=(
                Frame(filename="generate.py", line=20, function="main", code="model.generate(**inputs)"),
                Frame(
                    filename="transformers/cache_utils.py",
                    line=430,
                    function="update",
                    code="self.keys = torch.cat([self.keys, key_states], dim=-2)",
                ),
            ),
        )
    )


def clean() -> Case:
    """The cache is the largest block of an inference with half of its device free."""
    return a_case(a_ledger(weights=16 * GIB, kv_cache=24 * GIB), a_record())
