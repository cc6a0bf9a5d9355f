"""MEM203 compares requests with tokens × vocabulary × bytes, exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model.failure import Frame, Mention, Phase
from advisor.rules.memory.logits_upcast import (
    EXACT_SCORE,
    FRAME_SCORE,
    ROUND_SCORE,
    STATED_SCORE,
    logits_upcast,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_log

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
