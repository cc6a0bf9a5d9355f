"""The shape of a transformer: what its parameter count, its memory and its FLOPs follow from."""

import enum

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence


class Norm(enum.Enum):
    """The normalization layers; a LayerNorm has a bias beside its weight."""

    RMS = "RMSNorm"
    LAYER = "LayerNorm"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434).

    The cache holds one latent vector a token.

    Attributes:
        kv_rank: width of the latent that keys and values are made from; cached.
        query_rank: width of the queries' own latent; None where queries are projected directly.
        rope_head_size: width of the rotary part of keys (one for all heads, cached) and of queries.
        plain_head_size: width of a head's part without rotation.
        value_head_size: width of a head's values.
    """

    kv_rank: int
    query_rank: int | None
    rope_head_size: int
    plain_head_size: int
    value_head_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts in place of the dense feed-forward network.

    Attributes:
        expert_count: routed experts of a layer.
        active_count: routed experts that a token is sent to.
        expert_ffn_size: inner width of one routed expert.
        shared_ffn_size: inner width of the experts that every token passes, together; 0 without
            any.
        dense_layer_count: layers that keep a dense network of width `ffn_size`.
        shared_is_gated: whether a learned gate scales the shared expert (Qwen2-MoE).
        router_has_bias: whether the router adds one number an expert (DeepSeek-V3's balancing
            bias).
    """

    expert_count: int
    active_count: int
    expert_ffn_size: int
    shared_ffn_size: int = 0
    dense_layer_count: int = 0
    shared_is_gated: bool = False
    router_has_bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerShape(Evidence):
    """A decoder-only transformer. All sizes are widths in elements.

    Attributes:
        name: as the user or the table calls it.
        layer_count: decoder layers.
        hidden_size: width of the residual stream.
        head_count: query heads.
        kv_head_count: key and value heads (equal to `head_count`: multi-head; 1: multi-query;
            between: grouped).
        head_size: width of a head; not always hidden_size / head_count.
        ffn_size: inner width of the dense feed-forward network.
        ffn_is_gated: True for SwiGLU and GeGLU (three matrices), False for two matrices.
        vocabulary_size: rows of the embedding.
        embeddings_are_tied: the head uses the embedding's matrix.
        position_count: rows of a learned position table; 0 with rotary or other computed positions.
        norm: kind of normalization.
        norms_per_layer: of the width of the residual stream; the final one comes on top.
        head_norm_size: width of the norms of queries and of keys, each, in every layer; 0 without.
        query_bias / output_bias / ffn_bias / head_bias: biases of the q-k-v projections, of the
            attention's output projection, of the feed-forward network and of the language model's
            head.
        latent: set for multi-head latent attention.
        experts: set for a mixture of experts.
        window_size: tokens that a sliding-window layer attends to; None without such layers.
        windowed_layer_count: layers with that window; the others attend to everything.
        context_size: the longest context that the model declares; None where it does not say.
        stored_dtype: "bf16", "fp16", "fp32" as the configuration says; None where it does not.
    """

    name: str
    layer_count: int
    hidden_size: int
    head_count: int
    kv_head_count: int
    head_size: int
    ffn_size: int
    vocabulary_size: int
    ffn_is_gated: bool = True
    embeddings_are_tied: bool = False
    position_count: int = 0
    norm: Norm = Norm.RMS
    norms_per_layer: int = 2
    head_norm_size: int = 0
    query_bias: bool = False
    output_bias: bool = False
    ffn_bias: bool = False
    head_bias: bool = False
    latent: LatentAttention | None = None
    experts: Experts | None = None
    window_size: int | None = None
    windowed_layer_count: int = 0
    context_size: int | None = None
    stored_dtype: str | None = None

    def __post_init__(self) -> None:
        sizes = (self.layer_count, self.hidden_size, self.head_count, self.kv_head_count)
        if min(*sizes, self.head_size, self.vocabulary_size) < 1 or self.ffn_size < 0:
            raise ValueError(f"{self.name}: every size of a transformer is at least 1")
        if self.head_count % self.kv_head_count:
            raise ValueError(f"{self.name}: {self.head_count} query heads cannot share {self.kv_head_count} key heads")
        moe = self.experts
        if moe and not 1 <= moe.active_count <= moe.expert_count:
            raise ValueError(f"{self.name}: {moe.active_count} active of {moe.expert_count} experts")
        if moe and not 0 <= moe.dense_layer_count <= self.layer_count:
            raise ValueError(f"{self.name}: more dense layers than layers")
        if not 0 <= self.windowed_layer_count <= self.layer_count:
            raise ValueError(f"{self.name}: more windowed layers than layers")

    @property
    def expert_layer_count(self) -> int:
        """Layers whose feed-forward network is a mixture of experts."""
        return self.layer_count - self.experts.dense_layer_count if self.experts else 0

    @property
    def dense_layer_count(self) -> int:
        """Layers with a dense feed-forward network."""
        return self.layer_count - self.expert_layer_count
