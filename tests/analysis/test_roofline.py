from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.analysis.model_size import size_of
from advisor.analysis.roofline import (
    Phase,
    Scenario,
    optimizer_step_seconds,
    resident_bytes,
    roofline,
    three_digits,
    turning_batch,
)
from advisor.hardware.catalogue import require
from advisor.model.errors import WrongUsage
from advisor.model.step_time import Bound

LLAMA = size_of(known_model("llama-3-8b"))


def a_scenario(**fields):
    base = {"device": require("h100-sxm"), "model": LLAMA, "phase": Phase.DECODE, "batches": (1,)}
    return Scenario(**(base | fields))


@given(batch=st.integers(1, 4096), context=st.sampled_from([0, 100, 8192]))
def test_the_step_is_the_larger_floor_and_the_attainable_rate_the_lower_ceiling(batch, context):
    scenario = a_scenario(batches=(batch,), context_tokens=context)
    point = roofline(scenario)[0]
    assert point.step_seconds == max(point.bandwidth_seconds, point.compute_seconds)
    assert point.attainable_flops_per_second <= scenario.peak
    assert point.attainable_flops_per_second == pytest.approx(point.flops / point.step_seconds)
    assert (point.intensity >= scenario.ridge) == (point.bound is Bound.COMPUTE)


@given(batch=st.integers(1, 4096))
def test_a_larger_batch_never_slows_a_token_with_a_short_cache(batch):
    one, more = roofline(a_scenario(batches=(batch, batch + 1)))
    assert more.tokens_per_second >= one.tokens_per_second * (1 - 1e-12)


def test_the_turning_batch_is_the_first_that_compute_binds():
    scenario = a_scenario()
    batch = turning_batch(scenario)
    assert batch == 296
    before, at = roofline(replace(scenario, batches=(batch - 1, batch)))
    assert before.bound is Bound.MEMORY
    assert at.bound is Bound.COMPUTE


def test_long_caches_have_no_turning_batch():
    assert turning_batch(a_scenario(context_tokens=32768)) is None


def test_a_cache_read_counts_with_the_context():
    short, long = (roofline(a_scenario(context_tokens=tokens))[0] for tokens in (0, 8192))
    assert long.bandwidth_seconds - short.bandwidth_seconds == pytest.approx(8192 * 131072 / 3.35e12)


def test_a_mixture_reads_more_as_the_batch_grows_until_all_experts_are_touched():
    scenario = a_scenario(model=size_of(known_model("mixtral-8x7b")), batches=(1, 2, 8, 128))
    read = [point.weight_bytes for point in roofline(scenario)]
    assert read == sorted(read)
    assert read[0] == pytest.approx(12.9e9 * 2, rel=0.005)
    assert read[-1] == pytest.approx(46.7e9 * 2, rel=0.005)
    assert {point.flops / point.batch_count for point in roofline(scenario)} == {2 * 12.9e9}


def test_with_a_bare_size_what_needs_the_shape_is_unknown_and_not_zero():
    model = replace(LLAMA, shape=None, linear_parameter_count=None)
    point = roofline(a_scenario(model=model, context_tokens=100))[0]
    assert point.cache_bytes is None
    assert point.attention_seconds is None
    assert point.with_attention_seconds is None
    assert point.really_read_bytes is None
    assert resident_bytes(a_scenario(model=model, context_tokens=100), 1) is None


def test_a_peak_that_the_catalogue_lacks_is_an_error_and_not_another_precision():
    with pytest.raises(WrongUsage, match="fp16"):
        roofline(a_scenario(device=require("t4")))
    assert roofline(a_scenario(device=require("t4"), weights_dtype="fp16", compute_dtype="fp16"))


def test_prefill_counts_attention_apart():
    point = roofline(a_scenario(phase=Phase.PREFILL, context_tokens=4096))[0]
    assert point.flops == pytest.approx(2 * 8.03e9 * 4096)
    assert point.attention_flops == pytest.approx(4 * 4096 * 4096**2 / 2 * 32)
    assert point.with_attention_seconds > point.step_seconds


def test_recomputation_adds_a_third():
    plain, again = (roofline(a_scenario(phase=Phase.TRAIN, context_tokens=4096, recomputes=flag))[0] for flag in (False, True))
    assert again.flops / plain.flops == pytest.approx(4 / 3)


def test_the_optimizers_step_is_28_bytes_a_parameter():
    assert optimizer_step_seconds(a_scenario()) == pytest.approx(28 * 8.03e9 / 3.35e12)


def test_resident_bytes_are_weights_and_cache():
    assert resident_bytes(a_scenario(context_tokens=8192), 64) == 8030261248 * 2 + 64 * 8192 * 131072


@given(st.floats(1e-3, 1e15))
def test_three_digits_stay_within_half_a_percent(value):
    assert three_digits(value) == pytest.approx(value, rel=0.0051)
    assert three_digits(three_digits(value)) == three_digits(value)
