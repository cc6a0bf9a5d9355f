"""Actions that several memory rules advise, with what arithmetic predicts for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Prediction, Verification
from advisor.rules.blocks import fits_after, held_bytes

if TYPE_CHECKING:
    from advisor.model.memory import AllocatorRecord, MemoryLedger

CHECKPOINTED_RATIO = 1.0 / 16.5
"""Share of a dense transformer's activations that stays when only every layer's input is kept:
1.0 of 16.5 GiB for Llama-3-8B at 4,096 tokens in bf16."""


def saving(ledger: MemoryLedger | None, record: AllocatorRecord | None, saved_bytes: float) -> tuple[Prediction, Verification]:
    """The peak once `saved_bytes` are gone, by subtraction; nothing is predicted without a ledger."""
    if ledger is None or saved_bytes <= 0:
        return Prediction(), Verification.NONE
    saved = int(saved_bytes)
    predicted = Prediction(peak_bytes=held_bytes(ledger) - saved, fits=fits_after(ledger, record, saved))
    return predicted, Verification.ARITHMETIC


def checkpointing(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> Action:
    """Keep only every layer's input for backward and compute the rest again."""
    activations = ledger.entry("activations") if ledger is not None else 0
    predicted, verified_by = saving(ledger, record, activations * (1 - CHECKPOINTED_RATIO))
    return Action(
        title="Checkpoint the layers' activations",
        change='model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})\n'
        "# or around each block: torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
        cost="every layer's forward runs twice: about a third more compute a step",
        predicted=predicted,
        verified_by=verified_by,
    )


def halved_micro_batch(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> Action:
    """Half the samples at a time, twice as often: activations are linear in the micro-batch."""
    activations = ledger.entry("activations") if ledger is not None else 0
    predicted, verified_by = saving(ledger, record, activations / 2)
    return Action(
        title="Halve the micro-batch and accumulate twice as many",
        change="per_device_train_batch_size=N/2, gradient_accumulation_steps=2*G  # the same batch for the optimizer",
        cost="kernels are smaller, so steps may be a little slower",
        predicted=predicted,
        verified_by=verified_by,
    )


def shorter_sequence() -> Action:
    """Fewer tokens at a time."""
    return Action(
        title="Shorten the sequence",
        change="truncate or pack to a smaller max_seq_length; activations shrink in proportion",
        cost="long samples are cut or split",
    )


def eight_bit_optimizer(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> Action:
    """Two moments of one byte each instead of four."""
    states = ledger.entry("optimizer_states") if ledger is not None else 0
    predicted, verified_by = saving(ledger, record, states * EIGHT_BIT_SAVING_RATIO)
    return Action(
        title="Keep the optimizer's moments in 8 bits",
        change='optim="adamw_bnb_8bit"  # or bitsandbytes.optim.AdamW8bit, PagedAdamW8bit (pages to the host)',
        cost="a few percent of optimizer time; the loss curve is close, not the same",
        predicted=predicted,
        verified_by=verified_by,
    )


EIGHT_BIT_SAVING_RATIO = 0.5
"""Least share of AdamW's states that 8-bit moments save: 6 of 12 bytes with an fp32 master copy
(6 of 8 without one)."""


def sharded_states() -> Action:
    """Each rank keeps a part of the states."""
    return Action(
        title="Shard the states over the ranks",
        change='torch.distributed.fsdp.fully_shard(model)  # or DeepSpeed "zero_optimization": {"stage": 3}, '
        "torch.distributed.optim.ZeroRedundancyOptimizer",
        cost="needs several devices; gathers parameters every step",
    )


def lora() -> Action:
    """Train adapters instead of all parameters."""
    return Action(
        title="Train adapters instead of all parameters",
        change="peft.get_peft_model(model, LoraConfig(r=16, target_modules='all-linear'))  # QLoRA: load_in_4bit=True",
        cost="fewer trainable parameters; gradients and states shrink with them, activations do not",
    )


def offloaded_states() -> Action:
    """States in host memory."""
    return Action(
        title="Keep the optimizer's states in host memory",
        change='DeepSpeed: "offload_optimizer": {"device": "cpu"}; FSDP: CPUOffloadPolicy()',
        cost="12 bytes of host memory a parameter, and steps that wait for the copies",
    )
