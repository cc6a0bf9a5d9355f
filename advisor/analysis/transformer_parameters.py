"""Parameters of a transformer, matrix by matrix.

Every count and every size follows from this one list.
"""

import enum
from collections.abc import Iterator

from advisor.model.dataclass import dataclass
from advisor.model.transformer import Norm, TransformerShape


class Part(enum.Enum):
    """Where a parameter belongs."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FFN = "feed-forward"
    SHARED_EXPERT = "shared experts"
    EXPERT = "routed experts"
    ROUTER = "router"
    NORM = "norms"
    HEAD = "head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """All parameters of one role.

    Attributes:
        name: as most code calls it ("q_proj", "down_proj", "embed_tokens").
        part: where it belongs.
        row_count / column_count: of one matrix, output by input; a vector has one column.
        copy_count: how many of them the model has.
        is_linear: a matrix product of the layers: adapters and 4-bit loaders take these, not
            embedding, head or router.
        is_tied: True for a head that is the embedding over again: it adds work, no parameters.
    """

    name: str
    part: Part
    row_count: int
    column_count: int = 1
    copy_count: int = 1
    is_linear: bool = False
    is_tied: bool = False

    @property
    def element_count(self) -> int:
        """Elements of one copy."""
        return self.row_count * self.column_count

    @property
    def parameter_count(self) -> int:
        """Parameters of all copies; none where tied."""
        return 0 if self.is_tied else self.element_count * self.copy_count


def weights(shape: TransformerShape) -> tuple[Weight, ...]:
    """Every parameter of the model, by role, in the order of a forward pass."""
    return tuple(_weights(shape))


def parameter_count(shape: TransformerShape) -> int:
    """All parameters, each once."""
    return sum(weight.parameter_count for weight in _weights(shape))


def linear_parameter_count(shape: TransformerShape) -> int:
    """Parameters in the layers' matrix products.

    They are what LoRA on all linear layers and 4-bit loaders take.
    """
    return sum(weight.parameter_count for weight in _weights(shape) if weight.is_linear)


def lookup_parameter_count(shape: TransformerShape) -> int:
    """Parameters that a step only looks up rows of.

    They are the position table, and the embedding unless the head uses it.
    """
    tables = [weight for weight in _weights(shape) if weight.part is Part.EMBEDDING]
    return sum(table.parameter_count for table in tables if not (shape.embeddings_are_tied and table.name == "embed_tokens"))


def expert_parameter_count(shape: TransformerShape) -> int:
    """Parameters of the routed experts, all of them; 0 in a dense model."""
    return sum(weight.parameter_count for weight in _weights(shape) if weight.part is Part.EXPERT)


def active_parameter_count(shape: TransformerShape) -> int:
    """Parameters that take part in one token's forward pass.

    They are all but the experts that it is not sent to.
    """
    idle = 0
    if shape.experts:
        experts = expert_parameter_count(shape)
        idle = experts - experts * shape.experts.active_count // shape.experts.expert_count
    return parameter_count(shape) - idle


def lora_parameter_count(shape: TransformerShape, rank: int) -> int:
    """Trainable parameters of LoRA (arXiv:2106.09685) on all linear layers.

    Each layer has rank × (inputs + outputs).
    """
    return sum(rank * (weight.row_count + weight.column_count) * weight.copy_count for weight in _weights(shape) if weight.is_linear)


def part_counts(shape: TransformerShape) -> dict[Part, int]:
    """Parameters by part; a part that the model lacks is absent."""
    counts: dict[Part, int] = {}
    for weight in _weights(shape):
        if weight.parameter_count:
            counts[weight.part] = counts.get(weight.part, 0) + weight.parameter_count
    return counts


def _weights(shape: TransformerShape) -> Iterator[Weight]:
    hidden = shape.hidden_size
    yield Weight(
        name="embed_tokens",
        part=Part.EMBEDDING,
        row_count=shape.vocabulary_size,
        column_count=hidden,
    )
    if shape.position_count:
        yield Weight(
            name="positions",
            part=Part.EMBEDDING,
            row_count=shape.position_count,
            column_count=hidden,
        )
    yield from _latent_attention(shape) if shape.latent else _attention(shape)
    yield from _feed_forward(shape)
    yield from _norms(shape)
    yield Weight(
        name="lm_head",
        part=Part.HEAD,
        row_count=shape.vocabulary_size,
        column_count=hidden,
        is_tied=shape.embeddings_are_tied,
    )
    if shape.head_bias:
        yield Weight(name="lm_head.bias", part=Part.HEAD, row_count=shape.vocabulary_size)


def _linear(name: str, part: Part, size: tuple[int, int], copies: int, *, bias: bool = False) -> Iterator[Weight]:
    rows, columns = size
    if not copies:
        return
    yield Weight(
        name=name,
        part=part,
        row_count=rows,
        column_count=columns,
        copy_count=copies,
        is_linear=True,
    )
    if bias:
        yield Weight(name=f"{name}.bias", part=part, row_count=rows, copy_count=copies)


def _attention(shape: TransformerShape) -> Iterator[Weight]:
    hidden, layers = shape.hidden_size, shape.layer_count
    query_width = shape.head_count * shape.head_size
    key_width = shape.kv_head_count * shape.head_size
    for name, width in (("q_proj", query_width), ("k_proj", key_width), ("v_proj", key_width)):
        yield from _linear(name, Part.ATTENTION, (width, hidden), layers, bias=shape.query_bias)
    yield from _linear("o_proj", Part.ATTENTION, (hidden, query_width), layers, bias=shape.output_bias)


def _latent_attention(shape: TransformerShape) -> Iterator[Weight]:
    """Down- and up-projections around the cached latent (arXiv:2405.04434, section 2.1)."""
    latent, hidden, layers, heads = (
        shape.latent,
        shape.hidden_size,
        shape.layer_count,
        shape.head_count,
    )
    if latent is None:
        return
    query_width = heads * (latent.plain_head_size + latent.rope_head_size)
    if latent.query_rank is None:
        yield from _linear("q_proj", Part.ATTENTION, (query_width, hidden), layers)
    else:
        yield from _linear("q_a_proj", Part.ATTENTION, (latent.query_rank, hidden), layers)
        yield Weight(name="q_a_norm", part=Part.NORM, row_count=latent.query_rank, copy_count=layers)
        yield from _linear("q_b_proj", Part.ATTENTION, (query_width, latent.query_rank), layers)
    compressed = latent.kv_rank + latent.rope_head_size
    yield from _linear("kv_a_proj", Part.ATTENTION, (compressed, hidden), layers)
    yield Weight(name="kv_a_norm", part=Part.NORM, row_count=latent.kv_rank, copy_count=layers)
    expanded = heads * (latent.plain_head_size + latent.value_head_size)
    yield from _linear("kv_b_proj", Part.ATTENTION, (expanded, latent.kv_rank), layers)
    yield from _linear("o_proj", Part.ATTENTION, (hidden, heads * latent.value_head_size), layers)


def _feed_forward(shape: TransformerShape) -> Iterator[Weight]:
    dense = shape.dense_layer_count
    yield from _network(shape, Part.FFN, shape.ffn_size, dense, bias=shape.ffn_bias)
    moe, layers = shape.experts, shape.expert_layer_count
    if moe is None:
        return
    yield from _network(shape, Part.EXPERT, moe.expert_ffn_size, layers * moe.expert_count)
    if moe.shared_ffn_size:
        yield from _network(shape, Part.SHARED_EXPERT, moe.shared_ffn_size, layers)
    yield Weight(
        name="router",
        part=Part.ROUTER,
        row_count=moe.expert_count,
        column_count=shape.hidden_size,
        copy_count=layers,
    )
    if moe.router_has_bias:
        yield Weight(name="router.bias", part=Part.ROUTER, row_count=moe.expert_count, copy_count=layers)
    if moe.shared_is_gated:
        yield Weight(name="shared_gate", part=Part.ROUTER, row_count=shape.hidden_size, copy_count=layers)


def _network(shape: TransformerShape, part: Part, width: int, copies: int, *, bias: bool = False) -> Iterator[Weight]:
    names = ("gate_proj", "up_proj") if shape.ffn_is_gated else ("up_proj",)
    for name in names:
        yield from _linear(name, part, (width, shape.hidden_size), copies, bias=bias)
    yield from _linear("down_proj", part, (shape.hidden_size, width), copies, bias=bias)


def _norms(shape: TransformerShape) -> Iterator[Weight]:
    per_layer = shape.norms_per_layer * shape.layer_count
    vectors = 2 if shape.norm is Norm.LAYER else 1
    yield Weight(
        name="norm",
        part=Part.NORM,
        row_count=shape.hidden_size,
        copy_count=(per_layer + 1) * vectors,
    )
    if shape.head_norm_size:
        yield Weight(
            name="q_norm, k_norm",
            part=Part.NORM,
            row_count=shape.head_norm_size,
            copy_count=2 * shape.layer_count,
        )
