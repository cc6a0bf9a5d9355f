import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.decode_signs import decode_signs


def signs_of(trace):
    read = trace.kernel("void paged_attention_v2_kernel<c10::Half>()", 5_000, 10).read()
    return decode_signs(read, a_breakdown_of(read), None)


@pytest.mark.parametrize(
    ("mark", "batch", "prompts"),
    [
        ("step[DECODE bs=32]", 32, False),
        ("execute_8_context_0(sq0sk0)_generation_8(sq8sk900)", 8, False),
        ("execute_context_1(888_7885)_generation_0(0)", None, True),
        ("execute_9_context_1(sq70)_generation_8(sq8)", 8, True),
        ("## forward ##", None, False),
    ],
)
def test_engines_mark_their_steps(mark, batch, prompts):
    signs = signs_of(HandMadeTrace().annotation(mark, 0, 100))
    assert (signs.sequence_count, signs.has_prefill) == (batch, prompts)
    assert signs.step_count == (1 if batch else 0)


def test_kernels_over_a_paged_cache_are_counted_with_their_time():
    signs = signs_of(HandMadeTrace().kernel("void gemv2T_kernel_val<int, int, float>()", 10, 30))
    assert signs.paged_attention_count == 1
    assert signs.attention_seconds == pytest.approx(10e-6)
    assert signs.vector_matmul_seconds == signs.matmul_seconds == pytest.approx(30e-6)
