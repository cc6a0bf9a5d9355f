"""MEM302 turns an engine's refusal into the length that fits."""

from advisor.model.failure import FailureKind, Mention, Phase
from advisor.model.finding import Severity
from advisor.rules.memory.kv_budget_exhausted import (
    REFUSED_SCORE,
    SERVING_SCORE,
    STARTING_SCORE,
    kv_budget_exhausted,
)
from advisor.rules.samples import a_failure, a_log

check = kv_budget_exhausted.check


def refused(**fields: object):
    return a_failure(kind=FailureKind.KV_CACHE_REFUSED, message="No available memory for the cache blocks.", **fields)


def test_the_length_that_fits_is_rounded_down_to_whole_blocks() -> None:
    finding = check(refused(needed_tokens=4096, available_tokens=3671), None)
    assert finding is not None
    assert finding.confidence == REFUSED_SCORE
    assert finding.actions[0].change == "max_model_len=3664"
    assert finding.actions[0].predicted.fits is True


def test_without_numbers_the_share_comes_first() -> None:
    finding = check(refused(), None)
    assert finding is not None
    assert "gpu_memory_utilization" in finding.actions[0].change
    assert finding.settles is not None


def test_a_plain_failure_needs_an_engine() -> None:
    engine = a_log(frameworks=("vllm",))
    allocating = a_log(frameworks=("vllm",), mentions=(Mention(topic="kv-cache", line=1, text="in initialize_kv_cache"),))
    unknown, training = a_failure(), a_failure(phase=Phase.BACKWARD)
    assert check(unknown, a_log()) is None
    assert check(training, engine) is None
    by_engine, by_cache = check(unknown, engine), check(unknown, allocating)
    assert by_engine is not None
    assert by_cache is not None
    assert (by_engine.confidence, by_cache.confidence) == (SERVING_SCORE, STARTING_SCORE)


def test_a_running_engine_that_preempts_is_a_warning() -> None:
    text = "Sequence group 3 is preempted by PreemptionMode.RECOMPUTE because there is not enough KV cache space"
    finding = check(None, a_log(mentions=(Mention(topic="kv-preemption", line=1, text=text),)))
    assert finding is not None
    assert finding.severity is Severity.WARNING
