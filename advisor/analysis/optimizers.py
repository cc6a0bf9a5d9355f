"""What optimizers keep for each trainable parameter."""

from advisor.analysis.transformer_parameters import weights
from advisor.model.dataclass import dataclass
from advisor.model.errors import WrongUsage
from advisor.model.transformer import TransformerShape

FLOAT32_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """One optimizer.

    Attributes:
        name: as the command line calls it.
        state_count: numbers kept for a parameter.
        state_bytes: bytes of each where the parameter (or its master copy) is fp32.
        follows_parameter: the states take the parameter's own dtype (torch.optim does; 8-bit
            optimizers do not).
        is_paged: the states can move to host memory under pressure (bitsandbytes' paged
            optimizers).
        is_factored: keeps row and column sums instead of a number for each parameter.
        step_temporaries: numbers for each parameter that an unfused step holds besides (foreach
            implementations).
    """

    name: str
    state_count: int
    state_bytes: float = FLOAT32_BYTES
    follows_parameter: bool = True
    is_paged: bool = False
    is_factored: bool = False
    step_temporaries: int = 0


OPTIMIZERS = {
    optimizer.name: optimizer
    for optimizer in (
        Optimizer(name="adamw", state_count=2, step_temporaries=1),
        Optimizer(name="adam", state_count=2, step_temporaries=1),
        Optimizer(name="sgd", state_count=0),
        Optimizer(name="sgd-momentum", state_count=1),
        Optimizer(name="rmsprop", state_count=1, step_temporaries=1),
        Optimizer(name="adagrad", state_count=1, step_temporaries=1),
        Optimizer(name="lion", state_count=1),
        Optimizer(
            name="adafactor",
            state_count=0,
            follows_parameter=False,
            is_factored=True,
            step_temporaries=1,
        ),
        Optimizer(name="adamw-8bit", state_count=2, state_bytes=1.0, follows_parameter=False),
        Optimizer(name="lion-8bit", state_count=1, state_bytes=1.0, follows_parameter=False),
        Optimizer(name="paged-adamw", state_count=2, follows_parameter=False, is_paged=True),
        Optimizer(
            name="paged-adamw-8bit",
            state_count=2,
            state_bytes=1.0,
            follows_parameter=False,
            is_paged=True,
        ),
    )
}
"""By name. AdamW 8 bytes a parameter, SGD 0, momentum 4, 8-bit AdamW 2 (Dettmers et al.,
arXiv:2110.02861)."""

SPELLINGS = {
    "adamw8bit": "adamw-8bit",
    "adamw-bnb-8bit": "adamw-8bit",
    "adam-8bit": "adamw-8bit",
    "momentum": "sgd-momentum",
    "adamw-torch": "adamw",
    "adamw-torch-fused": "adamw",
    "paged-adamw-32bit": "paged-adamw",
}


def optimizer_named(text: str) -> Optimizer:
    """The optimizer that a user named.

    Raises:
        WrongUsage: no such optimizer.
    """
    name = text.strip().lower().replace("_", "-")
    name = SPELLINGS.get(name, name)
    if name not in OPTIMIZERS:
        raise WrongUsage(f"unknown optimizer {text[:40]!r}", f"known: {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[name]


def factored_state_bytes(shape: TransformerShape) -> int:
    """Adafactor's states (Shazeer and Stern, arXiv:1804.04235).

    They are a sum for each row and column of a matrix, in fp32.
    """
    numbers = sum(
        (weight.row_count + weight.column_count if weight.column_count > 1 else weight.row_count) * weight.copy_count
        for weight in weights(shape)
        if not weight.is_tied
    )
    return int(numbers * FLOAT32_BYTES)
