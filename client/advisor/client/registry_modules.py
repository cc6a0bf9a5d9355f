"""Weights, buffers, caches and gradients of models: what their modules hold."""

import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from advisor.client.registry_caches import BARE_NAMES, is_cache_class, is_cache_name, looks_like_cache
from advisor.client.registry_names import Name, is_wrapper
from advisor.client.registry_storages import BARE_KINDS, Storages

GRADIENT_NAME = re.compile(r"grad")
"""Attributes of parameters that hold gradients: `main_grad` (Megatron), `_saved_grad_shard` (FSDP)."""

GATHERED_NAME = re.compile(r"full|unsharded|gather|_mp_shard|bucket|flat_buffer")
"""Attributes of parameters that hold what was gathered from other ranks: `_full_param_padded` (FSDP)."""

CONTAINERS = frozenset({list, tuple, dict})

Module = tuple[Any, Name]
"""A module and its name."""

Parameters = dict[int, tuple[Any, Name]]
"""Parameters with their names, by id."""


def modules_of(models: Iterable[tuple[str, Any]]) -> list[Module]:
    """All modules in the models, each once, with their names.

    Args:
        models: each with the name that its parameters' names begin with; empty where there is one model only.
    """
    found: list[Module] = []
    seen: set[int] = set()
    stack: list[Module] = [(model, name) for name, model in reversed(list(models))]
    while stack:
        entry = stack.pop()
        module, above = entry
        if id(module) in seen:
            continue
        seen.add(id(module))
        found.append(entry)
        held = module.__dict__.get("_modules")
        if held:
            owner = type(module).__name__
            for name, child in reversed(list(held.items())):
                if child is not None:
                    stack.append((child, above if is_wrapper(name, owner) else (above, name)))
    return found


def walk_modules(modules: list[Module], parameters: Parameters, storages: Storages, torch: ModuleType) -> None:
    """Tag parameters, which are added to `parameters`, then buffers and tensors kept as plain attributes."""
    storages.add_all("weights", _parameters(modules, parameters))
    usual = torch.nn.Module().__dict__.keys()
    cache_classes: dict[type, bool] = {}
    for module, above in modules:
        kind = type(module)
        is_cache = cache_classes.get(kind)
        if is_cache is None:
            is_cache = cache_classes[kind] = is_cache_class(kind)
        attributes = module.__dict__
        held = attributes.get("_buffers")
        if held:
            for name, buffer in list(held.items()):
                if buffer is not None:
                    storages.add("kv_cache" if is_cache or is_cache_name(name) else "buffers", buffer, (above, name))
        own = attributes.keys() - usual
        if own:
            _walk_attributes(attributes, own, above, storages, is_cache=is_cache)


def walk_gradients(parameters: Parameters, storages: Storages) -> None:
    """Tag `.grad` and what else a parameter carries in its attributes."""
    storages.add_all(
        "gradients",
        [(gradient, ("gradient", name, "of")) for parameter, name in parameters.values() if (gradient := parameter.grad) is not None],
    )
    for parameter, name in parameters.values():
        attributes = parameter.__dict__
        if attributes:
            for attribute, value in list(attributes.items()):
                for tensor in storages.tensors_in(value):
                    storages.add(role_of_attribute(attribute), tensor, (attribute, name, "of"))


def role_of_attribute(name: str, otherwise: str = "weights") -> str:
    """What an attribute of a parameter or of an optimizer holds, by its name."""
    if GRADIENT_NAME.search(name):
        return "gradients"
    return "communication_buffers" if GATHERED_NAME.search(name) else otherwise


def _parameters(modules: list[Module], parameters: Parameters) -> Iterator[tuple[Any, Name]]:
    """The parameters in modules, remembered on the way."""
    for module, above in modules:
        held = module.__dict__.get("_parameters")
        if held:
            for name, parameter in list(held.items()):
                if parameter is not None:
                    named = parameters[id(parameter)] = parameter, (above, name)
                    yield named


def _walk_attributes(attributes: dict[str, Any], names: Iterable[str], above: Name, storages: Storages, *, is_cache: bool) -> None:
    """Tensors that a module keeps without registering them: caches, masks, tables of positions."""
    for name in names:
        value: Any = attributes.get(name)
        kind = type(value)
        if kind in BARE_KINDS:
            continue
        if kind in CONTAINERS:
            if value and (is_cache or is_cache_name(name) or name in BARE_NAMES):
                tensors = list(storages.tensors_in(value))
                if is_cache or looks_like_cache(name, tensors):
                    storages.add_all("kv_cache", [(tensor, (above, name)) for tensor in tensors])
        # What was computed from weights in this step (weight_norm) is an activation.
        elif storages.is_tensor(value) and value.is_leaf:
            storages.add("kv_cache" if is_cache or is_cache_name(name) else "buffers", value, (above, name))
