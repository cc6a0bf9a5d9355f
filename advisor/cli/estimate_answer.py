"""The answer of `advisor-cli estimate`, as text and as JSON."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from advisor.analysis.dtype_sizes import BYTES_PER_ELEMENT
from advisor.analysis.fitting import LargestBatch, Remedy, remedies
from advisor.analysis.inference_memory import InferencePlan
from advisor.analysis.memory_estimate import Fit, MemoryEstimate, MemoryItem, total
from advisor.analysis.training_memory import trainable_count
from advisor.analysis.training_plan import TrainingPlan
from advisor.analysis.transformer_activations import counted_bytes, eager_bytes, kept_tensors
from advisor.analysis.transformer_costs import kv_elements_per_token
from advisor.cli.answer_page import (
    gibibytes,
    gigabytes,
    heading,
    line,
    table,
    write_json,
    write_page,
)
from advisor.cli.estimate_question import Question

STATES = ("weights", "gradients", "optimizer_states")
"""What is there whatever the batch: the model states."""
UNMEASURED = (
    "The range comes from what was counted and assumed; how far real runs lie from it has not been "
    "measured yet. "
    "torch.compile can keep less than the counted activations."
)
STYLES = {
    Fit.FITS: "bold green",
    Fit.DOES_NOT_FIT: "bold red",
    Fit.TOO_NEAR: "bold yellow",
    Fit.UNKNOWN: "bold yellow",
}
SHOWN_REMEDIES = 7
KILO = 1e3


def write_as_text(question: Question) -> None:
    """Print the page."""
    write_page(list(_page(question)))


def write_as_json(question: Question) -> None:
    """Print one JSON object; sizes in bytes of one device."""
    write_json(_answer(question))


def _page(question: Question) -> Iterator[RenderableType]:
    estimate = question.estimate()
    fit = estimate.fit(question.capacity)
    yield heading(f"{question.model.name} on {question.capacity.name}: {fit.value}", STYLES[fit])
    yield line(
        f"{_job(question)}; {_need(estimate)}; the device has {gibibytes(question.capacity.ceiling_bytes)} ({question.capacity.basis})"
    )
    for gap in question.gaps:
        yield line(gap)
    yield table(("memory", "about", "", "at most"), list(_rows(question, estimate)))
    yield line(_batch_line(question.largest_batch()))
    if fit is not Fit.FITS and isinstance(question.plan, TrainingPlan):
        yield from _remedy_lines(remedies(question.model, question.plan, question.capacity))
    for note in _notes(question, estimate):
        yield line(note)


def _job(question: Question) -> str:
    plan = question.plan
    shape = f"batch {plan.batch_count:,} × {plan.sequence_tokens:,} tokens"
    shared = f" on {plan.device_count:,} devices" if plan.device_count > 1 else ""
    if isinstance(plan, InferencePlan):
        return f"generation{shared}, {shape}, weights in {plan.weights_dtype}"
    what = "full fine-tuning" if plan.lora_rank is None else f"LoRA of rank {plan.lora_rank}"
    if plan.quantizes_base:
        what = f"QLoRA of rank {plan.lora_rank}"
    sharding = f" ({plan.sharding})" if plan.sharding != "none" else ""
    return f"{what}{shared}{sharding}, {shape}, {plan.optimizer.name}, {plan.precision.name} precision"


def _need(estimate: MemoryEstimate) -> str:
    if estimate.ceiling_bytes is None:
        return f"it needs at least {gibibytes(estimate.floor_bytes)}, and activations or cache that are unknown"
    return f"its peak is estimated between {gibibytes(estimate.floor_bytes)} and {gibibytes(estimate.ceiling_bytes)}"


def _rows(question: Question, estimate: MemoryEstimate) -> Iterator[tuple[str, str, str, str]]:
    shown = [item for item in estimate.items if item.counted_bytes != 0 or item.ceiling_bytes != 0]
    states = [item for item in shown if item.block in STATES]
    yield from map(_row, states)
    if isinstance(question.plan, TrainingPlan):
        yield _sum_row("= before activations", states)
    yield from (_row(item) for item in shown if item.block not in STATES)
    yield _sum_row("= the peak", [item for item in estimate.items if item.block != "overhead"], estimate)


def _row(item: MemoryItem) -> tuple[str, str, str, str]:
    return (item.name, *_both(item.counted_bytes), _at_most(item.ceiling_bytes))


def _sum_row(name: str, items: list[MemoryItem], estimate: MemoryEstimate | None = None) -> tuple[str, str, str, str]:
    counted = total([item.counted_bytes for item in items])
    ceiling = estimate.ceiling_bytes if estimate else total([item.ceiling_bytes for item in items])
    return (name, *_both(counted), _at_most(ceiling))


def _both(size: int | None) -> tuple[str, str]:
    if size is None:
        return ("unknown", "")
    return ("0", "") if size == 0 else (gigabytes(size), gibibytes(size))


def _at_most(size: int | None) -> str:
    return "unknown" if size is None else gibibytes(size)


def _batch_line(largest: LargestBatch) -> str:
    if largest.surely is None:
        return "The largest batch cannot be said: activations or cache are unknown."
    if not largest.at_best:
        return "No batch fits."
    if largest.surely == largest.at_best:
        return f"Largest batch that fits: {largest.surely:,}."
    surely = f"{largest.surely:,} surely fits" if largest.surely else "none surely fits"
    return f"Largest batch: {surely}; above {largest.at_best:,} none does."


def _remedy_lines(found: tuple[Remedy, ...]) -> Iterator[RenderableType]:
    yield heading("what would change it, one thing at a time")
    rows = [
        (
            remedy.title,
            remedy.fit.value,
            "unknown" if remedy.estimate.ceiling_bytes is None else gibibytes(remedy.estimate.ceiling_bytes),
            remedy.options,
        )
        for remedy in found[:SHOWN_REMEDIES]
    ]
    yield table(("change", "verdict", "at most", "options"), rows, left=2)


def _notes(question: Question, estimate: MemoryEstimate) -> Iterator[str]:
    shape, plan = question.model.shape, question.plan
    if shape and isinstance(plan, TrainingPlan):
        layer = _layer_activation_bytes(question)
        yield (
            f"Activations kept without checkpointing: about {gibibytes(layer[0])} a layer, "
            f"{gibibytes(layer[0] * shape.layer_count)} "
            f"over {shape.layer_count} layers (plain PyTorch: {gibibytes(layer[1])} a layer)."
        )
    if shape and isinstance(plan, InferencePlan):
        yield f"KV cache: {_kv_bytes_per_token(question) / KILO:.0f} KB a token in {plan.kv_dtype}."
    added = total([item.ceiling_bytes for item in estimate.items])
    if added is not None and estimate.ceiling_bytes is not None and added > estimate.ceiling_bytes:
        yield "The peak is less than its rows added: activations are gone when the optimizer's temporaries come."
    yield from estimate.notes
    yield UNMEASURED
    assumed = "; ".join(f"{item.name}: {item.basis}" for item in estimate.items if item.block == "overhead")
    yield f"Assumed, not counted: {assumed}."


def _layer_activation_bytes(question: Question) -> tuple[float, float]:
    shape, plan = question.model.shape, question.plan
    if shape is None or isinstance(plan, InferencePlan):
        return 0.0, 0.0
    kept = kept_tensors(
        shape,
        sequence_tokens=plan.sequence_tokens,
        element_bytes=plan.precision.activation_bytes,
        scores_are_materialized=plan.scores_are_materialized,
    )
    layers = shape.layer_count
    return counted_bytes(kept, plan.token_count) / layers, eager_bytes(kept, plan.token_count) / layers


def _kv_bytes_per_token(question: Question) -> float:
    shape, plan = question.model.shape, question.plan
    if shape is None or isinstance(plan, TrainingPlan):
        return 0.0
    return kv_elements_per_token(shape) * BYTES_PER_ELEMENT[plan.kv_dtype]


def _answer(question: Question) -> dict[str, Any]:
    estimate = question.estimate()
    largest, plan, model = question.largest_batch(), question.plan, question.model
    answer: dict[str, Any] = {
        "verdict": estimate.fit(question.capacity).value,
        "device": {
            "name": question.capacity.name,
            "capacity_bytes": question.capacity.ceiling_bytes,
            "usable_floor_bytes": question.capacity.floor_bytes,
            "basis": question.capacity.basis,
        },
        "model": {
            "name": model.name,
            "parameters": model.parameter_count,
            "active_parameters": model.active_parameter_count,
        },
        "job": _job(question),
        "blocks": {
            block: estimate.block_bytes(block) for block in dict.fromkeys(item.block for item in estimate.items if item.block != "overhead")
        },
        "items": [
            {
                "name": item.name,
                "block": item.block,
                "bytes": item.counted_bytes,
                "at_least_bytes": item.least_bytes,
                "at_most_bytes": item.ceiling_bytes,
                "basis": item.basis,
            }
            for item in estimate.items
        ],
        "peak": {
            "at_least_bytes": estimate.floor_bytes,
            "counted_bytes": estimate.counted_bytes,
            "at_most_bytes": estimate.ceiling_bytes,
        },
        "largest_batch": {"surely_fits": largest.surely, "at_best": largest.at_best},
        "error_measured": False,
        "gaps": list(question.gaps),
        "notes": list(_notes(question, estimate)),
    }
    if isinstance(plan, TrainingPlan):
        states = [item for item in estimate.items if item.block in STATES]
        answer["before_activations_bytes"] = total([item.counted_bytes for item in states])
        answer["trainable_parameters"] = trainable_count(model, plan)
        answer["activation_bytes_per_layer"] = _layer_activation_bytes(question)[0] if model.shape else None
        answer["remedies"] = [
            {
                "title": remedy.title,
                "options": remedy.options,
                "verdict": remedy.fit.value,
                "at_most_bytes": remedy.estimate.ceiling_bytes,
            }
            for remedy in remedies(model, plan, question.capacity)
        ]
    else:
        answer["kv_bytes_per_token"] = _kv_bytes_per_token(question) if model.shape else None
    return answer
