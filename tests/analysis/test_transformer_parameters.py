import pytest
from analysis.a_shape import a_shape
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.transformer_parameters import (
    Part,
    active_parameter_count,
    linear_parameter_count,
    lookup_parameter_count,
    lora_parameter_count,
    parameter_count,
    part_counts,
)
from advisor.model.transformer import Experts, LatentAttention, Norm


def test_a_small_model_counted_by_hand():
    attention = 8 * 8 + 2 * (4 * 8) + 8 * 8
    network = 3 * 8 * 24
    norms = 2 * 8
    assert parameter_count(a_shape()) == 100 * 8 + 2 * (attention + network + norms) + 8 + 100 * 8


def test_biases_and_layer_norms_count_by_hand():
    plain = a_shape(ffn_is_gated=False)
    biased = a_shape(
        ffn_is_gated=False,
        query_bias=True,
        output_bias=True,
        ffn_bias=True,
        head_bias=True,
        norm=Norm.LAYER,
    )
    extra = 2 * (8 + 4 + 4 + 8 + 24 + 8) + 100 + (2 * 2 + 1) * 8
    assert parameter_count(biased) - parameter_count(plain) == extra


def test_a_tied_head_adds_no_parameters_and_is_read_all_the_same():
    assert parameter_count(a_shape()) - parameter_count(a_shape(embeddings_are_tied=True)) == 800
    assert lookup_parameter_count(a_shape()) == 800
    assert lookup_parameter_count(a_shape(embeddings_are_tied=True)) == 0


def test_a_mixture_keeps_all_experts_and_passes_few():
    shape = a_shape(experts=Experts(expert_count=8, active_count=2, expert_ffn_size=24))
    experts = 2 * 8 * 3 * 8 * 24
    assert part_counts(shape)[Part.EXPERT] == experts
    assert parameter_count(shape) - active_parameter_count(shape) == experts * 6 // 8
    assert Part.FFN not in part_counts(shape)


def test_mixtral_passes_12_9_billion_of_46_7():
    shape = known_model("mixtral-8x7b")
    assert round(active_parameter_count(shape) / 1e9, 1) == 12.9


def test_deepseek_v3_passes_37_billion_of_671():
    shape = known_model("deepseek-v3")
    assert round(active_parameter_count(shape) / 1e9, 1) == 37.6
    assert round(parameter_count(shape) / 1e9) == 671


def test_latent_attention_counts_its_projections_and_norms_by_hand():
    latent = LatentAttention(kv_rank=5, query_rank=3, rope_head_size=2, plain_head_size=4, value_head_size=6)
    shape = a_shape(latent=latent)
    attention = 3 * 8 + 4 * 6 * 3 + (5 + 2) * 8 + 4 * (4 + 6) * 5 + 8 * 4 * 6
    assert part_counts(shape)[Part.ATTENTION] == 2 * attention
    assert part_counts(shape)[Part.NORM] == (2 * 2 + 1) * 8 + 2 * (3 + 5)


def test_lora_takes_the_layers_and_neither_embedding_nor_head():
    one_layer = 4 * (8 + 8) + 2 * 4 * (8 + 4) + 4 * (8 + 8) + 3 * 4 * (8 + 24)
    assert lora_parameter_count(a_shape(), 4) == 2 * one_layer


@given(
    layers=st.integers(1, 80),
    heads=st.sampled_from([1, 2, 4, 8]),
    width=st.integers(1, 64),
    ffn=st.integers(1, 4096),
    tied=st.booleans(),
)
def test_parts_sum_to_the_whole_and_growth_is_linear_in_layers(layers, heads, width, ffn, tied):
    shape = a_shape(
        layer_count=layers,
        head_count=heads,
        kv_head_count=1,
        head_size=width,
        hidden_size=heads * width,
        ffn_size=ffn,
        embeddings_are_tied=tied,
    )
    assert sum(part_counts(shape).values()) == parameter_count(shape)
    assert linear_parameter_count(shape) % layers == 0
    assert lora_parameter_count(shape, 2) == 2 * lora_parameter_count(shape, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"layer_count": 0},
        {"kv_head_count": 3},
        {"experts": Experts(expert_count=2, active_count=3, expert_ffn_size=4)},
        {"experts": Experts(expert_count=2, active_count=1, expert_ffn_size=4, dense_layer_count=3)},
        {"windowed_layer_count": 3},
    ],
)
def test_a_shape_that_no_model_has_is_refused(fields):
    with pytest.raises(ValueError, match="small"):
        a_shape(**fields)
