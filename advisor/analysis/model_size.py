"""A model as far as it is known: its whole shape, or only how many parameters it has."""

from advisor.analysis.transformer_parameters import (
    active_parameter_count,
    linear_parameter_count,
    parameter_count,
)
from advisor.model.dataclass import dataclass
from advisor.model.transformer import TransformerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """A model.

    Attributes:
        name: as the user calls it.
        parameter_count: all parameters, each once.
        active_parameter_count: those that take part in one token's forward pass.
        linear_parameter_count: those in the layers' matrix products; None without a shape.
        shape: None where only the number of parameters was given: then activations and KV cache are
            unknown.
    """

    name: str
    parameter_count: int
    active_parameter_count: int
    linear_parameter_count: int | None = None
    shape: TransformerShape | None = None


def size_of(shape: TransformerShape) -> ModelSize:
    """A model whose shape is known."""
    return ModelSize(
        name=shape.name,
        parameter_count=parameter_count(shape),
        active_parameter_count=active_parameter_count(shape),
        linear_parameter_count=linear_parameter_count(shape),
        shape=shape,
    )
