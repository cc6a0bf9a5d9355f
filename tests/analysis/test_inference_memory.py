import pytest

from advisor.analysis.inference_memory import InferencePlan, estimate_inference
from advisor.analysis.known_models import known_model
from advisor.analysis.model_size import size_of
from advisor.cli.model_option import model_of

LLAMA = size_of(known_model("llama-3-8b"))
N = LLAMA.parameter_count


def estimate(model=LLAMA, **fields):
    return estimate_inference(model, InferencePlan(**({"batch_count": 1, "sequence_tokens": 8192} | fields)))


@pytest.mark.parametrize(("dtype", "expected"), [("bf16", 2), ("int8", 1), ("int4", 0.5)])
def test_weights_by_bytes_a_parameter(dtype, expected):
    assert estimate(weights_dtype=dtype).block_bytes("weights") == expected * N


def test_quantized_weights_may_hold_more_than_their_bits():
    weights = [item for item in estimate(weights_dtype="int4").items if item.block == "weights"]
    assert sum(item.ceiling_bytes for item in weights) > 0.5 * N + 2 * 0.9 * (N - LLAMA.linear_parameter_count)


def test_a_smaller_cache_dtype_halves_the_cache():
    assert estimate(kv_dtype="fp8").block_bytes("kv_cache") * 2 == estimate().block_bytes("kv_cache")


def test_a_window_lowers_the_floor_of_the_cache_and_not_its_ceiling():
    found = estimate(size_of(known_model("mistral-7b")), sequence_tokens=32768)
    cache = next(item for item in found.items if item.block == "kv_cache")
    assert cache.least_bytes * 8 == cache.ceiling_bytes == cache.counted_bytes


def test_latent_attention_shrinks_the_cache():
    deepseek = estimate(size_of(known_model("deepseek-v3")))
    assert deepseek.block_bytes("kv_cache") == 8192 * 61 * 576 * 2


def test_key_heads_that_cannot_be_split_are_repeated():
    whole = estimate().block_bytes("kv_cache")
    assert estimate(device_count=4).block_bytes("kv_cache") == whole / 4
    assert estimate(device_count=16).block_bytes("kv_cache") == whole / 8
    assert estimate(device_count=16).block_bytes("weights") == N / 8


def test_a_prefill_of_the_whole_batch_needs_more_than_one_of_a_request():
    one = estimate(batch_count=16)
    all_of_them = estimate(batch_count=16, prefill_tokens=16 * 8192)
    assert all_of_them.block_bytes("activations") == 16 * one.block_bytes("activations")


def test_of_a_bare_size_the_cache_is_unknown():
    found = estimate(model_of("70B"))
    assert found.block_bytes("weights") == 140 * 10**9
    assert found.block_bytes("kv_cache") is None
    assert found.ceiling_bytes is None
