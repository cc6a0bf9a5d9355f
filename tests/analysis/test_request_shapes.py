from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.request_shapes import RequestKind, explain_request

GIB = 1024**3
QWEN = known_model("qwen2.5-0.5b")
LLAMA = known_model("llama-3-8b")
PRINTED = int(0.005 * GIB)
"""Half of the last digit of "9.27 GiB"."""


def best(requested_bytes, **fields):
    found = explain_request(requested_bytes, **({"resolution_bytes": PRINTED} | fields))
    return found[0] if found else None


def test_logits_of_a_known_batch_and_model_are_nearly_certain():
    match = best(int(9.27 * GIB), shape=QWEN, batch=4, sequence=4096)
    assert match.kind is RequestKind.LOGITS
    assert match.uniqueness_ratio > 0.99
    assert match.is_declared


def test_the_shifted_logits_of_the_loss_are_found_too():
    expressions = {m.expression for m in explain_request(int(9.27 * GIB), resolution_bytes=PRINTED, shape=QWEN, batch=4, sequence=4096)}
    assert expressions == {"4 × 4096 × 151936 × 4 bytes", "4 × 4095 × 151936 × 4 bytes"}


def test_without_a_batch_the_logits_are_likely_and_not_certain():
    match = best(int(9.27 * GIB), shape=QWEN)
    assert match.kind is RequestKind.LOGITS
    assert match.factors[0] == ("tokens", 16384)
    assert 0.5 < match.uniqueness_ratio < 0.9
    assert match.alternative_count >= 1


def test_without_a_model_a_vocabulary_of_a_list_proves_little():
    found = explain_request(int(9.27 * GIB), resolution_bytes=PRINTED)
    assert all(match.uniqueness_ratio <= 0.3 for match in found)
    exact = explain_request(4 * 4096 * 151936 * 4, resolution_bytes=512)
    assert exact
    assert all(match.uniqueness_ratio <= 0.3 for match in exact)


def test_without_a_model_odd_token_counts_are_not_tried():
    assert explain_request(7 * 333 * 151936 * 4, resolution_bytes=512, batch=7, sequence=333) == ()


def test_scores_of_a_known_batch_are_found():
    match = best(8 * 32 * 2048 * 2048 * 2, shape=LLAMA, batch=8, sequence=2048, resolution_bytes=512)
    assert match.kind is RequestKind.ATTENTION_SCORES
    assert match.matched_bytes == 2 * GIB
    assert match.error_bytes == 0


def test_a_size_that_a_parameter_and_an_activation_share_is_certain_of_neither():
    found = explain_request(14336 * 4096 * 2, resolution_bytes=512, shape=LLAMA)
    kinds = {match.kind for match in found}
    assert {RequestKind.PARAMETER, RequestKind.FFN_ACTIVATION} <= kinds
    assert all(match.uniqueness_ratio <= 0.5 for match in found)


def test_a_cache_block_is_found():
    found = explain_request(16 * 4096 * 2 * 8 * 128 * 2, resolution_bytes=512, shape=LLAMA, batch=16, sequence=4096)
    assert RequestKind.KV_CACHE in {match.kind for match in found}


def test_small_requests_are_not_explained():
    assert explain_request(1000, resolution_bytes=512, shape=LLAMA) == ()


def test_a_size_that_no_product_has_is_not_explained():
    assert explain_request(10**9 + 7, resolution_bytes=1, shape=LLAMA, batch=3, sequence=1000) == ()


@given(
    requested=st.integers(0, 2**45),
    resolution=st.integers(0, 2**26),
    batch=st.none() | st.integers(1, 512),
    sequence=st.none() | st.integers(1, 200_000),
    shape=st.sampled_from([None, LLAMA, QWEN, known_model("deepseek-v3"), known_model("gpt2")]),
)
def test_every_match_lies_within_the_resolution(requested, resolution, batch, sequence, shape):
    for match in explain_request(requested, resolution_bytes=resolution, shape=shape, batch=batch, sequence=sequence):
        product = 1
        for _, value in match.factors:
            product *= value
        assert product == match.matched_bytes
        assert match.error_bytes == product - requested
        assert abs(match.error_bytes) <= max(resolution, 1)
        assert 0 <= match.uniqueness_ratio <= 1


@given(batch=st.integers(1, 64), sequence=st.integers(4, 8192))
def test_the_logits_of_any_batch_are_always_among_the_matches(batch, sequence):
    requested = batch * sequence * LLAMA.vocabulary_size * 4
    found = explain_request(requested, resolution_bytes=512, shape=LLAMA, batch=batch, sequence=sequence)
    assert any(match.kind is RequestKind.LOGITS and match.error_bytes == 0 for match in found)


@given(batch=st.integers(1, 64), steps=st.integers(1, 32), slip=st.floats(-1, 1))
def test_a_known_batch_finds_any_round_sequence_behind_a_rounded_size(batch, steps, slip):
    true = batch * steps * 256 * QWEN.vocabulary_size * 4
    found = explain_request(true + int(slip * PRINTED), resolution_bytes=PRINTED, shape=QWEN, batch=batch)
    factors = {match.factors for match in found if match.kind is RequestKind.LOGITS}
    wanted = (
        ("batch", batch),
        ("sequence", steps * 256),
        ("vocabulary", QWEN.vocabulary_size),
        ("bytes", 4),
    )
    assert wanted in factors or batch * steps * 256 > 2**20
