"""Find models, optimizers, caches and held tensors in the variables of callers; by the garbage collector as the last resort."""

import gc
import sys
from collections.abc import Iterable
from itertools import islice
from types import FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from advisor.client.frame_locals import callers, variables_of
from advisor.client.registry_caches import is_cache_class, is_cache_name, looks_like_cache

MOST_VALUES = 6000
"""Values looked at in one scan: about 1 ms."""

MOST_ITEMS = 256
"""Items looked at of one container: a list of losses is found by its first, a vocabulary is no training state."""

DEEPEST_LEVEL = 3
"""A variable, an attribute of it (`trainer.model`), an item in that (`accelerator._models[0]`)."""

LIBRARY_ROOTS = frozenset({"torch", "_pytest", "pytest", "pluggy", "IPython", "numpy"}) | sys.stdlib_module_names - {"__main__"}
"""Packages whose modules hold no variables of a training."""

OPAQUE_ROOTS = frozenset({"builtins", "numpy"}) | sys.stdlib_module_names - {"__main__"}
"""Packages whose objects are not looked into."""

LOOKED_INTO = ("torch.utils.data",)
"""Parts of torch whose objects are looked into: a data set may hold tensors."""

SKIP, TENSOR, MODULE, OPTIMIZER, SCALER, CACHE, MAPPING, SEQUENCE, OBJECT = range(9)

PLAIN_CLASSES = (int, float, complex, str, bytes, bytearray, bool, type(None), type, ModuleType, FunctionType, range)


SEQUENCES: tuple[Any, ...] = (list, tuple, set, frozenset)


class Held(NamedTuple):
    """A tensor that a variable holds, and the variable: "logits in train", "losses[...] in train"."""

    name: str
    tensor: Any


class Found(NamedTuple):
    """What a scan found; it keeps its objects alive: use it and let it go.

    Attributes:
        models: outermost modules with the names of their variables.
        optimizers: with those that they wrap.
        scalers: gradient scalers.
        caches: tensors of keys and values.
        held: other tensors.
    """

    models: list[tuple[str, Any]]
    optimizers: list[Any]
    scalers: list[Any]
    caches: list[Held]
    held: list[Held]


class _Scan:
    """One scan over the variables of frames."""

    def __init__(self, torch: ModuleType) -> None:
        self.found = Found([], [], [], [], [])
        self._torch = torch
        self._kinds: dict[type, int] = dict.fromkeys(PLAIN_CLASSES, SKIP)
        self._seen: set[int] = set()
        self._left = MOST_VALUES

    def variables(self, variables: Iterable[tuple[str, Any]], where: str) -> None:
        for name, value in variables:
            kind = self._kind(type(value))
            if kind:
                self._look(value, kind, name, where, level=0, is_cache=False)

    def _look(self, value: Any, kind: int, name: str, where: str, *, level: int, is_cache: bool) -> None:  # noqa: ANN401, PLR0913 - a visit
        if not kind or self._left <= 0 or id(value) in self._seen:
            return
        self._left -= 1
        self._seen.add(id(value))
        if kind == TENSOR:
            is_one = is_cache or is_cache_name(name)
            (self.found.caches if is_one else self.found.held).append(Held(f"{name} in {where}", value))
        elif kind == MODULE:
            self.found.models.append((name, value))
        elif kind == OPTIMIZER:
            self.found.optimizers.append(value)
        elif kind == SCALER:
            self.found.scalers.append(value)
        elif level < DEEPEST_LEVEL:
            self._look_into(value, kind, name, where, level=level, is_cache=is_cache)

    def _look_into(self, value: Any, kind: int, name: str, where: str, *, level: int, is_cache: bool) -> None:  # noqa: ANN401, PLR0913 - as above
        items = _items(value, kind, name)
        inside = is_cache or kind == CACHE or looks_like_cache(name, [item for _, item in items if self._kind(type(item)) == TENSOR])
        # A cache's layers lie deeper than a variable's items: cache.layers[3].keys.
        below = level if inside and not is_cache else level + 1
        for inner, item in items:
            item_kind = self._kind(type(item))
            if item_kind:
                self._look(item, item_kind, inner, where, level=below, is_cache=inside)

    def _kind(self, kind: type) -> int:
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = self._classify(kind)
        return known

    def _classify(self, kind: type) -> int:  # noqa: PLR0911 - a table
        torch = self._torch
        if issubclass(kind, torch.Tensor):
            return TENSOR
        if issubclass(kind, torch.nn.Module):
            return MODULE
        if issubclass(kind, torch.optim.Optimizer):
            return OPTIMIZER
        if issubclass(kind, type):
            return SKIP
        if is_cache_class(kind):
            return CACHE
        if kind.__name__ == "GradScaler":
            return SCALER
        if issubclass(kind, dict):
            return MAPPING
        if issubclass(kind, SEQUENCES):
            return SEQUENCE
        root = kind.__module__.partition(".")[0]
        if root in OPAQUE_ROOTS or (root == "torch" and not kind.__module__.startswith(LOOKED_INTO)):
            return SKIP
        return OBJECT


def _items(value: Any, kind: int, name: str) -> list[tuple[str, Any]]:  # noqa: ANN401 - any object
    """What a value holds, with names; read by the built-in classes' own methods, so that no code of a subclass runs."""
    try:
        if kind == MAPPING:
            return [(str(key) if type(key) in {str, int} else name, item) for key, item in islice(dict.items(value), MOST_ITEMS)]
        if kind == SEQUENCE:
            base = next(base for base in SEQUENCES if issubclass(type(value), base))
            return [(f"{name}[{index}]", item) for index, item in enumerate(islice(base.__iter__(value), MOST_ITEMS))]
        return list(islice(object.__getattribute__(value, "__dict__").items(), MOST_ITEMS))
    except (AttributeError, RuntimeError):
        return []  # it has no attributes, or another thread changes it just now


def scan_frames(frame: FrameType | None, torch: ModuleType) -> Found:
    """Look through the variables of a frame and its callers: functions' own, then those of their modules.

    Args:
        frame: the innermost of them.
        torch: the module.
    """
    scan = _Scan(torch)
    seen: set[int] = set()
    for caller in callers(frame):
        module = str(caller.f_globals.get("__name__", ""))
        if module.startswith("advisor.client."):
            continue
        root = module.partition(".")[0]
        scan.variables(variables_of(caller), caller.f_code.co_name)
        if id(caller.f_globals) not in seen and root not in LIBRARY_ROOTS:
            seen.add(id(caller.f_globals))
            scan.variables(list(caller.f_globals.items()), module)
    found = scan.found
    return found._replace(models=outermost(found.models))


def outermost(models: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The modules that no other of them contains, each once, in the order given."""
    inside: set[int] = set()
    opened: set[int] = set()
    stack = [model for _, model in models]
    while stack:
        module = stack.pop()
        if id(module) in opened:
            continue
        opened.add(id(module))
        children = [child for child in list((module.__dict__.get("_modules") or {}).values()) if child is not None]
        inside.update(id(child) for child in children)
        stack.extend(children)
    kept: dict[int, tuple[str, Any]] = {}
    for name, model in models:
        if id(model) not in inside:
            kept.setdefault(id(model), (name, model))
    return list(kept.values())


def models_by_gc(torch: ModuleType) -> tuple[list[tuple[str, Any]], list[Any]]:
    """All outermost modules and all optimizers of the process: 0.1 s and more, only after a failure."""
    models, optimizers = [], []
    module_class, optimizer_class = torch.nn.Module, torch.optim.Optimizer
    for value in gc.get_objects():
        kind = type(value)
        if issubclass(kind, module_class):
            models.append(("", value))
        elif issubclass(kind, optimizer_class):
            optimizers.append(value)
    return outermost(models), optimizers
