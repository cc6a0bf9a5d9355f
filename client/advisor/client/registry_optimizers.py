"""States of optimizers, and parameters that only an optimizer knows."""

from collections.abc import Iterator, Mapping
from typing import Any

from advisor.client.registry_modules import Parameters, role_of_attribute
from advisor.client.registry_names import Name
from advisor.client.registry_storages import BARE_KINDS, Storages

OWN_ATTRIBUTES = frozenset({"state", "param_groups", "defaults"})

INNER_NAMES = ("optimizer", "optim", "_optimizer", "base_optimizer", "inner_optimizer")
"""Where wrappers keep the optimizer that they drive: accelerate, Lightning, ZeroRedundancyOptimizer, SAM."""


def with_inner(optimizers: list[Any]) -> list[Any]:
    """The optimizers and those that they wrap, each once."""
    found: list[Any] = []
    waiting = list(optimizers)
    while waiting:
        optimizer = waiting.pop(0)
        if any(optimizer is known for known in found) or not hasattr(optimizer, "param_groups"):
            continue
        found.append(optimizer)
        attributes = getattr(optimizer, "__dict__", {})
        waiting.extend(attributes[name] for name in INNER_NAMES if attributes.get(name) is not None)
    return found


def walk_optimizer_parameters(optimizers: list[Any], parameters: Parameters, storages: Storages) -> None:
    """Tag the parameters of optimizers that no known model holds, and add them to `parameters`."""
    for optimizer in optimizers:
        for index, group in enumerate(list(optimizer.param_groups)):
            for position, parameter in enumerate(list(group["params"])):
                if id(parameter) not in parameters and storages.is_tensor(parameter):
                    name = f"parameter {position} of group {index}"
                    parameters[id(parameter)] = parameter, name
                    storages.add("weights", parameter, name)


def walk_optimizer_states(optimizers: list[Any], parameters: Parameters, storages: Storages) -> None:
    """Tag what optimizers keep: `state`, tensors among the groups' options, and tensors in their own attributes."""
    for optimizer in optimizers:
        storages.add_all("optimizer_states", _states(optimizer, parameters, storages))
        for group in list(optimizer.param_groups):
            for option, value in list(group.items()):
                if option != "params":
                    storages.add_all("optimizer_states", [(tensor, option) for tensor in storages.tensors_in(value)])
        for attribute, value in list(getattr(optimizer, "__dict__", {}).items()):
            if attribute not in OWN_ATTRIBUTES:
                role = role_of_attribute(attribute, "optimizer_states")
                storages.add_all(role, [(tensor, attribute) for tensor in storages.tensors_in(value)])


def _states(optimizer: Any, parameters: Parameters, storages: Storages) -> Iterator[tuple[Any, Name]]:  # noqa: ANN401 - an optimizer
    plain = storages.plain
    for key, state in list(optimizer.state.items()):
        known = parameters.get(id(key))
        name = known[1] if known is not None else "a parameter" if storages.is_tensor(key) else str(key)
        # Some keep a tensor where others keep a mapping.
        parts = state.items() if type(state) is dict or isinstance(state, Mapping) else [("state", state)]
        for part, value in list(parts):
            if type(value) in plain:
                yield value, (part, name, "of")
            elif type(value) not in BARE_KINDS:
                for tensor in storages.tensors_in(value):
                    yield tensor, (part, name, "of")
