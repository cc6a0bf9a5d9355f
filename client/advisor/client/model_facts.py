"""What is trained, and how: classes and sizes of the models, the optimizers' settings, the schedules'."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

from advisor.client.object_fields import class_path, dict_reader, instance_dict
from advisor.client.plain_values import PlainValues

MOST_MODULES = 20_000
"""About 20 ms; a model of 100 layers has a thousand."""
MOST_GROUPS = 32
MOST_MODELS = 8

SCALARS = (bool, int, float, str, tuple, list, type(None))

PLAIN_PARAMETERS = frozenset({"torch.nn.parameter.Parameter", "torch.Tensor"})

WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module")
"""Names under which DDP, torch.compile and FSDP keep the model they wrap."""


def facts_of_models(models: Iterable[Any], torch: ModuleType | None, values: PlainValues) -> list[dict[str, Any]]:
    """Class, sizes and configuration of each model that lies inside no other of them.

    Returns:
        For each: `class`; `inside`, classes of what wrappers wrap; `parameter_count`, `trainable_parameter_count`, both of elements, and
        `parameter_count_by_dtype`; `special_parameters`, counts of tensors of other classes (quantized, sharded), whose elements are not
        the model's own parameters one by one; `module_count`; `is_training`; `checkpointing`, whether a module says that it recomputes;
        `config`, the model's own; `is_cut`.
    """
    walks = [_Walk(model) for _, model in zip(range(MOST_MODELS), models, strict=False)]
    inside = {module for walk in walks for module in walk.inner_modules}
    with _without_user_code(torch):
        return [_of_model(walk, values) for walk in walks if id(walk.model) not in inside]


class _Walk:
    """A module and all inside it, each once, by their dictionaries: neither `modules()` nor anything that a class may override.

    Attributes:
        model: the module.
        inner_modules: identities of the modules inside.
        tensors: the parameters, each once.
        is_checkpointing: whether a module says so.
    """

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - a module
        self.model = model
        self.is_checkpointing = False
        readers: dict[type, Callable[[Any], dict[str, Any]]] = {}
        modules = {id(model): model}
        pending = [model]
        tensors: dict[int, Any] = {}
        while pending and len(modules) <= MOST_MODULES:
            module = pending.pop()
            kind = type(module)
            reader = readers.get(kind)
            if reader is None:
                reader = readers[kind] = dict_reader(kind)
            own = reader(module)
            if "gradient_checkpointing" in own and own["gradient_checkpointing"] is True:
                self.is_checkpointing = True
            parameters, inside = own.get("_parameters"), own.get("_modules")
            # Copied at once: another thread may add one meanwhile.
            for each in tuple(parameters.values()) if parameters else ():
                if each is not None:
                    tensors[id(each)] = each
            for each in tuple(inside.values()) if inside else ():
                if each is not None and id(each) not in modules:
                    modules[id(each)] = each
                    pending.append(each)
        self.is_cut = bool(pending)
        self.tensors = list(tensors.values())
        self.inner_modules = modules.keys() - {id(model)}


def _of_model(walk: _Walk, values: PlainValues) -> dict[str, Any]:
    counts: dict[tuple[Any, bool], int] = {}
    kinds: dict[type, int] = {}
    for parameter in walk.tensors:
        kind = type(parameter)
        kinds[kind] = kinds.get(kind, 0) + 1
        try:
            key = parameter.dtype, parameter.requires_grad
            counts[key] = counts.get(key, 0) + parameter.numel()
        except (RuntimeError, ValueError, TypeError):  # a lazy parameter has no shape yet
            continue
    special = {path: count for kind, count in kinds.items() if (path := class_path(kind)) not in PLAIN_PARAMETERS}
    by_dtype: dict[str, int] = {}
    for (dtype, _), count in counts.items():
        name = str(dtype).removeprefix("torch.")
        by_dtype[name] = by_dtype.get(name, 0) + count
    wrapped = _wrapped(walk.model)
    config = instance_dict(wrapped[-1] if wrapped else walk.model).get("config")
    return {
        "class": class_path(type(walk.model)),
        "inside": [class_path(type(inner)) for inner in wrapped],
        "parameter_count": sum(counts.values()),
        "trainable_parameter_count": sum(count for (_, is_trainable), count in counts.items() if is_trainable),
        "parameter_count_by_dtype": by_dtype,
        "special_parameters": special,
        "module_count": len(walk.inner_modules) + 1,
        "is_training": instance_dict(walk.model).get("training"),
        "checkpointing": walk.is_checkpointing,
        "config": values.read(config, "config") if config is not None else None,
        "is_cut": walk.is_cut,
    }


def _wrapped(model: Any) -> list[Any]:  # noqa: ANN401 - modules
    found: list[Any] = []
    while len(found) < MOST_MODELS:
        own = instance_dict(found[-1] if found else model)
        inside = own.get("_modules") or {}
        inner = next((inside.get(name) for name in WRAPPERS if len(inside) == 1 and inside.get(name) is not None), None)
        if inner is None:
            break
        found.append(inner)
    return found


def _without_user_code(torch: ModuleType | None) -> AbstractContextManager[Any]:
    """Tensors of subclasses answer by themselves, not by the `__torch_function__` of their class."""
    guard = getattr(getattr(torch, "_C", None), "DisableTorchFunctionSubclass", None)
    return guard() if guard is not None else nullcontext()


def facts_of_optimizers(optimizers: Iterable[Any], values: PlainValues) -> list[dict[str, Any]]:
    """Class and groups of each optimizer: of each group its settings and how many tensors it updates."""
    return [_of_optimizer(optimizer, values) for _, optimizer in zip(range(MOST_MODELS), optimizers, strict=False)]


def _of_optimizer(optimizer: Any, values: PlainValues) -> dict[str, Any]:  # noqa: ANN401 - an optimizer
    inner = optimizer
    for _ in range(MOST_MODELS):
        wrapped = instance_dict(inner).get("optimizer")
        if instance_dict(inner).get("param_groups") is not None or wrapped is None:
            break
        inner = wrapped  # of Accelerate, DeepSpeed and their kind
    groups: Any = instance_dict(inner).get("param_groups")
    groups = groups if issubclass(type(groups), list) else []
    return {
        "class": class_path(type(inner)),
        "around": class_path(type(optimizer)) if inner is not optimizer else None,
        "groups": [_of_group(group, values) for group in groups[:MOST_GROUPS] if issubclass(type(group), dict)],
        "group_count": len(groups),
    }


def _of_group(group: dict[str, Any], values: PlainValues) -> dict[str, Any]:
    found = {
        str(name): _setting(value, str(name), values) for name, value in list(dict.items(group)) if name not in ("params", "param_names")
    }
    tensors: Any = group.get("params")
    found["tensor_count"] = len(tensors) if issubclass(type(tensors), list) else None
    return found


def _setting(value: Any, name: str, values: PlainValues) -> Any:  # noqa: ANN401 - any setting
    """The value; of a learning rate kept in a tensor its number, unless that would have to be waited for."""
    if type(value) not in SCALARS and class_path(type(value)) == "torch.Tensor" and value.device.type == "cpu" and value.numel() == 1:
        return values.read(value.item(), name)
    return values.read(value, name)


def facts_of_schedules(schedules: Iterable[Any], values: PlainValues) -> list[dict[str, Any]]:
    """Class and plain attributes of each learning-rate schedule."""
    found = []
    for _, schedule in zip(range(MOST_MODELS), schedules, strict=False):
        own = {name: value for name, value in list(instance_dict(schedule).items()) if not name.startswith("_") and _is_plain(value)}
        found.append({"class": class_path(type(schedule)), "settings": values.read(own, "schedule")})
    return found


def _is_plain(value: Any) -> bool:  # noqa: ANN401 - any attribute
    return (
        value is None or type(value) in (bool, int, float, str) or (type(value) in (list, tuple) and all(_is_plain(each) for each in value))
    )
