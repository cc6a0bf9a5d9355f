import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.attention_mix import attention_mix

HALF = ["c10::Half", "", "Scalar"]


def attention_of(trace):
    read = trace.read()
    return attention_mix(read, a_breakdown_of(read))


def three(trace, first, middle, last, at=0, **dims):
    for place, name in enumerate((first, middle, last)):
        start = at + 20 * place
        shape = dims if "softmax" in name else {}
        trace.operator(name, start, 15, **shape)
        trace.kernel("void k()", at + 100 + 10 * place, 10, launched=start + 2)
    return trace


def test_a_softmax_between_two_batched_products_is_written_out_attention():
    scores = {"dims": [[2, 8, 128, 128], [], []], "types": HALF}
    found = attention_of(three(HandMadeTrace(), "aten::bmm", "aten::_softmax", "aten::bmm", **scores))
    assert found.unfused_count == 1
    assert found.unfused_seconds == pytest.approx(30e-6)
    assert found.scores_bytes == 2 * 8 * 128 * 128 * 2


@pytest.mark.parametrize(
    ("first", "middle", "last"),
    [
        ("aten::addmm", "aten::_softmax", "aten::bmm"),  # a router in front of experts
        ("aten::bmm", "aten::_softmax", "aten::mm"),
        ("aten::bmm", "aten::_log_softmax", "aten::bmm"),
    ],
)
def test_other_softmaxes_are_no_attention(first, middle, last):
    assert attention_of(three(HandMadeTrace(), first, middle, last)).unfused_count == 0


def test_products_of_another_thread_do_not_make_attention():
    trace = HandMadeTrace().operator("aten::bmm", 0, 5).operator("aten::_softmax", 10, 5)
    trace.operator("aten::bmm", 20, 5, tid=2)
    assert attention_of(trace).unfused_count == 0


def test_its_backward_pass_counts_too():
    trace = three(HandMadeTrace(), "aten::bmm", "aten::_softmax_backward_data", "aten::bmm")
    assert attention_of(trace).unfused_count == 1


def test_fused_and_fallen_back_calls_are_counted():
    trace = HandMadeTrace()
    trace.operator("aten::_scaled_dot_product_flash_attention", 0, 5)
    trace.operator("aten::_scaled_dot_product_attention_math", 10, 5)
    found = attention_of(trace)
    assert (found.fused_count, found.math_count) == (1, 1)


def test_without_operators_nothing_is_known():
    assert attention_of(HandMadeTrace().kernel("void k()", 10, 5, launched=False)) is None
