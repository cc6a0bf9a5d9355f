"""The largest batch that fits, and which single changes would make a job fit."""

from collections.abc import Callable, Iterator

from advisor.analysis.memory_estimate import Capacity, Fit, MemoryEstimate
from advisor.analysis.model_size import ModelSize
from advisor.analysis.optimizers import OPTIMIZERS
from advisor.analysis.training_memory import estimate_training
from advisor.analysis.training_plan import TrainingPlan
from advisor.model.dataclass import dataclass, replace

LARGEST_BATCH = 2**20
ADVISED_RANK = 16
"""The rank that most LoRA examples use."""
ADVISED_DEVICE_COUNT = 8
"""Devices of a usual node."""
EIGHT_BIT_STATE_BYTES = 2.0
"""What 8-bit AdamW keeps for a parameter; an optimizer with less gains nothing by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestBatch:
    """How far the batch can go.

    Attributes:
        surely: the largest that fits by the ceiling; 0 where none does, None where the ceiling is
            unknown.
        at_best: the largest that the floor does not exclude.
    """

    surely: int | None
    at_best: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One change and what it would bring.

    Attributes:
        title: the change in words.
        options: what to add to the command line.
        estimate: with the change.
        fit: its verdict.
    """

    title: str
    options: str
    estimate: MemoryEstimate
    fit: Fit


def largest_batch(estimate_at: Callable[[int], MemoryEstimate], capacity: Capacity) -> LargestBatch:
    """Search the batch; memory grows with it, so halving finds the edge.

    Args:
        estimate_at: the estimate at a batch.
        capacity: of one device.
    """
    first = estimate_at(1)
    if first.ceiling_bytes is None:
        return LargestBatch(surely=None, at_best=None)
    surely = _edge(lambda batch: (estimate_at(batch).ceiling_bytes or 0) <= capacity.floor_bytes)
    at_best = _edge(lambda batch: estimate_at(batch).floor_bytes <= capacity.ceiling_bytes)
    return LargestBatch(surely=surely, at_best=at_best)


def _edge(fits: Callable[[int], bool]) -> int:
    if not fits(1):
        return 0
    high = 1
    while high < LARGEST_BATCH and fits(2 * high):
        high *= 2
    low, high = high, min(2 * high, LARGEST_BATCH)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def remedies(model: ModelSize, plan: TrainingPlan, capacity: Capacity) -> tuple[Remedy, ...]:
    """Single changes of a training plan, those that fit first, then as they are best tried."""
    tried = []
    for title, options, changed in _changes(model, plan):
        estimate = estimate_training(model, changed)
        tried.append(Remedy(title=title, options=options, estimate=estimate, fit=estimate.fit(capacity)))
    order = (Fit.FITS, Fit.TOO_NEAR, Fit.UNKNOWN, Fit.DOES_NOT_FIT)
    return tuple(sorted(tried, key=lambda remedy: order.index(remedy.fit)))


def _changes(model: ModelSize, plan: TrainingPlan) -> Iterator[tuple[str, str, TrainingPlan]]:
    if not plan.checkpoints_layers:
        yield (
            "checkpointing of every layer, for a third more compute",
            "--checkpointing",
            replace(plan, checkpoints_layers=True),
        )
    if plan.batch_count > 1:
        yield (
            "a micro-batch of 1 with gradient accumulation",
            "--batch 1 --accumulate",
            replace(plan, batch_count=1, accumulates=True),
        )
    state_bytes = plan.optimizer.state_count * plan.optimizer.state_bytes
    if plan.lora_rank is None and state_bytes > EIGHT_BIT_STATE_BYTES:
        yield (
            "8-bit AdamW",
            "--optimizer adamw-8bit",
            replace(plan, optimizer=OPTIMIZERS["adamw-8bit"]),
        )
    if plan.device_count == 1:
        yield (
            f"FSDP over {ADVISED_DEVICE_COUNT} devices",
            f"--sharding fsdp --gpus {ADVISED_DEVICE_COUNT}",
            replace(plan, sharding="fsdp", device_count=ADVISED_DEVICE_COUNT),
        )
    if model.shape is None:
        return
    if plan.lora_rank is None:
        yield (
            f"LoRA of rank {ADVISED_RANK}",
            f"--lora {ADVISED_RANK}",
            replace(plan, lora_rank=ADVISED_RANK),
        )
    if not plan.quantizes_base:
        rank = plan.lora_rank or ADVISED_RANK
        small = replace(plan, lora_rank=rank, quantizes_base=True)
        yield (f"QLoRA of rank {rank}", f"--lora {rank} --qlora", small)
        if not plan.checkpoints_layers:
            yield (
                "QLoRA with checkpointing",
                f"--lora {rank} --qlora --checkpointing",
                replace(small, checkpoints_layers=True),
            )
