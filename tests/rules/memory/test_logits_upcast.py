"""MEM203 compares requests with tokens × vocabulary × bytes, exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model.failure import Frame, Mention, Phase
from advisor.model.memory import AllocationSite, Moment
from advisor.rules.memory.logits_upcast import (
    AMBIGUOUS_SCORE,
    EXACT_SCORE,
    FRAME_SCORE,
    LEAST_SITE_RATIO,
    ROUND_SCORE,
    STATED_SCORE,
    logits_upcast,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = logits_upcast.check


def score(failure: object, log: object = None) -> float:
    finding = check(failure, log, None, None, None)
    return finding.confidence if finding else 0.0


@given(batch=st.integers(1, 8), length=st.sampled_from([1024, 2048, 4096, 8192]), element=st.sampled_from([2, 4]))
def test_the_product_of_the_settings_is_exact(batch: int, length: int, element: int) -> None:
    settings = (("batch_size", str(batch)), ("max_seq_length", str(length)), ("vocab_size", "151936"))
    size = batch * length * 151936 * element
    printed = round(size / GIB, 2) * GIB if size >= GIB else round(size / MIB, 2) * MIB
    assert score(a_failure(requested_bytes=int(printed)), a_log(settings=settings)) == EXACT_SCORE


def test_one_tolerance_further_it_is_something_else() -> None:
    settings = (("batch_size", "4"), ("max_seq_length", "4096"), ("vocab_size", "151936"))
    size = 4 * 4096 * 151936 * 4
    log = a_log(settings=settings)
    assert score(a_failure(requested_bytes=size + 7 * MIB), log) == EXACT_SCORE
    assert score(a_failure(requested_bytes=size + 8 * MIB), log) == 0.0
    assert score(a_failure(requested_bytes=size - 6 * MIB), log) == 0.0


def test_a_round_number_of_tokens_of_the_familys_vocabulary() -> None:
    log = a_log(mentions=(Mention(topic="rlhf", line=1, text="grpo-qwen3-30b (single request 9.27 GiB)"),))
    assert score(a_failure(requested_bytes=int(9.27 * GIB)), log) == ROUND_SCORE
    assert score(a_failure(requested_bytes=int(9.13 * GIB)), log) == 0.0


def test_frames_on_the_logits() -> None:
    cast = Frame(filename="m.py", line=1, function="forward", code="logits = logits.float()")
    assert score(a_failure(phase=Phase.LOSS, frames=(cast,))) == FRAME_SCORE
    assert score(a_failure(phase=Phase.BACKWARD, frames=(cast,))) == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20k tokens per device, 131k vocab", STATED_SCORE),
        ("512 tokens per device, 32k vocab", 0.0),
        ("full logits are materialized for every loss", STATED_SCORE),
        ("logits_to_keep=1", 0.0),
    ],
)
def test_words_without_a_failure(text: str, expected: float) -> None:
    assert score(None, a_log(line_count=3, mentions=(Mention(topic="logits", line=1, text=text),))) == expected


def test_the_chunked_loss_is_predicted() -> None:
    settings = (("batch_size", "4"), ("max_seq_length", "4096"), ("vocab_size", "151936"))
    finding = check(a_failure(requested_bytes=4 * 4096 * 151936 * 4), a_log(settings=settings), None, None, None)
    assert finding is not None
    assert finding.impact.recoverable_bytes == 15 * 1024 * 151936 * 4


@pytest.mark.parametrize(("ratio", "fires"), [(LEAST_SITE_RATIO + 0.01, True), (LEAST_SITE_RATIO - 0.01, False)])
def test_a_snapshot_in_which_logits_are_a_good_part(ratio: float, fires: bool) -> None:
    held = int(ratio * 70 * GIB)
    site = AllocationSite(
        label="loss_utils.py:36 in ForCausalLMLoss", block="activations", live_bytes=held, count=2, largest_bytes=held // 2,
        why="", stack=("loss_utils.py:36 in ForCausalLMLoss",),
    )  # fmt: skip
    ledger = a_ledger(at=Moment.OOM, weights=30 * GIB, activations=40 * GIB, sites=(site,))
    assert (check(None, None, ledger, a_record(oom_count=1), None) is not None) is fires


def test_as_many_tokens_as_a_model_is_wide_may_be_its_embedding() -> None:
    log = a_log(mentions=(Mention(topic="model", line=1, text="llama-3-8b"),))
    embedding = a_failure(requested_bytes=128_256 * 4096 * 2)
    assert score(embedding, log) == AMBIGUOUS_SCORE
    assert score(a_failure(requested_bytes=128_256 * 4096 * 2, phase=Phase.LOADING), log) == 0.0
