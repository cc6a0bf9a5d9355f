import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.transformer_parameters import parameter_count
from advisor.ingest.hugging_face_config import LARGEST_CONFIG_BYTES, READERS, parse_config
from advisor.model.errors import UnreadableInput
from advisor.model.transformer import TransformerShape


def a_config(**fields):
    base = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "torch_dtype": "bfloat16",
        "max_position_embeddings": 8192,
    }
    return {key: value for key, value in (base | fields).items() if value is not ...}


def parse(**fields):
    return parse_config(json.dumps(a_config(**fields)).encode(), "config.json")


MOE = {"num_experts_per_tok": 2, "num_local_experts": 8}
DEEPSEEK = {
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 16,
    "num_attention_heads": 16,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "num_hidden_layers": 27,
    "vocab_size": 102400,
}

SAME = [
    ("llama-3-8b", {}),
    ("llama-2-7b", {"num_key_value_heads": ..., "intermediate_size": 11008, "vocab_size": 32000}),
    (
        "llama-3.2-1b",
        {
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "head_dim": 64,
            "tie_word_embeddings": True,
        },
    ),
    ("mistral-7b", {"model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096}),
    ("mixtral-8x7b", {"model_type": "mixtral", "vocab_size": 32000, **MOE}),
    (
        "qwen2.5-7b",
        {
            "model_type": "qwen2",
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_attention_heads": 28,
            "num_hidden_layers": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
        },
    ),
    (
        "qwen3-8b",
        {
            "model_type": "qwen3",
            "intermediate_size": 12288,
            "num_hidden_layers": 36,
            "vocab_size": 151936,
        },
    ),
    (
        "qwen3-30b-a3b",
        {
            "model_type": "qwen3_moe",
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "num_hidden_layers": 48,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "vocab_size": 151936,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 768,
        },
    ),
    (
        "gemma-2-2b",
        {
            "model_type": "gemma2",
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_attention_heads": 8,
            "num_hidden_layers": 26,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 256000,
            "sliding_window": 4096,
        },
    ),
    (
        "phi-3-mini",
        {
            "model_type": "phi3",
            "hidden_size": 3072,
            "intermediate_size": 8192,
            "num_key_value_heads": 32,
            "vocab_size": 32064,
            "sliding_window": 2047,
        },
    ),
    ("deepseek-v2-lite", {"model_type": "deepseek_v2", **DEEPSEEK}),
    (
        "gpt2",
        {
            "model_type": "gpt2",
            "n_embd": 768,
            "n_head": 12,
            "n_layer": 12,
            "n_positions": 1024,
            "vocab_size": 50257,
        },
    ),
]


@pytest.mark.parametrize(("name", "fields"), SAME, ids=[row[0] for row in SAME])
def test_a_configuration_gives_the_shape_that_is_built_in(name, fields):
    found, known = parse(**fields), known_model(name)
    assert parameter_count(found) == parameter_count(known)
    assert (found.layer_count, found.kv_head_count, found.windowed_layer_count) == (
        known.layer_count,
        known.kv_head_count,
        known.windowed_layer_count,
    )


def test_architectures_that_are_not_built_in_count_right():
    neox = parse(
        model_type="gpt_neox",
        hidden_size=512,
        intermediate_size=2048,
        num_attention_heads=8,
        num_hidden_layers=6,
        num_key_value_heads=...,
        vocab_size=50304,
    )
    assert parameter_count(neox) == 70_426_624
    moe = parse(
        model_type="qwen2_moe",
        hidden_size=2048,
        intermediate_size=5632,
        num_attention_heads=16,
        num_hidden_layers=24,
        num_key_value_heads=16,
        vocab_size=151936,
        num_experts=60,
        num_experts_per_tok=4,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
    )
    assert parameter_count(moe) == 14_315_784_192


def test_what_the_file_says_besides_is_kept():
    shape = parse(_name_or_path="org/model")
    assert (shape.name, shape.stored_dtype, shape.context_size) == ("org/model", "bf16", 8192)
    assert shape.source.path == "config.json"


def test_quantized_and_multimodal_configurations_say_what_is_not_counted():
    assert "quantized" in parse(quantization_config={"bits": 4}).gaps[0]
    outer = {"model_type": "llava", "text_config": a_config()}
    shape = parse_config(json.dumps(outer).encode(), "config.json")
    assert "language model" in shape.gaps[0]


def test_layers_without_a_window_are_counted_by_their_list():
    layers = ["sliding_attention", "full_attention"] * 2
    shape = parse(
        model_type="gemma2",
        num_hidden_layers=4,
        head_dim=256,
        sliding_window=512,
        layer_types=layers,
    )
    assert shape.windowed_layer_count == 2


def test_dense_layers_of_a_mixture_are_counted():
    fields = dict(SAME)["qwen3-30b-a3b"]
    every_other = parse(**fields, decoder_sparse_step=2, mlp_only_layers=[1])
    assert every_other.dense_layer_count == 25


@pytest.mark.parametrize("kind", ["mamba", "bert", "llama4", None, 7, ["llama"], {"a": 1}, ""])
def test_an_unknown_architecture_is_refused_and_never_guessed(kind):
    with pytest.raises(UnreadableInput, match="unknown architecture"):
        parse(model_type=kind)


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden_size": ...},
        {"hidden_size": 0},
        {"hidden_size": -4096},
        {"hidden_size": 4096.5},
        {"hidden_size": "4096"},
        {"hidden_size": True},
        {"hidden_size": 10**12},
        {"num_attention_heads": 5, "num_key_value_heads": 3},
        {"num_attention_heads": 10**9},
        {"tie_word_embeddings": "yes"},
        {
            "model_type": "qwen3_moe",
            "num_experts": 4,
            "num_experts_per_tok": 9,
            "moe_intermediate_size": 8,
        },
        {
            "model_type": "qwen3_moe",
            "num_experts": 4,
            "num_experts_per_tok": 1,
            "moe_intermediate_size": 8,
            "mlp_only_layers": [[]],
        },
    ],
)
def test_values_that_no_model_has_are_refused(fields):
    with pytest.raises(UnreadableInput):
        parse(**fields)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"model_type": "llama", "hidden_size": ' + b"9" * 5000 + b"}",
        b'{"model_type": "llama", "hidden_size": NaN}',
        b" " * (LARGEST_CONFIG_BYTES + 1),
    ],
    ids=["empty", "list", "null", "cut", "no text", "deep", "long number", "nan", "large"],
)
def test_what_is_no_configuration_is_one_error(data):
    with pytest.raises(UnreadableInput):
        parse_config(data, "config.json")


KEYS = sorted(
    {key for _, fields in SAME for key in fields}
    | set(a_config())
    | {
        "quantization_config",
        "text_config",
        "layer_types",
        "mlp_only_layers",
        "decoder_sparse_step",
        "use_sliding_window",
    }
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@given(
    kind=st.sampled_from(sorted(READERS)),
    fields=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
)
def test_any_configuration_is_a_shape_or_the_one_error(kind, fields):
    config = {**a_config(model_type=kind), **fields}
    try:
        shape = parse_config(json.dumps(config).encode(), "config.json")
    except UnreadableInput:
        return
    assert isinstance(shape, TransformerShape)
    assert parameter_count(shape) > 0


@given(st.binary(max_size=200))
def test_any_bytes_are_a_shape_or_the_one_error(data):
    message = ""
    try:
        parse_config(data, "config.json")
    except UnreadableInput as error:
        message = str(error)
    assert "\n" not in message
