"""What a training step needs of one device: the four blocks, logits, and what is assumed.

The counted figures are the usual arithmetic: weights, gradients and optimizer states by bytes for
each parameter, activations by `transformer_activations`. The peak lies at one of three moments: the
start of backward (activations and logits, gradients not yet made), its end (all gradients,
activations gone), or the optimizer's step.
"""

import math
from collections.abc import Iterator

from advisor.analysis.memory_estimate import MemoryEstimate, MemoryItem, overhead_items, total
from advisor.analysis.model_size import ModelSize
from advisor.analysis.optimizers import factored_state_bytes
from advisor.analysis.training_plan import TrainingPlan
from advisor.analysis.transformer_activations import (
    counted_bytes,
    eager_bytes,
    kept_tensors,
    layer_input_bytes,
    widest_layer_bytes,
)
from advisor.analysis.transformer_parameters import lora_parameter_count
from advisor.model.errors import WrongUsage

QUANTIZED_BASE_BYTES = 0.55
"""Bytes for each parameter of a 4-bit base with its scales, as a rule of thumb: half a byte and a
tenth more."""
NF4_CEILING_BYTES = 0.5625
"""NF4 without double quantization: half a byte and an fp32 scale for 64 weights (QLoRA,
arXiv:2305.14314, section 3)."""
NF4_FLOOR_BYTES = 0.516
"""NF4 with double quantization: 4.127 bits a weight (the same)."""
UNQUANTIZED_BYTES = 2.0
"""Embedding, head and norms, which loaders leave in bf16."""

LOGITS_COUNTED_FLOAT32 = 2
"""fp32 numbers for each logit in a plain cross entropy: log-softmax, and its gradient at the start
of backward."""
LOGITS_CEILING_FLOAT32 = 3
"""With the fp32 copy of the logits that a caller still holds (outputs.logits)."""
FLOAT32_BYTES = 4
GATHERED_LAYER_COUNT = 2
"""Layers whose weights sharding has gathered at one time: the current one and the prefetched
one."""


def trainable_count(model: ModelSize, plan: TrainingPlan) -> int:
    """Parameters that get a gradient.

    Raises:
        WrongUsage: adapters on a model of which only the number of parameters is known.
    """
    if plan.lora_rank is None:
        return model.parameter_count
    if model.shape is None:
        raise WrongUsage(
            f"the adapters of {model.name} follow from its layers, and only its size is known",
            "name a built-in model or give a config.json",
        )
    return lora_parameter_count(model.shape, plan.lora_rank)


def states_items(model: ModelSize, plan: TrainingPlan) -> tuple[MemoryItem, ...]:
    """Weights, gradients, master copies and optimizer states: what is there whatever the batch."""
    trainable = trainable_count(model, plan)
    return (
        *_weights(model, plan, trainable),
        *_gradients(plan, trainable),
        *_optimizer(model, plan, trainable),
    )


def estimate_training(model: ModelSize, plan: TrainingPlan) -> MemoryEstimate:
    """What the step needs of each device."""
    states = states_items(model, plan)
    growing = (*_activations(model, plan), *_logits(model, plan))
    step = _step_temporaries(plan, trainable_count(model, plan))
    tensors = (*states, *growing)
    highest = total([item.ceiling_bytes for item in tensors])
    at_step = total([item.ceiling_bytes for item in (*states, step)])
    peak = None if highest is None or at_step is None else max(highest, at_step)
    overhead = overhead_items(peak)
    assumed = total([item.ceiling_bytes for item in overhead])
    return MemoryEstimate(
        items=(*tensors, step, *overhead),
        floor_bytes=_floor(states, growing, plan) + sum(item.least_bytes or 0 for item in overhead),
        counted_bytes=total([item.counted_bytes for item in tensors]),
        ceiling_bytes=None if peak is None or assumed is None else peak + assumed,
        notes=tuple(_notes(model, plan)),
    )


def _floor(states: tuple[MemoryItem, ...], growing: tuple[MemoryItem, ...], plan: TrainingPlan) -> int:
    """The larger of the two ends of backward.

    Without accumulation no gradient exists at its start.
    """
    everything = sum(item.least_bytes or 0 for item in states)
    gradients = sum(item.least_bytes or 0 for item in states if item.block == "gradients")
    at_start = everything - (0 if plan.accumulates else gradients) + sum(i.least_bytes or 0 for i in growing)
    return max(at_start, everything)


def _weights(model: ModelSize, plan: TrainingPlan, trainable: int) -> Iterator[MemoryItem]:
    division = plan.weight_division
    if plan.lora_rank is None:
        per = plan.precision.weight_bytes
        size = math.ceil(model.parameter_count * per / division)
        yield _exact(
            "weights",
            "weights",
            size,
            f"{model.parameter_count:,} parameters × {per:g} bytes",
            division,
        )
    else:
        yield from _frozen_base(model, plan)
        size = math.ceil(trainable * plan.precision.weight_bytes / division)
        basis = f"{trainable:,} parameters × {plan.precision.weight_bytes:g} bytes"
        yield _exact("LoRA adapters", "weights", size, basis, division)
    if plan.precision.cast_bytes:
        linear = model.linear_parameter_count
        size = math.ceil((linear or model.parameter_count) * plan.precision.cast_bytes)
        yield _exact(
            "autocast's bf16 copies of the weights",
            "weights",
            size,
            "2 bytes for each weight of a product",
            1,
        )
    if division > 1:
        layers = model.shape.layer_count if model.shape else 1
        gathered = math.ceil(model.parameter_count * plan.precision.weight_bytes / layers)
        yield MemoryItem(
            name="weights gathered for the running layer",
            block="temporaries",
            counted_bytes=gathered,
            ceiling_bytes=gathered * min(GATHERED_LAYER_COUNT, layers),
            basis="one layer's weights whole, and one more prefetched",
        )


def _frozen_base(model: ModelSize, plan: TrainingPlan) -> Iterator[MemoryItem]:
    division = plan.weight_division
    if not plan.quantizes_base:
        per = plan.precision.frozen_bytes
        size = math.ceil(model.parameter_count * per / division)
        yield _exact(
            "frozen weights",
            "weights",
            size,
            f"{model.parameter_count:,} parameters × {per:g} bytes",
            division,
        )
        return
    linear = model.linear_parameter_count or 0
    left = (model.parameter_count - linear) * UNQUANTIZED_BYTES
    counted = math.ceil(model.parameter_count * QUANTIZED_BASE_BYTES / division)
    yield MemoryItem(
        name="frozen weights in 4 bits",
        block="weights",
        counted_bytes=counted,
        floor_bytes=math.ceil(model.parameter_count * NF4_FLOOR_BYTES / division),
        ceiling_bytes=counted,
        basis=(f"{model.parameter_count:,} parameters × {QUANTIZED_BASE_BYTES} bytes (half a byte, and a tenth for scales)"),
    )
    held = math.ceil((linear * NF4_CEILING_BYTES + left) / division)
    yield MemoryItem(
        name="embedding, head and norms that loaders leave in bf16",
        block="weights",
        counted_bytes=0,
        ceiling_bytes=max(0, held - counted),
        basis=f"bitsandbytes quantizes the {linear:,} parameters of the linear layers only",
    )


def _gradients(plan: TrainingPlan, trainable: int) -> Iterator[MemoryItem]:
    per, division = plan.precision.gradient_bytes, plan.gradient_division
    size = math.ceil(trainable * per / division)
    yield _exact("gradients", "gradients", size, f"{trainable:,} trainable × {per:g} bytes", division)
    if plan.sharding == "ddp":
        yield MemoryItem(
            name="DDP's buckets beside the gradients",
            block="temporaries",
            counted_bytes=0,
            ceiling_bytes=size,
            basis="a second copy unless gradient_as_bucket_view=True",
        )


def _optimizer(model: ModelSize, plan: TrainingPlan, trainable: int) -> Iterator[MemoryItem]:
    optimizer, precision, division = plan.optimizer, plan.precision, plan.state_division
    if precision.master_bytes:
        size = math.ceil(trainable * precision.master_bytes / division)
        basis = f"{trainable:,} trainable × {precision.master_bytes:g} bytes"
        yield _exact("fp32 master copy", "optimizer_states", size, basis, division)
    per = optimizer.state_bytes
    if optimizer.follows_parameter:
        per = precision.master_bytes or precision.weight_bytes
    size = math.ceil(trainable * optimizer.state_count * per / division)
    basis = f"{trainable:,} trainable × {optimizer.state_count} × {per:g} bytes"
    if optimizer.is_factored:
        if model.shape is None or plan.lora_rank is not None:
            size, basis = 0, "sums of rows and columns only: next to nothing"
        else:
            size = math.ceil(factored_state_bytes(model.shape) / division)
            basis = "a sum in fp32 for each row and column of each matrix"
    yield MemoryItem(
        name=f"{optimizer.name} states",
        block="optimizer_states",
        counted_bytes=size,
        floor_bytes=0 if optimizer.is_paged else size,
        ceiling_bytes=size,
        basis=_divided(basis, division),
    )


def _step_temporaries(plan: TrainingPlan, trainable: int) -> MemoryItem:
    per = plan.precision.master_bytes or plan.precision.weight_bytes
    size = math.ceil(trainable * plan.optimizer.step_temporaries * per / plan.state_division)
    return MemoryItem(
        name="temporaries of the optimizer's step",
        block="temporaries",
        counted_bytes=0,
        ceiling_bytes=size,
        basis=("foreach implementations hold one more number a parameter during step(); fused=True does not"),
    )


def _activations(model: ModelSize, plan: TrainingPlan) -> Iterator[MemoryItem]:
    if model.shape is None:
        yield MemoryItem(
            name="activations",
            block="activations",
            counted_bytes=None,
            floor_bytes=0,
            ceiling_bytes=None,
            basis="unknown: only the number of parameters is known",
        )
        return
    element_bytes = plan.precision.activation_bytes
    kept = kept_tensors(
        model.shape,
        sequence_tokens=plan.sequence_tokens,
        element_bytes=element_bytes,
        scores_are_materialized=plan.scores_are_materialized,
    )
    if plan.checkpoints_layers:
        size = math.ceil(layer_input_bytes(model.shape, token_count=plan.token_count, element_bytes=element_bytes))
        yield _exact(
            "activations: the layers' inputs",
            "activations",
            size,
            "checkpointing keeps these alone",
            1,
        )
        yield MemoryItem(
            name="activations of the layer being recomputed",
            block="temporaries",
            counted_bytes=math.ceil(widest_layer_bytes(kept, plan.token_count, eager=False)),
            ceiling_bytes=math.ceil(widest_layer_bytes(kept, plan.token_count, eager=True)),
            basis="one layer at a time",
        )
        return
    yield MemoryItem(
        name="activations",
        block="activations",
        counted_bytes=math.ceil(counted_bytes(kept, plan.token_count)),
        ceiling_bytes=math.ceil(eager_bytes(kept, plan.token_count)),
        basis="kept for backward with fused kernels; at most what plain PyTorch keeps",
    )


def _logits(model: ModelSize, plan: TrainingPlan) -> Iterator[MemoryItem]:
    if model.shape is None:
        return
    element_bytes = plan.precision.activation_bytes
    logits = plan.token_count * model.shape.vocabulary_size
    yield MemoryItem(
        name="logits and their loss",
        block="logits",
        counted_bytes=math.ceil(logits * (element_bytes + LOGITS_COUNTED_FLOAT32 * FLOAT32_BYTES)),
        floor_bytes=0,
        ceiling_bytes=math.ceil(logits * (element_bytes + LOGITS_CEILING_FLOAT32 * FLOAT32_BYTES)),
        basis=f"{plan.token_count:,} tokens × {model.shape.vocabulary_size:,} rows, "
        f"in {element_bytes:g} bytes and as fp32 twice; "
        "a fused loss has none",
    )


def _exact(name: str, block: str, size: int, basis: str, division: int) -> MemoryItem:
    return MemoryItem(
        name=name,
        block=block,
        counted_bytes=size,
        ceiling_bytes=size,
        basis=_divided(basis, division),
    )


def _divided(basis: str, division: int) -> str:
    return f"{basis} / {division} devices" if division > 1 else basis


def _notes(model: ModelSize, plan: TrainingPlan) -> Iterator[str]:
    if plan.lora_rank is not None:
        trainable = trainable_count(model, plan)
        share = trainable / model.parameter_count
        yield (
            f"LoRA of rank {plan.lora_rank} on all linear layers trains {trainable / 1e6:.1f} M "
            f"parameters ({share:.2%}); "
            "it shrinks gradients and optimizer states, and activations not at all."
        )
    if plan.checkpoints_layers:
        yield ("Checkpointing runs the forward pass again: 8N instead of 6N FLOPs a token, a third more.")
    if plan.optimizer.is_paged:
        yield "Paged states move to host memory under pressure; the step is then slower."
    if model.shape and model.shape.experts:
        yield "All experts are resident and trained, however few a token is sent to."
