import pytest

from advisor.rules.compute.attention_not_fused import attention_not_fused
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import an_attention


def check(seconds, **fields):
    attention = an_attention(unfused_count=24, unfused_seconds=seconds, device_seconds=1.0, **fields)
    return attention_not_fused.check(a_breakdown(), attention, None)


@pytest.mark.parametrize(("seconds", "fires"), [(0.099, False), (0.101, True)])
def test_it_fires_from_a_tenth_of_the_window_on(seconds, fires):
    assert (check(seconds) is not None) is fires


def test_fused_attention_may_take_as_long_as_it_likes():
    attention = an_attention(unfused_count=0, unfused_seconds=0.0)
    assert attention_not_fused.check(a_breakdown(), attention, None) is None


def test_a_math_fallback_gets_other_advice_than_code_written_out():
    assert "accept" in check(0.5, math_count=24).actions[0].title
    assert "accept" not in check(0.5).actions[0].title


def test_the_scores_size_is_told_where_shapes_are_recorded():
    assert "1.5 GiB" in check(0.5, scores_bytes=3 * 1024**3 // 2).statement
    assert "scores take" not in check(0.5).statement
