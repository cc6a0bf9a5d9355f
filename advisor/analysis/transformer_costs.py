"""What a transformer costs: KV cache, FLOPs of decode, prefill and training, experts touched.

A matrix product of n weights does 2n FLOPs a token forward, twice that backward: 2N and 6N (Kaplan
et al., arXiv:2001.08361, section 2.1). Attention's own products come on top and are counted
separately.
"""

from advisor.analysis.transformer_parameters import Part, Weight, weights
from advisor.model.transformer import TransformerShape

FLOPS_PER_WEIGHT = 2
"""One multiplication and one addition."""
BACKWARD_RATIO = 2
"""Backward computes the gradient of the input and of the weight: two products for one."""


def kv_elements_per_token(shape: TransformerShape, context_tokens: int | None = None) -> float:
    """Elements of the KV cache of one token, over all layers.

    Args:
        shape: the model.
        context_tokens: the sequence's length; with it, sliding-window layers count only what they
            keep, averaged over the sequence.
    """
    per_layer = 2 * shape.kv_head_count * shape.head_size
    if shape.latent:
        per_layer = shape.latent.kv_rank + shape.latent.rope_head_size
    if context_tokens is None or context_tokens <= 0 or shape.window_size is None:
        return float(per_layer * shape.layer_count)
    kept_ratio = min(1.0, shape.window_size / context_tokens)
    full_layers = shape.layer_count - shape.windowed_layer_count
    return per_layer * (full_layers + shape.windowed_layer_count * kept_ratio)


def kv_cache_bytes(shape: TransformerShape, *, batch_count: int, context_tokens: int, element_bytes: float) -> float:
    """Bytes of the whole cache: batch × sequence × layers × 2 × n_kv × d_head × bytes.

    With MLA the width is the latent's.
    """
    return batch_count * context_tokens * kv_elements_per_token(shape, context_tokens) * element_bytes


def attention_width(shape: TransformerShape) -> int:
    """Elements per token and layer that the two products of attention pass over.

    That is heads × (key width + value width).
    """
    if shape.latent:
        key_width = shape.latent.plain_head_size + shape.latent.rope_head_size
        return shape.head_count * (key_width + shape.latent.value_head_size)
    return 2 * shape.head_count * shape.head_size


def attended_layer_tokens(shape: TransformerShape, context_tokens: int) -> int:
    """Tokens that one new token attends to, summed over the layers."""
    window = context_tokens if shape.window_size is None else min(shape.window_size, context_tokens)
    full_layers = shape.layer_count - shape.windowed_layer_count
    return full_layers * context_tokens + shape.windowed_layer_count * window


def decode_attention_flops(shape: TransformerShape, context_tokens: int) -> float:
    """FLOPs of scores and weighted values for one new token of one sequence."""
    return float(FLOPS_PER_WEIGHT * attention_width(shape) * attended_layer_tokens(shape, context_tokens))


def prefill_attention_flops(shape: TransformerShape, sequence_tokens: int) -> float:
    """FLOPs of scores and weighted values over a causal sequence: half of the full square, T².

    With a window it is T × window.
    """
    window = sequence_tokens if shape.window_size is None else min(shape.window_size, sequence_tokens)
    square = _causal_pairs(sequence_tokens, sequence_tokens)
    banded = _causal_pairs(sequence_tokens, window)
    full_layers = shape.layer_count - shape.windowed_layer_count
    pairs = full_layers * square + shape.windowed_layer_count * banded
    return FLOPS_PER_WEIGHT * attention_width(shape) * pairs


def _causal_pairs(tokens: int, window: int) -> float:
    """Pairs of a query and a key.

    Each token sees at most `window` tokens, itself among them (half of the diagonal aside).
    """
    return window * tokens - window * window / 2


def forward_weight_flops(parameters: float, token_count: int) -> float:
    """2N FLOPs a token, forward."""
    return FLOPS_PER_WEIGHT * parameters * token_count


def training_weight_flops(parameters: float, token_count: int, *, recomputed: bool = False) -> float:
    """6N FLOPs a token, forward and backward.

    It is 8N where checkpointing runs the forward pass again.
    """
    passes = 1 + BACKWARD_RATIO + (1 if recomputed else 0)
    return passes * forward_weight_flops(parameters, token_count)


def touched_expert_ratio(shape: TransformerShape, token_count: int) -> float:
    """The share of routed experts that tokens are expected to touch, were the router uniform.

    An expert is missed by one token with probability 1 - k/E, by all with that to the power of the
    tokens. Real routers are skewed: fewer are touched. 1.0 in a dense model.
    """
    moe = shape.experts
    if moe is None:
        return 1.0
    missed_ratio = (1 - moe.active_count / moe.expert_count) ** token_count
    return float(1 - missed_ratio)


def read_ratio(shape: TransformerShape, weight: Weight, token_count: int) -> float:
    """The share of a weight that a step over these tokens reads.

    That is rows of a table, touched experts, or all of it.
    """
    if weight.part is Part.EMBEDDING:
        return min(1.0, token_count / weight.row_count)
    if weight.part is Part.EXPERT:
        return touched_expert_ratio(shape, token_count)
    return 1.0


def read_parameter_count(shape: TransformerShape, token_count: int) -> float:
    """Parameters that one forward step over these tokens reads, each at most once.

    A tied head reads the embedding.
    """
    return sum(
        weight.element_count * weight.copy_count * read_ratio(shape, weight, token_count)
        for weight in weights(shape)
        if not (weight.name == "embed_tokens" and shape.embeddings_are_tied)
    )
