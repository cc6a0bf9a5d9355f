"""A serving engine has no room for its cache of keys and values, or not for one request of full length.

## What it means

An engine takes a fixed share of the device (`gpu_memory_utilization`, `mem_fraction_static`), loads the
weights, measures one forward pass, and gives what is left to the cache. If nothing is left, or less
than one request of `max_model_len` tokens needs, it refuses to start.

## How it is recognized

The engine says so. Where it prints both numbers, the tokens that fit and the tokens that are needed,
the remedy follows by arithmetic.

## What to do

Lower `max_model_len` to what fits, raise the share where the device is otherwise free, quantize, or
use tensor parallelism over the devices at hand.

## What it is confused with

Another process on the device (MEM601): the share is of the total, and what others use counts against
it. A trainer on the same device (MEM303).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind, LogText, Phase
from advisor.model.finding import (
    Action,
    Finding,
    Observation,
    Prediction,
    Severity,
    Verification,
)
from advisor.rules.capacity import failure_fact, is_capacity_failure, severity_of
from advisor.rules.clues import anywhere, in_words, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, LOG, a_case, a_failure, a_log

if TYPE_CHECKING:
    from advisor.model.case import Case

REFUSED_SCORE = 0.95
"""The engine's own statement."""

STARTING_SCORE = 0.65
"""Score where memory runs out while the engine allocates its cache."""

SERVING_SCORE = 0.35
"""Score where the log names an engine and its memory ran out for an unknown reason."""

PREEMPTED_SCORE = 0.8
"""Score where a running engine says that it preempts requests for want of cache."""

BLOCK_TOKENS = 16
"""Tokens of a block of the cache in vLLM's default: a length is rounded down to whole blocks."""

_ALLOCATING = words(
    "cache|memory|blocks",
    r"initialize_kv_cache|_?allocate_kv_cache|init_cache_engine|init_memory_pool|determine_(?:num_available_blocks|"
    r"available_memory)|CacheEngine|kv[_ ]cache\w*.{0,20}(?:init|alloc)",
)
_PREEMPTED = words(
    "cache|retract|blocks",
    r"preempted by .{0,40}not enough KV cache|KV cache pool is full|not enough KV cache space|Retract requests"
    r"|# ?GPU blocks: 0\b",
)
_ENGINE = words(
    "vllm|sglang|tensorrt|lmdeploy",
    r"\bvllm\b|\bsglang\b|tensorrt[-_ ]?llm|\blmdeploy\b",
)
_SHARE = ("gpu_memory_utilization", "mem_fraction_static", "kv_cache_free_gpu_memory_fraction")


@rule("MEM302", "kv-budget-exhausted")
def kv_budget_exhausted(failure: Failure | None, log: LogText | None) -> Finding | None:
    """The engine refuses for want of cache, or runs out of memory while it allocates it."""
    if failure is not None and failure.kind is FailureKind.KV_CACHE_REFUSED:
        return _refused(failure, log)
    preempted = in_words(_PREEMPTED, None, log)
    if failure is None and preempted is not None:
        return Finding(
            statement="The engine runs short of cache for keys and values: it interrupts requests and computes them again.",
            severity=Severity.WARNING,
            confidence=PREEMPTED_SCORE,
            observations=(preempted.observation("the engine says"),),
            actions=_actions(None, log),
        )
    if failure is None or not is_capacity_failure(failure):
        return None
    allocating = anywhere(_ALLOCATING, failure, log)
    names_engine = in_words(_ENGINE, failure, log) is not None or (log is not None and bool({"vllm", "sglang"} & set(log.frameworks)))
    if allocating is not None and (names_engine or failure.phase is Phase.ENGINE_START):
        score = STARTING_SCORE
        facts = [allocating.observation("it allocates the cache")]
        statement = "Memory ran out while the engine allocated its cache of keys and values."
    elif names_engine and failure.phase in {Phase.ENGINE_START, Phase.UNKNOWN}:
        score, facts = SERVING_SCORE, []
        statement = (
            "A serving engine takes a fixed share of the device for weights and cache; that share may be "
            "too large for what is free, or too small for the cache."
        )
    else:
        return None
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts),
        actions=_actions(failure, log),
        settles=_free_before_start(),
    )


def _refused(failure: Failure, log: LogText | None) -> Finding:
    needed, available = failure.needed_tokens, failure.available_tokens
    facts = [Observation(statement=failure.message, source=failure.source)]
    statement = "The engine found no memory for its cache of keys and values beside the weights."
    if needed is not None and available is not None:
        statement = (
            f"The cache holds {available:,} tokens, and one request of full length needs {needed:,}: {needed - available:,} too many."
        )
        facts = [
            Observation(statement=f"{needed:,} tokens are needed", source=failure.source, value=float(needed), unit="tokens"),
            Observation(statement=f"{available:,} tokens fit", source=failure.source, value=float(available), unit="tokens"),
        ]
    for name in _SHARE:
        value = log.setting(name) if log is not None else None
        if value is not None and log is not None:
            facts.append(Observation(statement=f"{name} is {value}", source=log.source))
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=REFUSED_SCORE,
        observations=tuple(facts),
        actions=_actions(failure, log),
        settles=None if needed is not None else _free_before_start(),
    )


def _actions(failure: Failure | None, log: LogText | None) -> tuple[Action, ...]:
    available = failure.available_tokens if failure is not None else None
    length = None if available is None else available // BLOCK_TOKENS * BLOCK_TOKENS
    shorter = Action(
        title="Lower the longest request to what fits",
        change=f"max_model_len={length}" if length else "max_model_len=4096  # what the requests really need",
        cost="longer requests are refused",
        predicted=Prediction(fits=True) if length else Prediction(),
        verified_by=Verification.ARITHMETIC if length else Verification.NONE,
    )
    share = log.setting(_SHARE[0]) if log is not None else None
    more = Action(
        title="Give the engine a larger share, where nothing else uses the device",
        change="gpu_memory_utilization=0.95"
        + (f"  # now {share}" if share else "")
        + "; it is a share of the total, and what other processes use counts against it",
        cost="less room for peaks",
    )
    rest = (
        Action(
            title="Spend less outside the cache",
            change="enforce_eager=True (no CUDA graphs), a smaller max_num_batched_tokens",
            cost="slower decoding without graphs",
        ),
        Action(
            title="Keep weights or cache in fewer bits",
            change='quantization="fp8" or an AWQ checkpoint; kv_cache_dtype="fp8" doubles the tokens that fit',
            cost="some accuracy",
        ),
        Action(
            title="Use all the devices",
            change="tensor_parallel_size=N",
            cost="communication in every layer",
        ),
    )
    return (shorter, more, *rest) if length else (more, shorter, *rest)


def _free_before_start() -> Action:
    return Action(
        title="See what the device holds before the engine starts",
        change="nvidia-smi --query-gpu=memory.total,memory.used,memory.free --format=csv",
    )


def fires() -> Case:
    """The cache holds 3,664 tokens, and the model's length is 4,096."""
    return a_case(
        a_failure(
            kind=FailureKind.KV_CACHE_REFUSED,
            message="The model's max seq len (4096) is larger than the tokens that fit (3664).",
            backend="vLLM",
            total_bytes=None,
            needed_tokens=4096,
            available_tokens=3664,
            phase=Phase.ENGINE_START,
        ),
        a_log(settings=(("gpu_memory_utilization", "0.9"),), frameworks=("vllm",)),
    )


def clean() -> Case:
    """A training job on a node whose log also names an engine's setting runs out of memory in backward."""
    return a_case(
        a_failure(source=LOG, phase=Phase.BACKWARD, requested_bytes=GIB),
        a_log(frameworks=("transformers",)),
    )
