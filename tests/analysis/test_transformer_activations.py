import pytest
from analysis.a_shape import a_shape
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.transformer_activations import (
    counted_bytes,
    eager_bytes,
    kept_tensors,
    layer_input_bytes,
    widest_layer_bytes,
)
from advisor.model.transformer import Experts, Norm

LLAMA = known_model("llama-3-8b")
UNIT = 4096 * 2
"""Bytes of one hidden-wide tensor a token in bf16."""


def test_a_llama_layer_keeps_six_hidden_and_three_ffn_widths():
    kept = kept_tensors(LLAMA, sequence_tokens=4096, element_bytes=2)
    assert counted_bytes(kept, 1) == 32 * (6 * 4096 + 3 * 14336) * 2


def test_plain_pytorch_keeps_26_hidden_widths_of_a_llama_layer_as_measured():
    kept = kept_tensors(LLAMA, sequence_tokens=4096, element_bytes=2)
    assert eager_bytes(kept, 1) == 32 * 26 * UNIT


def test_in_fp32_there_are_no_copies_in_fp32():
    kept = kept_tensors(LLAMA, sequence_tokens=4096, element_bytes=4)
    assert eager_bytes(kept, 1) == 32 * 24 * 2 * UNIT


def test_materialized_scores_grow_with_the_square_of_the_sequence():
    def scores(tokens):
        with_scores = kept_tensors(LLAMA, sequence_tokens=tokens, element_bytes=2, scores_are_materialized=True)
        without = kept_tensors(LLAMA, sequence_tokens=tokens, element_bytes=2)
        return counted_bytes(with_scores, tokens) - counted_bytes(without, tokens)

    assert scores(1024) == 32 * 32 * 1024 * 1024 * 2
    assert scores(4096) == 16 * scores(1024)


def test_checkpointing_keeps_one_hidden_width_a_layer():
    assert layer_input_bytes(LLAMA, token_count=4096, element_bytes=2) == 32 * 4096 * UNIT


def test_only_chosen_experts_work_on_a_token():
    few = a_shape(experts=Experts(expert_count=8, active_count=1, expert_ffn_size=24))
    more = a_shape(experts=Experts(expert_count=8, active_count=3, expert_ffn_size=24))
    dense = a_shape()
    sizes = [counted_bytes(kept_tensors(shape, sequence_tokens=1, element_bytes=2), 1) for shape in (dense, few, more)]
    assert sizes[0] == sizes[1]
    assert sizes[2] - sizes[1] == 2 * 2 * 3 * 24 * 2


def test_a_plain_network_keeps_two_inner_tensors():
    shape = a_shape(ffn_is_gated=False, norm=Norm.LAYER)
    kept = kept_tensors(shape, sequence_tokens=1, element_bytes=2)
    assert counted_bytes(kept, 1) == 2 * (6 * 8 + 2 * 24) * 2


@given(tokens=st.integers(1, 100_000), element_bytes=st.sampled_from([2, 4]))
def test_activations_are_linear_in_tokens_and_eager_keeps_more(tokens, element_bytes):
    kept = kept_tensors(LLAMA, sequence_tokens=tokens, element_bytes=element_bytes)
    assert counted_bytes(kept, 2 * tokens) == 2 * counted_bytes(kept, tokens)
    assert eager_bytes(kept, tokens) > counted_bytes(kept, tokens)
    assert widest_layer_bytes(kept, tokens, eager=False) == pytest.approx(counted_bytes(kept, tokens) / 32)
