"""How somebody means to train: batch, precision, optimizer, adapters, checkpointing, sharding."""

from advisor.analysis.optimizers import OPTIMIZERS, Optimizer
from advisor.model.dataclass import dataclass, field, replace
from advisor.model.errors import WrongUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Bytes for each parameter, and of an activation.

    Attributes:
        name: as the command line calls it.
        weight_bytes / gradient_bytes / master_bytes: for a trainable parameter.
        frozen_bytes: for a frozen one.
        activation_bytes: of a number kept for backward.
        cast_bytes: copies of the weights that autocast keeps through forward and backward.
        explanation: in words.
    """

    name: str
    weight_bytes: float
    gradient_bytes: float
    master_bytes: float
    frozen_bytes: float
    activation_bytes: float
    cast_bytes: float
    explanation: str


PRECISIONS = {
    precision.name: precision
    for precision in (
        Precision(
            name="mixed",
            weight_bytes=2,
            gradient_bytes=2,
            master_bytes=4,
            frozen_bytes=2,
            activation_bytes=2,
            cast_bytes=0,
            explanation=("bf16 weights and gradients, fp32 master copy and states (DeepSpeed, Megatron, FSDP)"),
        ),
        Precision(
            name="autocast",
            weight_bytes=4,
            gradient_bytes=4,
            master_bytes=0,
            frozen_bytes=4,
            activation_bytes=2,
            cast_bytes=2,
            explanation=("fp32 weights, torch.autocast casts them for each product and keeps the copies"),
        ),
        Precision(
            name="bf16",
            weight_bytes=2,
            gradient_bytes=2,
            master_bytes=0,
            frozen_bytes=2,
            activation_bytes=2,
            cast_bytes=0,
            explanation=("everything in bf16, the optimizer's states too; small updates are lost to rounding"),
        ),
        Precision(
            name="fp32",
            weight_bytes=4,
            gradient_bytes=4,
            master_bytes=0,
            frozen_bytes=4,
            activation_bytes=4,
            cast_bytes=0,
            explanation="everything in fp32",
        ),
    )
}
"""By name. "mixed" is Micikevicius et al., arXiv:1710.03740: with AdamW 16 bytes for each
parameter."""

SHARDINGS = ("none", "ddp", "zero1", "zero2", "zero3", "fsdp")
"""ZeRO (arXiv:1910.02054) divides optimizer states (1), gradients too (2), weights too (3 and FSDP)
by the devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """One training step on one device.

    Attributes:
        batch_count: sequences of a micro-batch on one device.
        sequence_tokens: tokens of a sequence.
        optimizer: the optimizer.
        precision: bytes for each number.
        lora_rank: rank of LoRA adapters on all linear layers; None trains everything.
        quantizes_base: the frozen base in 4 bits (QLoRA, arXiv:2305.14314); needs `lora_rank`.
        checkpoints_layers: keep only the layers' inputs and compute each layer again in backward.
        scores_are_materialized: attention without a fused kernel.
        accumulates: gradients stay over several micro-batches, so they are there at the start of
            backward.
        device_count: devices that share the job.
        sharding: how they share it.
    """

    batch_count: int
    sequence_tokens: int
    optimizer: Optimizer = field(default_factory=lambda: OPTIMIZERS["adamw"])
    precision: Precision = field(default_factory=lambda: PRECISIONS["mixed"])
    lora_rank: int | None = None
    quantizes_base: bool = False
    checkpoints_layers: bool = False
    scores_are_materialized: bool = False
    accumulates: bool = False
    device_count: int = 1
    sharding: str = "none"

    def __post_init__(self) -> None:
        if self.quantizes_base and self.lora_rank is None:
            raise WrongUsage("QLoRA trains adapters: it needs a rank", "add --lora 16")
        if self.device_count > 1 and self.sharding == "none":
            raise WrongUsage(
                f"{self.device_count} devices without a way to share the work",
                f"add --sharding, one of {', '.join(SHARDINGS[1:])}",
            )
        if self.device_count == 1 and self.sharding not in ("none", "ddp"):
            raise WrongUsage(f"{self.sharding} divides nothing on one device", "add --gpus N")

    def with_batch(self, batch_count: int) -> "TrainingPlan":
        """The same for another micro-batch."""
        return replace(self, batch_count=batch_count)

    @property
    def token_count(self) -> int:
        """Tokens of a micro-batch."""
        return self.batch_count * self.sequence_tokens

    @property
    def weight_division(self) -> int:
        """By how much weights are divided."""
        return self.device_count if self.sharding in ("zero3", "fsdp") else 1

    @property
    def gradient_division(self) -> int:
        """By how much gradients are divided."""
        return self.device_count if self.sharding in ("zero2", "zero3", "fsdp") else 1

    @property
    def state_division(self) -> int:
        """By how much master weights and optimizer states are divided."""
        return self.device_count if self.sharding.startswith(("zero", "fsdp")) else 1
