"""The registry: which live memory is weights, gradients, optimizer states, caches, inputs, buffers of communication.

It remembers models, optimizers and batches by weak references, and walks over them when asked: nothing is done in between. A walk reads
sizes and addresses of storages; it runs no operator, waits for no device and keeps nothing alive.
"""

import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from types import FrameType, ModuleType
from typing import Any

from advisor.client.registry_distributed import bucket_bytes, walk_fsdp
from advisor.client.registry_modules import Module, Parameters, modules_of, walk_gradients, walk_modules
from advisor.client.registry_optimizers import walk_optimizer_parameters, walk_optimizer_states, with_inner
from advisor.client.registry_roots import Found, models_by_gc, outermost, scan_frames
from advisor.client.registry_storages import Storages
from advisor.client.registry_walk import REST_ROLES, Walk, named, totals, without_overlap

MOST_BATCH_TENSORS = 64
"""Tensors of batches remembered: those of the last few; older ones that live on are found as held by a variable."""

MOST_FAULTS = 16

Unaddressed = dict[tuple[str, str], list[int]]
"""By device and role: sizes of blocks that are known without their addresses."""

NOTHING = Found([], [], [], [], [])


class Registry:
    """The roots of one training. No method raises."""

    def __init__(self, modules: Mapping[str, ModuleType] | None = None) -> None:
        """Empty.

        Args:
            modules: `sys.modules`, or a stand-in.
        """
        self._loaded = sys.modules if modules is None else modules
        self._models: dict[int, tuple[str, weakref.ref[Any]]] = {}
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._scalers: dict[int, weakref.ref[Any]] = {}
        self._batches: deque[weakref.ref[Any]] = deque(maxlen=MOST_BATCH_TENSORS)
        self._has_asked_gc = False

    def add_model(self, model: Any, name: str = "") -> None:  # noqa: ANN401 - a module
        """Know a model; its name stands before its parameters' where several models are known."""
        reference = _reference(model)
        if reference is not None:
            self._models[id(model)] = name, reference

    def add_optimizer(self, optimizer: Any) -> None:  # noqa: ANN401 - an optimizer
        """Know an optimizer."""
        known = self._optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            reference = _reference(optimizer)
            if reference is not None:
                self._optimizers[id(optimizer)] = reference

    def add_batch(self, tensors: Iterable[Any]) -> None:
        """Know the tensors of a batch that was just loaded."""
        for tensor in tensors:
            reference = _reference(tensor)
            if reference is not None:
                self._batches.append(reference)

    def find(self, frame: FrameType | None) -> Found:
        """Know the models and optimizers among the variables of a frame and its callers: 0.3 to 2 ms.

        Returns:
            What was found; let it go soon, it keeps its objects alive.
        """
        torch = self._torch()
        if torch is None or frame is None:
            return NOTHING
        try:
            found = scan_frames(frame, torch)
        except Exception:  # noqa: BLE001 - the variables are a stranger's
            return NOTHING
        self._know(found.models, found.optimizers, found.scalers)
        return found

    def find_by_gc(self) -> None:
        """Know every model and optimizer in the process, once, where an optimizer's parameters are in no known model: 0.1 s and more."""
        torch = self._torch()
        if torch is None or self._has_asked_gc or not self.lacks_models():
            return
        self._has_asked_gc = True
        try:
            models, optimizers = models_by_gc(torch)
        except Exception:  # noqa: BLE001 - objects are strangers'
            return
        self._know(models, optimizers, [])

    def lacks_models(self) -> bool:
        """Whether no model is known, or a known optimizer has parameters that none of them holds."""
        try:
            modules = modules_of(self._live_models())
            known = {id(parameter) for module, _ in modules for parameter in list(module._parameters.values())}  # noqa: SLF001 - as torch
            return not modules or any(
                id(parameter) not in known
                for optimizer in _live(self._optimizers)
                for group in list(optimizer.param_groups)
                for parameter in list(group["params"])
            )
        except Exception:  # noqa: BLE001 - as above
            return True

    def walk(  # noqa: PLR0913 - what is known of the moment
        self,
        *,
        moment: str = "interval",
        step: int = 0,
        phase: str = "other",
        frame: FrameType | None = None,
        allocated: Mapping[str, int] | None = None,
        with_addresses: bool = False,
    ) -> Walk:
        """Say what is alive now, by role: 3 to 5 µs a storage (53 parameters with Adam: 1.1 ms), half as much again with addresses.

        Args:
            moment: why: "interval", "peak", "failure", ...
            step: of the timeline.
            phase: of the timeline: it tells what the rest is.
            frame: the innermost caller whose variables to look through for caches and held tensors; None: they are not looked for.
            allocated: bytes that each device's allocator holds, where known.
            with_addresses: give address ranges as well, to be joined with an allocator's snapshot.
        """
        began = time.perf_counter()
        faults: list[str] = []
        torch = self._torch()
        if torch is None:
            return Walk(moment, step, phase, 0.0, (), (), 0, {}, {}, (), ("torch is not loaded",))
        try:
            storages = Storages(torch, with_addresses=with_addresses)
            with ExitStack() as stack:
                _leave_user_code_out(stack, torch)
                trainable, unaddressed = self._visit(storages, self.find(frame), phase, faults, torch)
                live, ranges = (list(storages.found.values()), {}) if not with_addresses else without_overlap(storages.found.values())
                devices = totals(live, unaddressed, allocated or {}, phase)
                largest = named(live)
            notes = _notes(storages, unaddressed)
        except Exception as fault:  # noqa: BLE001 - the training must not notice
            return Walk(moment, step, phase, time.perf_counter() - began, (), (), 0, {}, {}, (), (_said(fault),))
        seconds = time.perf_counter() - began
        return Walk(moment, step, phase, seconds, devices, largest, trainable, ranges, unaddressed, notes, tuple(faults[:MOST_FAULTS]))

    def addresses(self, frame: FrameType | None = None) -> dict[str, Any]:
        """Address ranges to roles, see Walk.addresses."""
        return self.walk(frame=frame, with_addresses=True).addresses()

    def _visit(self, storages: Storages, found: Found, phase: str, faults: list[str], torch: ModuleType) -> tuple[int, Unaddressed]:
        """Tag what the roots hold, the stronger claim first: what FSDP gathered, weights, caches, buffers, gradients, states, inputs."""
        models = self._live_models()
        optimizers: list[Any] = []
        modules: list[Module] = []
        parameters: Parameters = {}
        unaddressed: Unaddressed = {}

        def attempt(part: str, call: Callable[..., Any], *arguments: Any) -> None:  # noqa: ANN401 - of any call
            try:
                call(*arguments)
            except Exception as fault:  # noqa: BLE001 - one strange model must not cost the rest
                faults.append(f"{part}: {_said(fault)}")

        attempt("modules", lambda: modules.extend(modules_of(models)))
        attempt("optimizers", lambda: optimizers.extend(with_inner(_live(self._optimizers))))
        attempt("FSDP", walk_fsdp, modules, parameters, storages)
        attempt("caches", _visit_caches, storages, found, phase)
        attempt("weights", walk_modules, modules, parameters, storages, torch)
        attempt("parameters of optimizers", walk_optimizer_parameters, optimizers, parameters, storages)
        attempt("gradients", walk_gradients, parameters, storages)
        attempt("optimizer states", walk_optimizer_states, optimizers, parameters, storages)
        attempt("scalers", self._visit_scalers, storages)
        attempt("inputs", self._visit_inputs, storages, found)
        attempt("held tensors", _visit_held, storages, found)
        attempt("DDP", lambda: unaddressed.update(bucket_bytes(modules, storages)))
        trainable: list[int] = []
        attempt("trainable parameters", lambda: trainable.append(_trainable_bytes(parameters)))
        return sum(trainable), unaddressed

    def _visit_scalers(self, storages: Storages) -> None:
        for scaler in _live(self._scalers):
            for name, value in list(vars(scaler).items()):
                for tensor in storages.tensors_in(value):
                    storages.add("optimizer_states", tensor, (name, "the gradient scaler", "of"))

    def _visit_inputs(self, storages: Storages, found: Found) -> None:
        """Batches as loaded, and their copies on a device: held tensors of the same shape and type without a graph."""
        shapes = set()
        for reference in list(self._batches):
            tensor = reference()
            if tensor is not None:
                shapes.add((tuple(tensor.shape), tensor.dtype))
                storages.add("inputs", tensor, "a batch")
        for name, tensor in found.held:
            if (tuple(tensor.shape), tensor.dtype) in shapes and tensor.is_leaf:
                storages.add("inputs", tensor, name)

    def _live_models(self) -> list[tuple[str, Any]]:
        """The known models that still live, outermost only, with their names where there are several."""
        alive = []
        for key, (name, reference) in list(self._models.items()):
            model = reference()
            if model is None:
                self._models.pop(key, None)
            else:
                alive.append((name, model))
        if len(alive) > 1:
            alive = outermost(alive)
        return alive if len(alive) > 1 else [("", model) for _, model in alive]

    def _know(self, models: list[tuple[str, Any]], optimizers: list[Any], scalers: list[Any]) -> None:
        for name, model in models:
            if id(model) not in self._models:
                self.add_model(model, name)
        for optimizer in optimizers:
            self.add_optimizer(optimizer)
        for scaler in scalers:
            reference = _reference(scaler)
            if reference is not None:
                self._scalers[id(scaler)] = reference

    def _torch(self) -> ModuleType | None:
        """Torch, where it is loaded whole."""
        torch = self._loaded.get("torch")
        return torch if hasattr(torch, "Tensor") and hasattr(torch, "nn") and hasattr(torch, "optim") else None


def _visit_caches(storages: Storages, found: Found, phase: str) -> None:
    """Keys and values that a training step computes with a graph are saved for backward all the same: no cache holds them back."""
    for name, tensor in found.caches:
        storages.add("outputs" if phase in REST_ROLES and not tensor.is_leaf else "kv_cache", tensor, name)


def _visit_held(storages: Storages, found: Found) -> None:
    for name, tensor in found.held:
        storages.add("held" if tensor.is_leaf else "outputs", tensor, name)


def _trainable_bytes(parameters: Parameters) -> int:
    return sum(one.nbytes for one, _ in parameters.values() if one.requires_grad)


def _notes(storages: Storages, unaddressed: Unaddressed) -> tuple[str, ...]:
    notes = []
    if unaddressed:
        notes.append("DDP's buckets are counted by the sizes that it logs: their addresses are not known")
    if storages.unreadable_count:
        notes.append(f"{storages.unreadable_count} tensors hide their memory and are not counted")
    return tuple(notes)


def _leave_user_code_out(stack: ExitStack, torch: ModuleType) -> None:
    """Reading `.grad` or `.device` of a tensor must not run the functions of a subclass or a mode."""
    for name in ("DisableTorchFunction", "_DisableTorchDispatch"):
        guard = getattr(torch._C, name, None)  # noqa: SLF001 - guarded
        if guard is not None:
            stack.enter_context(guard())


def _live(references: dict[int, "weakref.ref[Any]"]) -> list[Any]:
    alive = []
    for key, reference in list(references.items()):
        value = reference()
        if value is None:
            references.pop(key, None)
        else:
            alive.append(value)
    return alive


def _reference(value: Any) -> "weakref.ref[Any] | None":  # noqa: ANN401 - any object
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _said(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"[:300]
