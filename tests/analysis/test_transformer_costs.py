import pytest
from analysis.a_shape import a_shape
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.transformer_costs import (
    attended_layer_tokens,
    decode_attention_flops,
    kv_cache_bytes,
    kv_elements_per_token,
    prefill_attention_flops,
    read_parameter_count,
    touched_expert_ratio,
    training_weight_flops,
)
from advisor.analysis.transformer_parameters import lookup_parameter_count, parameter_count
from advisor.model.transformer import Experts


def test_grouped_heads_shrink_the_cache_by_their_group():
    many, grouped = a_shape(kv_head_count=4), a_shape(kv_head_count=1)
    assert kv_elements_per_token(many) == 4 * kv_elements_per_token(grouped)


def test_a_latent_cache_holds_one_vector_a_token_and_layer():
    assert kv_elements_per_token(known_model("deepseek-v3")) == 61 * (512 + 64)


def test_a_window_caps_the_cache_of_its_layers():
    shape = a_shape(layer_count=4, window_size=10, windowed_layer_count=3)
    full = kv_cache_bytes(shape, batch_count=1, context_tokens=10, element_bytes=2)
    longer = kv_cache_bytes(shape, batch_count=1, context_tokens=1000, element_bytes=2)
    per_layer_token = 2 * 2 * 2 * 2
    assert full == 4 * 10 * per_layer_token
    assert longer == pytest.approx((1000 + 3 * 10) * per_layer_token)
    assert attended_layer_tokens(shape, 1000) == 1030


def test_decode_attention_is_four_flops_for_each_head_element_and_context_token():
    assert decode_attention_flops(a_shape(), 50) == 4 * (4 * 2) * 50 * 2


def test_prefill_attention_is_half_of_the_square():
    assert prefill_attention_flops(a_shape(), 64) == pytest.approx(4 * (4 * 2) * 64 * 64 / 2 * 2)


def test_a_window_makes_long_prefills_linear():
    shape = a_shape(window_size=16, windowed_layer_count=2)
    ratio = prefill_attention_flops(shape, 200_000) / prefill_attention_flops(shape, 100_000)
    assert ratio == pytest.approx(2, rel=1e-3)


def test_training_is_six_flops_a_weight_and_token_and_eight_with_recomputation():
    assert training_weight_flops(10, 7) == 420
    assert training_weight_flops(10, 7, recomputed=True) == 560


def test_one_token_touches_the_chosen_experts_and_many_touch_all():
    shape = a_shape(experts=Experts(expert_count=8, active_count=2, expert_ffn_size=24))
    assert touched_expert_ratio(shape, 1) == pytest.approx(0.25)
    assert touched_expert_ratio(shape, 2) == pytest.approx(1 - 0.75**2)
    assert touched_expert_ratio(shape, 128) > 0.999
    assert touched_expert_ratio(a_shape(), 1) == 1.0


@given(tokens=st.integers(1, 10_000), active=st.integers(1, 8))
def test_more_tokens_never_touch_fewer_experts(tokens, active):
    shape = a_shape(experts=Experts(expert_count=8, active_count=active, expert_ffn_size=24))
    assert 0 < touched_expert_ratio(shape, tokens) <= touched_expert_ratio(shape, tokens + 1) <= 1


def test_an_embedding_is_read_by_the_row():
    shape = a_shape()
    assert read_parameter_count(shape, 1) == parameter_count(shape) - lookup_parameter_count(shape) + 8
    assert read_parameter_count(shape, 10**6) == parameter_count(shape)


def test_a_tied_head_is_read_whole_and_once():
    shape = a_shape(embeddings_are_tied=True)
    assert read_parameter_count(shape, 1) == parameter_count(shape)
