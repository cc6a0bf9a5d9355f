"""One operator's recorded shapes → the arithmetic it does and the bytes it must move.

FLOPs count a multiplication and an addition as two. Bytes are those of each input read once and of
the output written once, as if caches were perfect: a floor, so intensities are ceilings.
"""

import json
from collections.abc import Callable
from math import prod

from advisor.model.dataclass import dataclass

ELEMENT_BYTES = {
    "float": 4,
    "double": 8,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "int": 4,
    "long int": 8,
    "long": 8,
    "short": 2,
    "bool": 1,
    "unsigned char": 1,
    "signed char": 1,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}
"""Bytes of one element by the profiler's "Input type"; others are unknown."""

DTYPES = {
    "float": "fp32",
    "double": "fp64",
    "c10::Half": "fp16",
    "c10::BFloat16": "bf16",
    "signed char": "int8",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8",
    "c10::Float8_e4m3fnuz": "fp8",
    "c10::Float8_e5m2fnuz": "fp8",
}
"""The profiler's types by the names of the hardware catalogue."""

NORMALIZATION_FLOPS = 5
"""Operations an element: subtract the mean, square, scale, multiply, add; or maximum, subtract,
exponential, sum, divide of a softmax. Such kernels are limited by bytes, so the figure decides nothing."""

BACKWARD_ATTENTION_RATIO = 2.5
"""Backward over forward FLOPs of fused attention: five products for two (Dao et al., 2022,
appendix B)."""

MOST_ELEMENTS = 2**63
"""Elements of one tensor from which on its shape is damage: PyTorch counts them in 64 bits."""

MOST_FLOPS = 2.0**63
"""Operations of one call from which on its shapes are damage: a device of 1e15 a second would take hours."""

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one call does.

    Attributes:
        flops: operations.
        moved_bytes: bytes read and written, at the least.
        dtype: in the catalogue's spelling; empty where it is none of them.
        product: batch, rows, columns and inner size of a matrix product; None for other operators.
    """

    flops: float
    moved_bytes: float
    dtype: str
    product: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """One call's arguments: sizes (() for what is no tensor), types and concrete values as recorded."""

    dims: tuple[Dims, ...]
    types: tuple[str, ...]
    inputs: tuple[str, ...]

    def size(self, place: int) -> int:
        return ELEMENT_BYTES[self.types[place]]

    def dtype(self, place: int) -> str:
        return DTYPES.get(self.types[place], "")

    def bytes_of(self, place: int) -> int:
        return prod(self.dims[place]) * self.size(place)

    def is_true(self, place: int) -> bool:
        return place < len(self.inputs) and self.inputs[place] == "True"


def operator_work(name: str, dims: str, types: str, inputs: str = "[]") -> Work | None:
    """The work of one call.

    Args:
        name: of the operator ("aten::mm").
        dims: JSON of the profiler's "Input Dims".
        types: JSON of "Input type".
        inputs: JSON of "Concrete Inputs"; an empty list where not recorded.

    Returns:
        None where the operator has no model here, or where its shapes do not tell (a convolution
        whose stride is not recorded) or cannot be (a negative size).
    """
    model = _MODELS.get(name)
    if model is None:
        return None
    try:
        call = _Call(
            dims=tuple(_dims(item) for item in json.loads(dims)),
            types=tuple(str(item) for item in json.loads(types)),
            inputs=tuple(str(item) for item in json.loads(inputs)) if inputs else (),
        )
        work = model(call)
    except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, RecursionError):
        return None  # shapes of another overload than the one modelled: unknown, not wrong
    is_possible = 0 <= work.flops < MOST_FLOPS and 0 <= work.moved_bytes < MOST_FLOPS
    return work if is_possible else None


def is_modelled(name: str) -> bool:
    """Whether an operator's work can be told from its shapes."""
    return name in _MODELS


def _dims(recorded: object) -> Dims:
    """One argument's shape, () where it is no tensor; ValueError where no tensor has such a shape."""
    if not isinstance(recorded, list) or any(type(size) is not int for size in recorded):
        return ()
    # Each size before their product: a list of huge numbers takes long to multiply.
    if any(not 0 <= size < MOST_ELEMENTS for size in recorded) or prod(recorded) >= MOST_ELEMENTS:
        raise ValueError("no shape")
    return tuple(recorded)


def _product(call: _Call, left: int, right: int, *, added: bool = False) -> Work:
    """A product of [..., M, K] and [..., K, N]."""
    *batch, rows, inner = call.dims[left]
    *_, second_inner, columns = call.dims[right]
    if inner != second_inner:
        raise ValueError("not a product")
    return _product_work(call, left, (prod(batch), rows, columns, inner), added=added)


def _product_work(call: _Call, place: int, sizes: tuple[int, int, int, int], *, added: bool = False) -> Work:
    """Sizes are batch, rows, columns and inner size."""
    batch, rows, columns, inner = sizes
    outputs = batch * rows * columns
    size = call.size(place)
    moved = (batch * rows * inner + batch * inner * columns + outputs) * size
    return Work(
        flops=2.0 * outputs * inner + (outputs if added else 0),
        moved_bytes=float(moved),
        dtype=call.dtype(place),
        product=(batch, rows, columns, inner),
    )


def _linear(call: _Call) -> Work:
    *outer, inner = call.dims[0]
    columns, second_inner = call.dims[1]
    if inner != second_inner:
        raise ValueError("not a linear layer")
    return _product_work(call, 0, (1, prod(outer), columns, inner))


def _matmul(call: _Call) -> Work:
    left, right = call.dims[0], call.dims[1]
    if len(left) < 2 or len(right) < 2:  # noqa: PLR2004 - vectors are left to mv and dot
        raise ValueError("vectors")
    if len(right) == 2:  # noqa: PLR2004 - one matrix for the whole batch is one product
        return _product_work(call, 0, (1, prod(left[:-1]), right[-1], left[-1]))
    return _product(call, 0, 1)


def _matrix_vector(call: _Call, place: int) -> Work:
    rows, inner = call.dims[place]
    return _product_work(call, place, (1, rows, 1, inner))


def _convolution(call: _Call) -> Work:
    """Forward: the output's size follows from stride, padding and dilation, if recorded."""
    source, weight = call.dims[0], call.dims[1]
    lists = [_numbers(text) for text in call.inputs[2:]]
    # Overloads differ in where stride, padding and dilation stand; they are the first three lists
    # of one length, in the order stride, padding, dilation, or padding, stride, dilation (cuDNN).
    spatial = len(source) - 2
    sizes = [item for item in lists if item and len(item) == spatial][:3]
    if spatial < 1 or len(sizes) < 3:  # noqa: PLR2004 - stride, padding, dilation
        raise ValueError("stride not recorded")
    first, second, dilation = sizes
    stride, padding = (second, first) if call.inputs and _is_padding_first(call) else (first, second)
    output = tuple(
        (source[2 + axis] + 2 * padding[axis] - dilation[axis] * (weight[2 + axis] - 1) - 1) // stride[axis] + 1 for axis in range(spatial)
    )
    if min(output) < 0:
        raise ValueError("no output")
    elements = source[0] * weight[0] * prod(output)
    return _convolution_work(call, 0, elements, source, weight)


def _is_padding_first(call: _Call) -> bool:
    """Whether padding comes before stride, as in cuDNN's and MIOpen's own operators.

    They are told from aten::convolution by the absence of the bias, the third argument.
    """
    return bool(_numbers(call.inputs[2]))


def _convolution_backward(call: _Call) -> Work:
    """(grad_output, input, weight, ...): both gradients unless the output mask says otherwise."""
    gradient, source, weight = call.dims[0], call.dims[1], call.dims[2]
    forward = _convolution_work(call, 1, prod(gradient), source, weight)
    mask = call.inputs[-1] if call.inputs else ""
    wanted = 1 if mask.replace(" ", "").startswith("[False,True") else 2
    return Work(flops=forward.flops * wanted, moved_bytes=forward.moved_bytes * wanted, dtype=forward.dtype)


def _old_convolution_backward(call: _Call) -> Work:
    """(input, grad_output, weight, ...), until torch 1.10."""
    gradient, source, weight = call.dims[1], call.dims[0], call.dims[2]
    forward = _convolution_work(call, 0, prod(gradient), source, weight)
    return Work(flops=forward.flops * 2, moved_bytes=forward.moved_bytes * 2, dtype=forward.dtype)


def _convolution_work(call: _Call, place: int, outputs: int, source: Dims, weight: Dims) -> Work:
    per_output = prod(weight[1:])  # input channels of a group times window
    moved = (prod(source) + prod(weight) + outputs) * call.size(place)
    return Work(flops=2.0 * outputs * per_output, moved_bytes=float(moved), dtype=call.dtype(place))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, list) and all(type(n) is int for n in found) else ()


def _attention(call: _Call, query: int, *, heads_first: bool, causal: int | None, ratio: float) -> Work:
    """Fused attention: two products forward; half of them where the mask is causal."""
    if heads_first:
        batch, heads, queries, width = call.dims[query]
        keys, kv_heads = call.dims[query + 1][2], call.dims[query + 1][1]
    else:
        batch, queries, heads, width = call.dims[query]
        keys, kv_heads = call.dims[query + 1][1], call.dims[query + 1][2]
    value_width = call.dims[query + 2][-1]
    flops = 2.0 * batch * heads * queries * keys * (width + value_width)
    if causal is not None and call.is_true(causal) and queries == keys:
        flops /= 2
    elements = batch * queries * heads * (width + value_width)
    elements += batch * keys * kv_heads * (width + value_width)
    return Work(
        flops=flops * ratio,
        moved_bytes=float(elements * call.size(query)) * (1 if ratio == 1 else 2),
        dtype=call.dtype(query),
    )


def _pointwise(call: _Call) -> Work:
    """One operation an element of the broadcast output."""
    places = [place for place, dims in enumerate(call.dims) if dims]
    widest = max(places, key=lambda place: prod(call.dims[place]))
    outputs = prod(call.dims[widest])
    moved = sum(call.bytes_of(place) for place in places) + outputs * call.size(widest)
    return Work(flops=float(outputs), moved_bytes=float(moved), dtype=call.dtype(widest))


def _copy(call: _Call) -> Work:
    """Reads the source (second argument), writes the destination; no arithmetic."""
    elements = prod(call.dims[0])
    source = min(elements, prod(call.dims[1])) if call.dims[1] else 0
    moved = elements * call.size(0) + source * call.size(1)
    return Work(flops=0.0, moved_bytes=float(moved), dtype=call.dtype(0))


def _row_wise(place: int, passes: int) -> Callable[[_Call], Work]:
    """Normalizations and softmaxes: some operations an element, each tensor passed over once."""

    def work(call: _Call) -> Work:
        elements = prod(call.dims[place])
        return Work(
            flops=float(NORMALIZATION_FLOPS * elements),
            moved_bytes=float(passes * elements * call.size(place)),
            dtype=call.dtype(place),
        )

    return work


_POINTWISE = (
    *("add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "neg", "pow", "sqrt", "rsqrt"),
    *(
        "exp",
        "exp_",
        "log",
        "tanh",
        "tanh_",
        "sigmoid",
        "sigmoid_",
        "relu",
        "relu_",
        "gelu",
        "silu",
    ),
    *("silu_", "hardtanh", "leaky_relu", "threshold_backward", "gelu_backward", "silu_backward"),
    *("tanh_backward", "sigmoid_backward", "clamp", "clamp_", "clamp_min", "clamp_min_", "where"),
    *("masked_fill", "masked_fill_", "addcmul", "addcmul_", "addcdiv", "addcdiv_", "lerp", "lerp_"),
    *("eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "bitwise_and", "cos", "sin", "abs"),
)

_MODELS: dict[str, Callable[[_Call], Work]] = {
    "aten::mm": lambda call: _product(call, 0, 1),
    "aten::bmm": lambda call: _product(call, 0, 1),
    "aten::addmm": lambda call: _product(call, 1, 2, added=True),
    "aten::_addmm_activation": lambda call: _product(call, 1, 2, added=True),
    "aten::baddbmm": lambda call: _product(call, 1, 2, added=True),
    "aten::_scaled_mm": lambda call: _product(call, 0, 1),
    "aten::matmul": _matmul,
    "aten::linear": _linear,
    "aten::mv": lambda call: _matrix_vector(call, 0),
    "aten::addmv": lambda call: _matrix_vector(call, 1),
    "aten::addmv_": lambda call: _matrix_vector(call, 1),
    "aten::convolution": _convolution,
    "aten::_convolution": _convolution,
    "aten::cudnn_convolution": _convolution,
    "aten::miopen_convolution": _convolution,
    "aten::mkldnn_convolution": _convolution,
    "aten::thnn_conv2d": _convolution,
    "aten::convolution_backward": _convolution_backward,
    "aten::cudnn_convolution_backward": _old_convolution_backward,
    "aten::_flash_attention_forward": lambda call: _attention(call, 0, heads_first=False, causal=8, ratio=1),
    "aten::_efficient_attention_forward": lambda call: _attention(call, 0, heads_first=False, causal=None, ratio=1),
    "flash_attn::_flash_attn_forward": lambda call: _attention(call, 0, heads_first=False, causal=5, ratio=1),
    "aten::_scaled_dot_product_flash_attention": lambda call: _attention(call, 0, heads_first=True, causal=4, ratio=1),
    "aten::_scaled_dot_product_efficient_attention": lambda call: _attention(call, 0, heads_first=True, causal=6, ratio=1),
    "aten::_scaled_dot_product_cudnn_attention": lambda call: _attention(call, 0, heads_first=True, causal=6, ratio=1),
    "aten::_scaled_dot_product_flash_attention_for_cpu": lambda call: _attention(call, 0, heads_first=True, causal=4, ratio=1),
    "aten::_flash_attention_backward": lambda call: _attention(call, 1, heads_first=False, causal=11, ratio=BACKWARD_ATTENTION_RATIO),
    "aten::_scaled_dot_product_efficient_attention_backward": lambda call: _attention(
        call, 1, heads_first=True, causal=11, ratio=BACKWARD_ATTENTION_RATIO
    ),
    "aten::copy_": _copy,
    "aten::native_layer_norm": _row_wise(0, 2),
    "aten::native_layer_norm_backward": _row_wise(1, 3),
    "aten::native_group_norm": _row_wise(0, 2),
    "aten::native_batch_norm": _row_wise(0, 3),
    "aten::cudnn_batch_norm": _row_wise(0, 3),
    "aten::miopen_batch_norm": _row_wise(0, 3),
    "aten::cudnn_batch_norm_backward": _row_wise(0, 5),
    "aten::miopen_batch_norm_backward": _row_wise(0, 5),
    "aten::_softmax": _row_wise(0, 2),
    "aten::_log_softmax": _row_wise(0, 2),
    "aten::_softmax_backward_data": _row_wise(0, 3),
    "aten::_log_softmax_backward_data": _row_wise(0, 3),
    **{f"aten::{name}": _pointwise for name in _POINTWISE},
}


def tensor_bytes(dims: str, types: str, place: int = 0) -> int | None:
    """The size of one argument by its recorded shape and type; None where they do not tell."""
    try:
        size = ELEMENT_BYTES[json.loads(types)[place]]
        shape = _dims(json.loads(dims)[place])
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return None
    return prod(shape) * size if shape else None
