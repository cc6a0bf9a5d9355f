"""MEM303 needs an engine and a trainer."""

from advisor.model.failure import FailureKind, Frame, Mention
from advisor.rules.memory.colocated_engine_memory import (
    BOTH_SCORE,
    INSIDE_SCORE,
    METHOD_SCORE,
    SLEEP_ALLOCATOR_SCORE,
    colocated_engine_memory,
)
from advisor.rules.samples import a_failure, a_log

check = colocated_engine_memory.check


def score(*texts: str, failure: object = None, frameworks: tuple[str, ...] = ()) -> float:
    mentions = tuple(Mention(topic="rlhf", line=line, text=text) for line, text in enumerate(texts, 1))
    finding = check(failure or a_failure(), a_log(mentions=mentions, frameworks=frameworks))
    return finding.confidence if finding else 0.0


def test_by_how_much_of_it_is_named() -> None:
    inside = a_failure(frames=(Frame(filename="a.py", line=1, function="init", code="self.llm = LLM(model)"),))
    assert score("GRPO + vLLM on 8 devices") == BOTH_SCORE
    assert score("GRPO", frameworks=("vllm",)) == BOTH_SCORE
    assert score(failure=inside) == INSIDE_SCORE
    assert score("PPO") == METHOD_SCORE
    assert score("vLLM serves", frameworks=("vllm",)) == 0.0


def test_the_sleep_modes_allocator() -> None:
    cumem = a_failure(kind=FailureKind.ENGINE_OUT_OF_MEMORY, message="CUDA Error: out of memory at cumem_allocator.cpp:62")
    assert score(failure=cumem) == SLEEP_ALLOCATOR_SCORE
