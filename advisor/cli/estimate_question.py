"""What `advisor-cli estimate` was asked: the options read to a model, a capacity and a plan."""

import argparse

from advisor.analysis.dtype_sizes import dtype_named
from advisor.analysis.fitting import LargestBatch, largest_batch
from advisor.analysis.inference_memory import InferencePlan, estimate_inference
from advisor.analysis.memory_estimate import (
    Capacity,
    MemoryEstimate,
    capacity_of,
    declared_capacity,
)
from advisor.analysis.model_size import ModelSize
from advisor.analysis.optimizers import optimizer_named
from advisor.analysis.training_memory import estimate_training
from advisor.analysis.training_plan import PRECISIONS, SHARDINGS, Precision, TrainingPlan
from advisor.cli.model_option import beyond_context, model_of
from advisor.cli.number_options import (
    LARGEST_BATCH,
    LARGEST_CONTEXT_TOKENS,
    capacity_bytes,
    whole_number,
)
from advisor.hardware.catalogue import require
from advisor.model.dataclass import dataclass
from advisor.model.errors import WrongUsage

LARGEST_RANK = 65_536
LARGEST_DEVICE_COUNT = 100_000
TRAINING_ONLY = (
    "optimizer",
    "precision",
    "lora",
    "qlora",
    "checkpointing",
    "accumulate",
    "eager_attention",
    "sharding",
)
INFERENCE_ONLY = ("weights", "kv", "prefill_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    Attributes:
        model: the model.
        capacity: of one device.
        gaps: what is not certain about the device or the model.
        plan: how it is trained, or how it generates.
    """

    model: ModelSize
    capacity: Capacity
    gaps: tuple[str, ...]
    plan: TrainingPlan | InferencePlan

    def estimate(self) -> MemoryEstimate:
        """What the job needs of each device."""
        if isinstance(self.plan, TrainingPlan):
            return estimate_training(self.model, self.plan)
        return estimate_inference(self.model, self.plan)

    def largest_batch(self) -> LargestBatch:
        """How far the batch can go, everything else as asked."""
        plan = self.plan
        if isinstance(plan, TrainingPlan):
            return largest_batch(lambda batch: estimate_training(self.model, plan.with_batch(batch)), self.capacity)
        return largest_batch(lambda batch: estimate_inference(self.model, plan.with_batch(batch)), self.capacity)


def question_of(arguments: argparse.Namespace) -> Question:
    """Read the options.

    Raises:
        WrongUsage: an option that means nothing, or nothing together with another.
        UnreadableInput: a configuration file that cannot be read.
    """
    _refuse_mixture(arguments)
    model = model_of(arguments.model)
    capacity, gaps = _capacity(arguments)
    if model.shape:
        gaps = (*gaps, *model.shape.gaps, *beyond_context(model.shape, _sequence(arguments)))
    plan = _inference_plan(arguments) if arguments.inference else _training_plan(arguments)
    return Question(model=model, capacity=capacity, gaps=gaps, plan=plan)


def _refuse_mixture(arguments: argparse.Namespace) -> None:
    """An option of the other kind of job would be ignored without a word."""
    foreign = TRAINING_ONLY if arguments.inference else INFERENCE_ONLY
    given = [name for name in foreign if getattr(arguments, name) not in (None, False)]
    if given:
        kind = "generation" if arguments.inference else "training"
        remedy = "leave it out" if arguments.inference else "add --inference, or leave it out"
        raise WrongUsage(f"--{given[0].replace('_', '-')} has no meaning in {kind}", remedy)


def _capacity(arguments: argparse.Namespace) -> tuple[Capacity, tuple[str, ...]]:
    device = None if arguments.device is None else require(arguments.device)
    if arguments.capacity is not None:
        name = device.name if device else "a device"
        return declared_capacity(capacity_bytes(arguments.capacity), name), ()
    if device is None:
        raise WrongUsage(
            "estimate: no device given",
            "name it with --device H100, or its memory with --capacity 79.1",
        )
    capacity = capacity_of(device)
    if capacity is None:
        raise WrongUsage(f"no capacity is known for {device.name}", "give it in GiB: --capacity 79.1")
    return capacity, device.gaps


def _training_plan(arguments: argparse.Namespace) -> TrainingPlan:
    rank = arguments.lora
    return TrainingPlan(
        batch_count=_batch(arguments),
        sequence_tokens=_sequence(arguments),
        optimizer=optimizer_named(_given(arguments.optimizer, "adamw")),
        precision=_precision(_given(arguments.precision, "mixed")),
        lora_rank=None if rank is None else whole_number("--lora", rank, least=1, most=LARGEST_RANK),
        quantizes_base=arguments.qlora,
        checkpoints_layers=arguments.checkpointing,
        scores_are_materialized=arguments.eager_attention,
        accumulates=arguments.accumulate,
        device_count=_devices(arguments),
        sharding=_sharding(_given(arguments.sharding, "none")),
    )


def _inference_plan(arguments: argparse.Namespace) -> InferencePlan:
    tokens = arguments.prefill_tokens
    most = LARGEST_BATCH * LARGEST_CONTEXT_TOKENS
    return InferencePlan(
        batch_count=_batch(arguments),
        sequence_tokens=_sequence(arguments),
        weights_dtype=dtype_named(_given(arguments.weights, "bf16")),
        kv_dtype=dtype_named(_given(arguments.kv, "bf16")),
        device_count=_devices(arguments),
        prefill_tokens=None if tokens is None else whole_number("--prefill-tokens", tokens, least=1, most=most),
    )


def _given(value: str | None, default: str) -> str:
    return default if value is None else value


def _batch(arguments: argparse.Namespace) -> int:
    return whole_number("--batch", arguments.batch, least=1, most=LARGEST_BATCH)


def _sequence(arguments: argparse.Namespace) -> int:
    return whole_number("--sequence", arguments.sequence, least=1, most=LARGEST_CONTEXT_TOKENS)


def _devices(arguments: argparse.Namespace) -> int:
    return whole_number("--gpus", arguments.gpus, least=1, most=LARGEST_DEVICE_COUNT)


def _precision(text: str) -> Precision:
    if text not in PRECISIONS:
        raise WrongUsage(f"--precision {text[:40]!r}", f"known: {', '.join(PRECISIONS)}")
    return PRECISIONS[text]


def _sharding(text: str) -> str:
    if text not in SHARDINGS:
        raise WrongUsage(f"--sharding {text[:40]!r}", f"known: {', '.join(SHARDINGS)}")
    return text
