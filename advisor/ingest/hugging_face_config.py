"""A Hugging Face config.json to a transformer's shape; unknown architectures are refused."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Source
from advisor.model.transformer import Experts, LatentAttention, Norm, TransformerShape

LARGEST_CONFIG_BYTES = 1 << 20
"""Real ones are a few kilobytes; those with long label maps reach a few hundred."""
LONGEST_NUMBER_DIGITS = 18
LARGEST_VALUE = 10**9
REMEDY = "give the model's numbers instead: layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256"
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def parse_config(data: bytes, path: str) -> TransformerShape:
    """The shape that a config.json describes.

    Args:
        data: the file's bytes.
        path: as the user named it.

    Raises:
        UnreadableInput: not a JSON object, too large, an unknown architecture, or values that no
            model has.
    """
    if len(data) > LARGEST_CONFIG_BYTES:
        raise UnreadableInput(f"{path}: {len(data):,} bytes is no model configuration", "give a config.json")
    try:
        config = json.loads(data, parse_int=_bounded_int, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{path}: not JSON ({error})"[:200], "give a Hugging Face config.json") from error
    if not isinstance(config, dict):
        raise UnreadableInput(f"{path}: not a JSON object", "give a Hugging Face config.json")
    return shape_of_config(config, path)


def shape_of_config(config: Mapping[str, Any], path: str) -> TransformerShape:
    """The same from a parsed configuration.

    Raises:
        UnreadableInput: as `parse_config`.
    """
    gaps: list[str] = []
    inner = config.get("text_config")
    if _reader(config) is None and isinstance(inner, Mapping):
        config = inner
        gaps.append("only the language model inside is counted, not its vision or audio parts")
    kind, reader = config.get("model_type"), _reader(config)
    if reader is None:
        raise UnreadableInput(f"{path}: unknown architecture {str(kind)[:60]!r}", REMEDY)
    if config.get("quantization_config"):
        gaps.append("the configuration declares quantized weights; precision is taken from the options alone")
    fields = _Fields(config, path)
    try:
        shape = reader(fields)
        return TransformerShape(
            source=Source(path=path),
            name=fields.name(str(kind)),
            gaps=(*gaps, *fields.gaps),
            context_size=fields.optional("max_position_embeddings", "n_positions"),
            stored_dtype=DTYPES.get(str(config.get("torch_dtype") or config.get("dtype"))),
            **shape,
        )
    except (ValueError, ZeroDivisionError) as error:
        raise UnreadableInput(f"{path}: {error}"[:200], REMEDY) from error


def _reader(config: Mapping[str, Any]) -> "Callable[[_Fields], dict[str, Any]] | None":
    kind = config.get("model_type")
    return READERS.get(kind) if isinstance(kind, str) else None


def _bounded_int(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER_DIGITS:
        raise ValueError("a number of too many digits")
    return int(digits)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no value of a configuration")


class _Fields:
    """The configuration's values, each checked when it is asked for."""

    def __init__(self, config: Mapping[str, Any], path: str) -> None:
        self.config = config
        self.path = path
        self.gaps: list[str] = []

    def name(self, kind: str) -> str:
        given = self.config.get("_name_or_path")
        return given[:100] if isinstance(given, str) and given else kind

    def optional(self, *keys: str) -> int | None:
        for key in keys:
            value = self.config.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_VALUE:
                raise UnreadableInput(f"{self.path}: {key} is {str(value)[:40]!r}", REMEDY)
            return value
        return None

    def size(self, *keys: str) -> int:
        value = self.optional(*keys)
        if not value:
            raise UnreadableInput(f"{self.path}: {keys[0]} is missing or zero", REMEDY)
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.config.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise UnreadableInput(f"{self.path}: {key} is {str(value)[:40]!r}, not true or false", REMEDY)
        return value

    def list_length_where(self, key: str, wanted: str) -> int | None:
        value = self.config.get(key)
        return sum(item == wanted for item in value) if isinstance(value, list) else None


def _llama_like(fields: _Fields, *, tied: bool = False) -> dict[str, Any]:
    heads = fields.size("num_attention_heads")
    hidden = fields.size("hidden_size")
    bias = fields.flag("attention_bias", default=False)
    return {
        "layer_count": fields.size("num_hidden_layers"),
        "hidden_size": hidden,
        "head_count": heads,
        "kv_head_count": fields.optional("num_key_value_heads") or heads,
        "head_size": fields.optional("head_dim") or hidden // heads,
        "ffn_size": fields.size("intermediate_size"),
        "vocabulary_size": fields.size("vocab_size"),
        "embeddings_are_tied": fields.flag("tie_word_embeddings", default=tied),
        "query_bias": bias,
        "output_bias": bias,
        "ffn_bias": fields.flag("mlp_bias", default=False),
    }


def _windowed(fields: _Fields, shape: dict[str, Any], *, every: int = 1) -> dict[str, Any]:
    window = fields.optional("sliding_window")
    if not window or not fields.flag("use_sliding_window", default=True):
        return shape
    listed = fields.list_length_where("layer_types", "sliding_attention")
    layers = shape["layer_count"] // every if listed is None else listed
    return {
        **shape,
        "window_size": window,
        "windowed_layer_count": min(layers, shape["layer_count"]),
    }


def _mistral(fields: _Fields) -> dict[str, Any]:
    return _windowed(fields, _llama_like(fields))


def _qwen2(fields: _Fields) -> dict[str, Any]:
    shape = {**_llama_like(fields), "query_bias": True, "output_bias": False}
    if not fields.flag("use_sliding_window", default=False):
        return shape
    first = fields.optional("max_window_layers") or 0
    windowed = max(0, shape["layer_count"] - first)
    listed = fields.list_length_where("layer_types", "sliding_attention")
    window = fields.optional("sliding_window")
    if not window:
        return shape
    return {
        **shape,
        "window_size": window,
        "windowed_layer_count": windowed if listed is None else listed,
    }


def _qwen3(fields: _Fields) -> dict[str, Any]:
    shape = _llama_like(fields)
    head_size = fields.optional("head_dim") or 128  # the architecture's own default
    return {**shape, "head_size": head_size, "head_norm_size": head_size}


def _gemma(fields: _Fields) -> dict[str, Any]:
    shape = _llama_like(fields, tied=True)
    return {
        **shape,
        "head_size": fields.optional("head_dim") or 256,
    }  # the architecture's own default


def _gemma2(fields: _Fields) -> dict[str, Any]:
    return {**_windowed(fields, _gemma(fields), every=2), "norms_per_layer": 4}


def _sparse_layers(fields: _Fields, layers: int) -> int:
    """Dense layers of a Qwen mixture: named ones, and all but each n-th."""
    step = fields.optional("decoder_sparse_step") or 1  # 0 would mean none; no model has it
    named = fields.config.get("mlp_only_layers") or []
    if not isinstance(named, list) or not all(isinstance(index, int) for index in named):
        raise UnreadableInput(f"{fields.path}: mlp_only_layers is not a list of layers", REMEDY)
    chosen = set(named)
    return sum(index in chosen or (index + 1) % step != 0 for index in range(min(layers, 10_000)))


def _mixtral(fields: _Fields) -> dict[str, Any]:
    shape = _windowed(fields, _llama_like(fields))
    experts = Experts(
        expert_count=fields.size("num_local_experts"),
        active_count=fields.size("num_experts_per_tok"),
        expert_ffn_size=shape["ffn_size"],
    )
    return {**shape, "experts": experts}


def _qwen_moe(fields: _Fields, shape: dict[str, Any], *, shared: int) -> dict[str, Any]:
    experts = Experts(
        expert_count=fields.size("num_experts"),
        active_count=fields.size("num_experts_per_tok"),
        expert_ffn_size=fields.size("moe_intermediate_size"),
        shared_ffn_size=shared,
        shared_is_gated=bool(shared),
        dense_layer_count=_sparse_layers(fields, shape["layer_count"]),
    )
    return {**shape, "experts": experts}


def _qwen2_moe(fields: _Fields) -> dict[str, Any]:
    return _qwen_moe(fields, _qwen2(fields), shared=fields.size("shared_expert_intermediate_size"))


def _qwen3_moe(fields: _Fields) -> dict[str, Any]:
    return _qwen_moe(fields, _qwen3(fields), shared=0)


def _deepseek(fields: _Fields, *, balanced: bool = False) -> dict[str, Any]:
    shape = _llama_like(fields)
    latent = LatentAttention(
        kv_rank=fields.size("kv_lora_rank"),
        query_rank=fields.optional("q_lora_rank") or None,
        rope_head_size=fields.size("qk_rope_head_dim"),
        plain_head_size=fields.size("qk_nope_head_dim"),
        value_head_size=fields.size("v_head_dim"),
    )
    if (fields.optional("moe_layer_freq") or 1) != 1:
        raise UnreadableInput(f"{fields.path}: experts in every n-th layer are not known here", REMEDY)
    width = fields.size("moe_intermediate_size")
    experts = Experts(
        expert_count=fields.size("n_routed_experts"),
        active_count=fields.size("num_experts_per_tok"),
        expert_ffn_size=width,
        shared_ffn_size=width * (fields.optional("n_shared_experts") or 0),
        dense_layer_count=fields.optional("first_k_dense_replace") or 0,
        router_has_bias=balanced,
    )
    if fields.optional("num_nextn_predict_layers"):
        fields.gaps.append("the multi-token prediction module is not counted")
    return {
        **shape,
        "head_size": latent.plain_head_size,
        "kv_head_count": shape["head_count"],
        "latent": latent,
        "experts": experts,
    }


def _deepseek_v3(fields: _Fields) -> dict[str, Any]:
    return _deepseek(fields, balanced=True)


def _gpt2(fields: _Fields) -> dict[str, Any]:
    hidden, heads = fields.size("n_embd"), fields.size("n_head")
    return {
        "layer_count": fields.size("n_layer"),
        "hidden_size": hidden,
        "head_count": heads,
        "kv_head_count": heads,
        "head_size": hidden // heads,
        "ffn_size": fields.optional("n_inner") or 4 * hidden,
        "ffn_is_gated": False,
        "vocabulary_size": fields.size("vocab_size"),
        "embeddings_are_tied": fields.flag("tie_word_embeddings", default=True),
        "position_count": fields.size("n_positions", "n_ctx"),
        "norm": Norm.LAYER,
        "query_bias": True,
        "output_bias": True,
        "ffn_bias": True,
    }


def _gpt_neox(fields: _Fields) -> dict[str, Any]:
    bias = fields.flag("attention_bias", default=True)
    shape = _llama_like(fields)
    return {
        **shape,
        "ffn_is_gated": False,
        "norm": Norm.LAYER,
        "query_bias": bias,
        "output_bias": bias,
        "ffn_bias": True,
    }


READERS: dict[str, Callable[[_Fields], dict[str, Any]]] = {
    "llama": _llama_like,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "phi3": _mistral,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek_v3,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
}
"""Architectures whose every parameter is known, by `model_type`."""
