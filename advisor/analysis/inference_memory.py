"""What serving or generating needs of one device.

Weights, KV cache, the running layer, logits, and what is assumed.
"""

import math
from collections.abc import Iterator

from advisor.analysis.dtype_sizes import BYTES_PER_ELEMENT
from advisor.analysis.memory_estimate import MemoryEstimate, MemoryItem, overhead_items, total
from advisor.analysis.model_size import ModelSize
from advisor.analysis.transformer_activations import kept_tensors, widest_layer_bytes
from advisor.analysis.transformer_costs import kv_cache_bytes, kv_elements_per_token
from advisor.model.dataclass import dataclass, replace

SCALES_CEILING_BYTES = 0.0625
"""Scales of a quantized weight, at most: four bytes for 64 weights."""
UNQUANTIZED_BYTES = 2.0
"""Embedding, head and norms, which loaders leave in bf16."""
FLOAT32_BYTES = 4
HALF_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePlan:
    """How somebody means to generate.

    Attributes:
        batch_count: requests at a time.
        sequence_tokens: tokens of each, prompt and answer together.
        weights_dtype: precision that the weights are kept in.
        kv_dtype: precision of the cache.
        device_count: devices that split every layer (tensor parallel); key heads that cannot be
            split are repeated.
        prefill_tokens: prompt tokens that pass a layer at one time; those of one request where
            None.
    """

    batch_count: int
    sequence_tokens: int
    weights_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    device_count: int = 1
    prefill_tokens: int | None = None

    def with_batch(self, batch_count: int) -> "InferencePlan":
        """The same for another batch."""
        return replace(self, batch_count=batch_count)


def estimate_inference(model: ModelSize, plan: InferencePlan) -> MemoryEstimate:
    """What generation needs of each device."""
    batch_count, sequence_tokens, device_count = (
        plan.batch_count,
        plan.sequence_tokens,
        plan.device_count,
    )
    at_once = sequence_tokens if plan.prefill_tokens is None else plan.prefill_tokens
    items = (
        *_weights(model, plan.weights_dtype, device_count),
        *_cache(model, batch_count, sequence_tokens, BYTES_PER_ELEMENT[plan.kv_dtype], device_count),
        *_running(model, batch_count, sequence_tokens, max(at_once, batch_count)),
    )
    ceiling = total([item.ceiling_bytes for item in items])
    overhead = overhead_items(ceiling)
    assumed = total([item.ceiling_bytes for item in overhead])
    notes = ["Under no_grad generation keeps no gradients, no states and one layer's activations."]
    if at_once < batch_count * sequence_tokens:
        notes.append("generate() of transformers prefills the whole batch at once: that is --prefill-tokens batch × sequence.")
    if device_count > 1:
        notes.append("Split over devices by heads and columns; communication buffers are not counted.")
    return MemoryEstimate(
        items=(*items, *overhead),
        floor_bytes=sum(item.least_bytes or 0 for item in (*items, *overhead)),
        counted_bytes=total([item.counted_bytes for item in items]),
        ceiling_bytes=None if ceiling is None or assumed is None else ceiling + assumed,
        notes=tuple(notes),
    )


def _weights(model: ModelSize, dtype: str, devices: int) -> Iterator[MemoryItem]:
    per = BYTES_PER_ELEMENT[dtype]
    counted = math.ceil(model.parameter_count * per / devices)
    basis = f"{model.parameter_count:,} parameters × {per:g} bytes" + (f" / {devices} devices" if devices > 1 else "")
    yield MemoryItem(
        name=f"weights in {dtype}",
        block="weights",
        counted_bytes=counted,
        ceiling_bytes=counted,
        basis=basis,
    )
    if per >= HALF_BYTES:
        return
    linear = model.linear_parameter_count
    quantized = model.parameter_count if linear is None else linear
    held = quantized * (per + SCALES_CEILING_BYTES) + (model.parameter_count - quantized) * UNQUANTIZED_BYTES
    yield MemoryItem(
        name="scales, and what loaders leave in bf16",
        block="weights",
        counted_bytes=0,
        ceiling_bytes=max(0, math.ceil(held / devices) - counted),
        basis="embedding, head and norms are usually not quantized; a scale for 64 weights",
    )


def _cache(model: ModelSize, batch: int, sequence: int, element_bytes: float, devices: int) -> Iterator[MemoryItem]:
    shape = model.shape
    if shape is None:
        yield _unknown("KV cache", "kv_cache")
        return
    split = 1 if shape.latent else min(devices, shape.kv_head_count)
    windowed = kv_cache_bytes(shape, batch_count=batch, context_tokens=sequence, element_bytes=element_bytes)
    whole = math.ceil(batch * sequence * kv_elements_per_token(shape) * element_bytes / split)
    width = f"2 × {shape.kv_head_count} heads × {shape.head_size}"
    if shape.latent:
        width = f"{shape.latent.kv_rank} + {shape.latent.rope_head_size} of the latent"
    yield MemoryItem(
        name="KV cache",
        block="kv_cache",
        counted_bytes=whole,
        floor_bytes=math.ceil(windowed / split),
        ceiling_bytes=whole,
        basis=(f"{batch} × {sequence:,} tokens × {shape.layer_count} layers × {width} × {element_bytes:g} bytes"),
    )


def _running(model: ModelSize, batch: int, sequence: int, prefill_tokens: int) -> Iterator[MemoryItem]:
    shape = model.shape
    if shape is None:
        yield _unknown("activations of the running layer", "activations")
        return
    kept = kept_tensors(shape, sequence_tokens=sequence, element_bytes=HALF_BYTES)
    yield MemoryItem(
        name="activations of the running layer",
        block="activations",
        counted_bytes=math.ceil(widest_layer_bytes(kept, prefill_tokens, eager=False)),
        floor_bytes=math.ceil(widest_layer_bytes(kept, batch, eager=False)),
        ceiling_bytes=math.ceil(widest_layer_bytes(kept, prefill_tokens, eager=True)),
        basis=(f"a prefill of {prefill_tokens:,} tokens at a time; at least one token of each request"),
    )
    vocabulary = shape.vocabulary_size
    yield MemoryItem(
        name="logits",
        block="logits",
        counted_bytes=batch * vocabulary * FLOAT32_BYTES,
        ceiling_bytes=max(batch, prefill_tokens) * vocabulary * FLOAT32_BYTES,
        basis=(f"the last token of each of {batch}, {vocabulary:,} rows in fp32; at most of every prefilled token"),
    )


def _unknown(name: str, block: str) -> MemoryItem:
    return MemoryItem(
        name=name,
        block=block,
        counted_bytes=None,
        floor_bytes=0,
        ceiling_bytes=None,
        basis="unknown: only the number of parameters is known",
    )
