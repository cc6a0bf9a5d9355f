import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.operator_work import operator_work, tensor_bytes

sizes = st.integers(1, 64)
BF16, FP32 = "c10::BFloat16", "float"


def work(name, dims, types=None, inputs=None):
    types = types or [FP32 if size else "Scalar" for size in dims]
    return operator_work(name, json.dumps(dims), json.dumps(types), json.dumps(inputs or []))


@given(sizes, sizes, sizes)
def test_a_product_does_two_operations_for_each_row_column_and_inner_element(m, k, n):
    found = work("aten::mm", [[m, k], [k, n]])
    assert found.flops == 2 * m * k * n
    assert found.moved_bytes == 4 * (m * k + k * n + m * n)
    assert found.product == (1, m, n, k)


@given(sizes, sizes, sizes, sizes)
def test_a_batch_of_products_is_as_much_as_the_products_one_by_one(b, m, k, n):
    one = work("aten::mm", [[m, k], [k, n]])
    many = work("aten::bmm", [[b, m, k], [b, k, n]])
    assert (many.flops, many.moved_bytes) == (b * one.flops, b * one.moved_bytes)


@given(sizes, sizes, sizes)
def test_a_linear_layer_is_the_product_with_its_transposed_weight(m, k, n):
    linear = work("aten::linear", [[2, m, k], [n, k], [n]])
    assert linear.flops == work("aten::mm", [[2 * m, k], [k, n]]).flops


def test_half_the_bytes_in_half_the_precision():
    wide = work("aten::mm", [[8, 8], [8, 8]])
    narrow = work("aten::mm", [[8, 8], [8, 8]], [BF16, BF16])
    assert narrow.moved_bytes * 2 == wide.moved_bytes
    assert (narrow.dtype, wide.dtype) == ("bf16", "fp32")


def test_a_convolutions_output_follows_from_stride_padding_and_dilation():
    found = work(
        "aten::convolution",
        [[32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []],
        [FP32, FP32, "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"],
        ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "False", "[0, 0]", "1"],
    )
    assert found.flops == 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7


def test_cudnns_own_convolution_takes_padding_before_stride():
    found = work(
        "aten::cudnn_convolution",
        [[32, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []],
        None,
        ["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"],
    )
    assert found.flops == 2 * 32 * 64 * 112 * 112 * 3 * 7 * 7


def test_a_convolution_without_its_stride_is_unknown():
    assert work("aten::cudnn_convolution", [[32, 3, 224, 224], [64, 3, 7, 7]]) is None


def test_both_gradients_of_a_convolution_are_twice_its_forward_pass():
    dims = [[8, 64, 56, 56], [8, 32, 56, 56], [64, 32, 3, 3]]
    forward = 2 * 8 * 64 * 56 * 56 * 32 * 9
    both = work("aten::convolution_backward", dims, None, ["", "", "", "[True, True, False]"])
    one = work("aten::convolution_backward", dims, None, ["", "", "", "[False, True, False]"])
    assert (both.flops, one.flops) == (2 * forward, forward)


def test_a_causal_mask_halves_attention():
    dims = [[2, 1024, 16, 64]] * 3 + [[]] * 7
    types = [BF16] * 3 + ["Scalar"] * 7
    full = work("aten::_flash_attention_forward", dims, types, [""] * 8 + ["False", "False"])
    causal = work("aten::_flash_attention_forward", dims, types, [""] * 8 + ["True", "False"])
    assert full.flops == 4 * 2 * 16 * 1024 * 1024 * 64
    assert causal.flops == full.flops / 2


def test_grouped_queries_read_fewer_keys_and_compute_as_much():
    types = [BF16] * 3
    many = work("aten::_scaled_dot_product_flash_attention", [[1, 32, 512, 64]] * 3, types)
    few = work(
        "aten::_scaled_dot_product_flash_attention",
        [[1, 32, 512, 64], [1, 8, 512, 64], [1, 8, 512, 64]],
        types,
    )
    assert few.flops == many.flops
    assert few.moved_bytes < many.moved_bytes


def test_a_sum_reads_both_terms_and_writes_the_broadcast_result():
    found = work("aten::add", [[128, 64], [64], []])
    assert (found.flops, found.moved_bytes) == (128 * 64, 4 * (128 * 64 * 2 + 64))


def test_a_copy_moves_bytes_and_computes_nothing():
    found = work("aten::copy_", [[100], [100], []], [FP32, BF16, "Scalar"])
    assert (found.flops, found.moved_bytes) == (0, 100 * 6)


@pytest.mark.parametrize(
    ("name", "dims", "types"),
    [
        ("aten::mm", "[[2, 3], [4, 5]]", '["float", "float"]'),
        ("aten::mm", "[[2, 3]]", '["float", "float"]'),
        ("aten::mm", "[[2, 3], [3, 5]]", '["quint8", "quint8"]'),
        ("aten::mm", "not json", "[]"),
        ("aten::mm", '[["2", 3], [3, 5]]', '["float", "float"]'),
        ("aten::add", "[[], []]", '["Scalar", "Scalar"]'),
        ("aten::nobody_knows", "[[2, 3]]", '["float"]'),
    ],
)
def test_shapes_that_do_not_fit_the_operator_are_unknown_and_not_zero(name, dims, types):
    assert operator_work(name, dims, types) is None


def test_the_size_of_an_argument_is_its_elements_times_theirs():
    assert tensor_bytes("[[4, 5], []]", '["c10::Half", "Scalar"]') == 40
    assert tensor_bytes("[[4, 5], []]", '["c10::Half", "Scalar"]', 1) is None


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("aten::mm", [[-1000000, 64], [64, 64]]),
        ("aten::mm", [[-8, -8], [-8, 8]]),
        ("aten::mm", [[2**40, 2**40], [2**40, 8]]),
        ("aten::mm", [[2**31, 2**31], [2**31, 2**31]]),
        ("aten::mm", [[10**400, 1], [1, 1]]),
        ("aten::mm", [[True, 8], [8, 8]]),
        ("aten::add", [[-4, 8], [8]]),
        ("aten::copy_", [[-4], [-4]]),
        ("aten::_softmax", [[-4, 8]]),
    ],
)
def test_shapes_that_no_tensor_has_tell_nothing(name, dims):
    assert work(name, dims, [FP32] * len(dims)) is None


def test_a_convolution_whose_window_is_larger_than_its_input_tells_nothing():
    dims = [[1, 1, 2, 2], [1, 1, 9, 9], [], [], [], []]
    assert work("aten::convolution", dims, inputs=["", "", "", "[1, 1]", "[0, 0]", "[1, 1]"]) is None


def test_a_tensor_of_a_negative_size_has_no_bytes():
    assert tensor_bytes("[[-4, 8]]", '["float"]') is None
