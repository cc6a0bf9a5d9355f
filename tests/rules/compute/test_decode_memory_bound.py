import pytest

from advisor.rules.compute.decode_memory_bound import decode_memory_bound
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_ceiling, a_decode, a_mix

MARKED = {"mark": "step[DECODE bs=32]", "sequence_count": 32}


def check(*, ceilings=None, mix=None, **fields):
    return decode_memory_bound.check(a_decode(**fields), a_breakdown(), mix, ceilings)


def test_a_training_step_shows_no_generation():
    assert check() is None


@pytest.mark.parametrize(("batch", "fires"), [(149, True), (150, False)])
def test_a_batch_at_the_ridge_point_is_not_bound_by_memory(batch, fires):
    found = check(mark="step[DECODE bs=?]", sequence_count=batch)
    assert (found is not None) is fires


def test_the_ridge_point_of_the_known_card_decides():
    assert check(mark="x", sequence_count=152, ceilings=a_ceiling()) is not None
    assert check(mark="x", sequence_count=154, ceilings=a_ceiling()) is None


def test_prompts_in_the_same_window_are_not_generation():
    assert check(has_prefill=True, **MARKED) is None


def test_a_backward_pass_is_not_generation():
    assert check(mix=a_mix(backward_ratio=0.1), **MARKED) is None


@pytest.mark.parametrize(("seconds", "fires"), [(0.35, False), (0.37, True)])
def test_without_a_mark_most_products_must_be_vectors(seconds, fires):
    assert (check(vector_matmul_seconds=seconds) is not None) is fires


def test_a_mark_makes_it_surer_than_kernels_alone():
    assert check(**MARKED).confidence > check(paged_attention_count=9).confidence


def test_kernels_that_read_neither_weights_nor_cache_must_not_dominate():
    assert check(matmul_seconds=0.2, attention_seconds=0.2, **MARKED) is None
