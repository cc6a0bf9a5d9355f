"""A trainer and an inference engine on one device each hold their share of it.

## What it means

Reinforcement learning from feedback generates with an engine (vLLM, SGLang) and trains with another
program on the same devices. The engine takes a share of the whole device when it starts, 90% by
default, whatever the trainer already holds; and the trainer's cache keeps what it once took.

## How it is recognized

The engine is made inside a trainer (`self.llm = LLM(...)`), fails in the allocator of its sleep mode
(cumem), or the log names both an engine and a method that trains with it (GRPO, PPO, RLHF).

## What to do

Give the engine a small share, let it sleep while the trainer works, start it first, or put it on
devices of its own.

## What it is confused with

Two unrelated programs (MEM601). An engine alone that lacks cache (MEM302).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind, Frame, LogText
from advisor.model.finding import Action, Finding, Observation
from advisor.rules.capacity import (
    TRAINING_ONLY_PHASES,
    failure_fact,
    is_capacity_failure,
    severity_of,
)
from advisor.rules.clues import Clue, anywhere, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_log

if TYPE_CHECKING:
    from advisor.model.case import Case

KINDS = frozenset({FailureKind.ENGINE_OUT_OF_MEMORY, FailureKind.KV_CACHE_REFUSED})
"""Messages of engines, beside the plain ones."""

BOTH_SCORE = 0.8
"""Score where the traceback makes an engine inside a trainer, or the log names engine and method."""

SLEEP_ALLOCATOR_SCORE = 0.65
"""Score where the engine's sleep-mode allocator fails: it is used where a trainer shares the device."""

INSIDE_SCORE = 0.6
"""Score where an engine is made as a part of another object, and nothing names a trainer."""

METHOD_SCORE = 0.45
"""Score where only the method (PPO, GRPO) is named, most of whose jobs share devices with an engine, or
where a traceback lies in a training step of one."""

_ENGINE = words(
    "llm|sglang|cumem",
    r"\bvllm\b|\bsglang\b|\bLLM\(|LLMRayActor|LLMEngine|cumem",
)
_INSIDE = words(
    "self.",
    r"self\.\w*(?:llm|vllm|engine|rollout)\w*\s?=\s?(?:vllm\.)?(?:Async)?(?:LLM|sgl\.Engine|Engine)\(",
)
_METHOD = words(
    "po|rlhf|rloo|reinforce|verl|colocat|hybrid engine|rollout|vllm",
    r"\b(?:GRPO|PPO|RLHF|RLOO|DAPO|GSPO|REINFORCE\+\+)\w*|\bOpenRLHF\b|\bverl\b|colocat\w+|hybrid engine|\brollout\b"
    r"|vllm_gpu_memory_utilization|use_vllm|vllm_mode",
)
_CUMEM = words(
    "cumem",
    r"cumem(?:_allocator)?",
)


@rule("MEM303", "colocated-engine-memory")
def colocated_engine_memory(failure: Failure, log: LogText | None) -> Finding | None:
    """An engine fails inside a trainer, or a trainer beside an engine."""
    if not is_capacity_failure(failure) and failure.kind not in KINDS:
        return None
    score, clues = _score(failure, log)
    if not score:
        return None
    facts = dict.fromkeys(clue.observation("the log shows") for clue in clues if clue is not None)
    share = _share(log)
    return Finding(
        statement="A trainer and an inference engine share the device, and each holds its part of it"
        + (f"; the engine takes {share.statement.rpartition(' ')[2]} of the whole device." if share is not None else "."),
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts, *((share,) if share is not None else ())),
        actions=(
            Action(
                title="Give the engine a small share",
                change="vllm_gpu_memory_utilization=0.3  # trl; verl: rollout.gpu_memory_utilization",
                cost="fewer tokens in its cache, slower generation",
            ),
            Action(
                title="Let the engine sleep while the trainer works",
                change="LLM(..., enable_sleep_mode=True); llm.sleep(level=1) before the update, llm.wake_up() after it",
                cost="seconds for every change of roles; host memory for the weights",
            ),
            Action(
                title="Empty the trainer's cache before the engine wakes",
                change="torch.cuda.empty_cache()",
                cost="the next step allocates again",
            ),
            Action(
                title="Put the engine on devices of its own",
                change='vllm_mode="server"',
                cost="devices that idle while the other part works",
            ),
        ),
        settles=Action(
            title="See who holds the device when it fails",
            change="nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv",
        ),
    )


def _score(failure: Failure, log: LogText | None) -> tuple[float, tuple[Clue | None, ...]]:
    inside, method = anywhere(_INSIDE, failure, log), anywhere(_METHOD, failure, log)
    engine, cumem = anywhere(_ENGINE, failure, log), anywhere(_CUMEM, failure, log)
    serves = engine is not None or (log is not None and bool({"vllm", "sglang"} & set(log.frameworks)))
    is_step = bool(failure.frames) and failure.phase in TRAINING_ONLY_PHASES
    if method is not None and is_step:
        return METHOD_SCORE, (method,)
    if method is not None and (inside is not None or serves):
        return BOTH_SCORE, (inside or engine, method)
    for score, clue in (
        (SLEEP_ALLOCATOR_SCORE, cumem),
        (INSIDE_SCORE, inside),
        (METHOD_SCORE, method),
    ):
        if clue is not None:
            return score, (clue,)
    return 0.0, ()


def _share(log: LogText | None) -> Observation | None:
    for name in ("vllm_gpu_memory_utilization", "gpu_memory_utilization"):
        value = log.setting(name) if log is not None else None
        if value is not None and log is not None:
            return Observation(statement=f"{name} is {value}", source=log.source)
    return None


def fires() -> Case:
    """GRPO makes its engine on the device that it trains on."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            frames=(Frame(filename="trl/grpo_trainer.py", line=400, function="__init__", code="self.llm = LLM("),),
        ),
        a_log(settings=(("vllm_gpu_memory_utilization", "0.9"),), frameworks=("vllm", "transformers")),
    )


def clean() -> Case:
    """An engine that serves alone runs out of memory."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            frames=(Frame(filename="serve.py", line=12, function="main", code="llm = LLM(model=args.model)"),),
        ),
        a_log(frameworks=("vllm",)),
    )
