"""Activations that a training step keeps for backward, tensor by tensor.

Two counts stand side by side. The counted one is 6 × hidden + 3 × FFN width a token and layer in a
Llama: what stays with fused kernels, keys and values left out. The eager one adds what plain
PyTorch keeps besides; saved tensors of a decoder layer written as transformers writes it came to it
exactly (torch 2.13, docs/decisions/activations.md).
"""

from collections.abc import Iterator

from advisor.model.dataclass import dataclass
from advisor.model.transformer import Norm, TransformerShape

FLOAT32_BYTES = 4.0
GATED_WIDE_COUNT = 3
"""Kept at the inner width of a gated network: gate, up, and their product."""
PLAIN_WIDE_COUNT = 2
"""Kept at the inner width of a plain network: before and after the activation function."""
PYTHON_GELU_EXTRA_COUNT = 3
"""A GELU written out in Python (GPT-2's gelu_new) also keeps half its input, the tanh and one plus
the tanh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTensor:
    """One tensor that is kept for backward in each of some layers.

    Attributes:
        name: what it is.
        elements_per_token: its width.
        element_bytes: bytes of a number.
        layer_count: layers that keep one.
        is_eager_only: kept by plain PyTorch and not by fused kernels.
    """

    name: str
    elements_per_token: float
    element_bytes: float
    layer_count: int
    is_eager_only: bool = False

    def bytes_of(self, token_count: int) -> float:
        """Bytes over all its layers."""
        return self.elements_per_token * self.element_bytes * self.layer_count * token_count


def kept_tensors(
    shape: TransformerShape,
    *,
    sequence_tokens: int,
    element_bytes: float,
    scores_are_materialized: bool = False,
) -> tuple[KeptTensor, ...]:
    """Everything that a forward pass keeps.

    Args:
        shape: the model.
        sequence_tokens: tokens of one sequence; only materialized attention scores depend on it.
        element_bytes: of the activations (2 in bf16 and under autocast).
        scores_are_materialized: attention without a fused kernel keeps heads × T scores a token: T²
            a sequence.
    """
    kept = (
        *_hidden_wide(shape, element_bytes),
        *_attention(shape, element_bytes),
        *_ffn(shape, element_bytes),
    )
    if scores_are_materialized:
        kept = (*kept, *_scores(shape, sequence_tokens, element_bytes))
    return tuple(tensor for tensor in kept if tensor.layer_count and tensor.elements_per_token)


def counted_bytes(kept: tuple[KeptTensor, ...], token_count: int) -> float:
    """What stays with fused kernels."""
    return sum(tensor.bytes_of(token_count) for tensor in kept if not tensor.is_eager_only)


def eager_bytes(kept: tuple[KeptTensor, ...], token_count: int) -> float:
    """What plain PyTorch keeps, the counted part included."""
    return sum(tensor.bytes_of(token_count) for tensor in kept)


def layer_input_bytes(shape: TransformerShape, *, token_count: int, element_bytes: float) -> float:
    """What checkpointing of every layer keeps: the layers' inputs."""
    return shape.layer_count * shape.hidden_size * token_count * element_bytes


def widest_layer_bytes(kept: tuple[KeptTensor, ...], token_count: int, *, eager: bool) -> float:
    """One layer's activations, which checkpointing makes again one layer at a time.

    It is the mean layer where layers differ.
    """
    chosen = [tensor for tensor in kept if eager or not tensor.is_eager_only]
    layers = max((tensor.layer_count for tensor in chosen), default=1)
    return sum(tensor.bytes_of(token_count) for tensor in chosen) / layers


def _hidden_wide(shape: TransformerShape, element_bytes: float) -> Iterator[KeptTensor]:
    layers, hidden, norms = shape.layer_count, shape.hidden_size, shape.norms_per_layer
    yield KeptTensor(
        name="inputs of the norms (the residual stream)",
        elements_per_token=norms * hidden,
        element_bytes=element_bytes,
        layer_count=layers,
    )
    yield KeptTensor(
        name="outputs of the norms",
        elements_per_token=norms * hidden,
        element_bytes=element_bytes,
        layer_count=layers,
    )
    if shape.norm is Norm.RMS:
        yield KeptTensor(
            name="normalized values before the norms' weights",
            elements_per_token=norms * hidden,
            element_bytes=element_bytes,
            layer_count=layers,
            is_eager_only=True,
        )
        yield KeptTensor(
            name="norms' inputs in fp32 instead",
            elements_per_token=norms * hidden,
            element_bytes=FLOAT32_BYTES - min(element_bytes, FLOAT32_BYTES),
            layer_count=layers,
            is_eager_only=True,
        )


def _attention(shape: TransformerShape, element_bytes: float) -> Iterator[KeptTensor]:
    latent, layers = shape.latent, shape.layer_count
    key_size = latent.plain_head_size + latent.rope_head_size if latent else shape.head_size
    value_size = latent.value_head_size if latent else shape.head_size
    widths = {
        "queries": shape.head_count * key_size,
        "output of attention": shape.head_count * value_size,
    }
    if latent:
        widths["latents"] = latent.kv_rank + latent.rope_head_size + (latent.query_rank or 0)
    for name, width in widths.items():
        yield KeptTensor(name=name, elements_per_token=width, element_bytes=element_bytes, layer_count=layers)
    yield KeptTensor(
        name="keys and values, repeated for all heads",
        elements_per_token=shape.head_count * (key_size + value_size),
        element_bytes=element_bytes,
        layer_count=layers,
        is_eager_only=True,
    )


def _ffn(shape: TransformerShape, element_bytes: float) -> Iterator[KeptTensor]:
    moe = shape.experts
    networks = [("feed-forward network", shape.ffn_size, shape.dense_layer_count)]
    if moe:
        width = moe.active_count * moe.expert_ffn_size + moe.shared_ffn_size
        networks.append(("chosen experts", width, shape.expert_layer_count))
        yield KeptTensor(
            name="tokens gathered for the experts, and what they return",
            elements_per_token=2 * moe.active_count * shape.hidden_size,
            element_bytes=element_bytes,
            layer_count=shape.expert_layer_count,
            is_eager_only=True,
        )
    wide_count = GATED_WIDE_COUNT if shape.ffn_is_gated else PLAIN_WIDE_COUNT
    extra_name, extra_count = ("the activation function's result", 1)
    if not shape.ffn_is_gated:
        extra_name, extra_count = ("steps of a GELU written in Python", PYTHON_GELU_EXTRA_COUNT)
    for name, width, layers in networks:
        yield KeptTensor(
            name=f"inner tensors of the {name}",
            elements_per_token=wide_count * width,
            element_bytes=element_bytes,
            layer_count=layers,
        )
        yield KeptTensor(
            name=f"{name}: {extra_name}",
            elements_per_token=extra_count * width,
            element_bytes=element_bytes,
            layer_count=layers,
            is_eager_only=True,
        )


def _scores(shape: TransformerShape, sequence_tokens: int, element_bytes: float) -> Iterator[KeptTensor]:
    for name, size, eager in (
        ("attention scores after softmax", element_bytes, False),
        ("the same in fp32", FLOAT32_BYTES if element_bytes < FLOAT32_BYTES else 0.0, True),
    ):
        yield KeptTensor(
            name=name,
            elements_per_token=shape.head_count * sequence_tokens,
            element_bytes=size,
            layer_count=shape.layer_count,
            is_eager_only=eager,
        )
