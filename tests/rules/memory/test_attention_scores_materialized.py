"""MEM202 knows a square of scores by its frames, by its bytes, or by its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model.failure import Frame, Mention, Phase
from advisor.rules.memory.attention_scores_materialized import (
    LARGE_REQUEST_BYTES,
    SCORES_SCORE,
    SMALL_SCORES_SCORE,
    SQUARE_SCORE,
    attention_scores_materialized,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_log

check = attention_scores_materialized.check
SCORES = Frame(filename="m.py", line=1, function="forward", code="scores = torch.matmul(query, key.transpose(2, 3))")


@pytest.mark.parametrize(
    ("request_bytes", "score"),
    [(LARGE_REQUEST_BYTES, SCORES_SCORE), (LARGE_REQUEST_BYTES - 1, SMALL_SCORES_SCORE)],
)
def test_a_small_request_in_attention_is_only_where_it_failed(request_bytes: int, score: float) -> None:
    finding = check(a_failure(requested_bytes=request_bytes, frames=(SCORES,)), None)
    assert finding is not None
    assert finding.confidence == score


def test_fused_attention_stores_no_scores() -> None:
    fused = Frame(filename="flash_attn/flash_attn_interface.py", line=2, function="forward", code="out = fwd(q, k, v)")
    assert check(a_failure(requested_bytes=GIB, frames=(SCORES, fused)), None) is None


@given(heads=st.integers(1, 64))
def test_a_whole_number_of_squares_is_recognized(heads: int) -> None:
    failure = a_failure(phase=Phase.FORWARD, requested_bytes=heads * 16384**2 * 2, resolution_bytes=0)
    finding = check(failure, a_log(settings=(("max_seq_length", "16384"),)))
    assert finding is not None
    assert finding.confidence == SQUARE_SCORE


def test_a_request_between_two_squares_is_not_one() -> None:
    failure = a_failure(phase=Phase.FORWARD, requested_bytes=int(2.5 * 16384**2 * 2), resolution_bytes=0)
    assert check(failure, a_log(settings=(("max_seq_length", "16384"),))) is None


def test_squares_too_small_to_tell_from_chance_are_left_alone() -> None:
    failure = a_failure(phase=Phase.FORWARD, requested_bytes=700 * MIB)
    assert check(failure, a_log(settings=(("max_seq_length", "512"),))) is None


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("flex_attention runs in eager mode, S=40320", True),
        ("the model was started without flash_attn", True),
        ("using flash attention 2", False),
        ("attn_implementation: sdpa", False),
    ],
)
def test_words_without_a_failure(text: str, fires: bool) -> None:
    log = a_log(line_count=3, mentions=(Mention(topic="attention", line=1, text=text),))
    assert (check(None, log) is not None) is fires
