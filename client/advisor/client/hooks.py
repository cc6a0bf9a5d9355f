"""Tie a timeline to torch: global optimizer hooks, the backward call, the loader's `__next__`, and a few rare calls.

No module gets a hook (dynamo traces those), no background thread runs, and each replaced function is put back by `remove`. A hook
that fails is counted and the training goes on.
"""

import functools
import gc
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from advisor.client.batches import batch_of
from advisor.client.layout import PHASES
from advisor.client.timeline import Timeline

EVALUATION, GENERATION, CHECKPOINT, COLLECTIVE = (PHASES.index(name) for name in ("evaluation", "generation", "checkpoint", "collective"))

RARE_CALLS = (
    ("torch", "save", CHECKPOINT),
    ("torch.distributed.checkpoint", "save", CHECKPOINT),
    ("safetensors.torch", "save_file", CHECKPOINT),
    ("torch.distributed", "barrier", COLLECTIVE),
    ("transformers.generation.utils", "GenerationMixin.generate", GENERATION),
)
"""Calls that are a phase of their own, where their module is loaded. The compiler knows other collectives by identity: they stay."""


class Hooks:
    """The hooks of one attachment."""

    def __init__(self, timeline: Timeline, modules: dict[str, Any]) -> None:
        """Nothing is installed yet.

        Args:
            timeline: what the hooks drive.
            modules: `sys.modules`.
        """
        self._timeline, self._modules = timeline, modules
        self._undo: list[Callable[[], None]] = []
        self._thread: int | None = None
        self._has_seen_backward = False
        self._hooked: set[str] = set()
        self._gc_began = 0
        self._known: set[int] = set()
        self.optimizers: WeakSet[Any] = WeakSet()
        self.fault_count = 0
        self.last_fault = ""

    def install(self) -> None:
        """Hook what is loaded; what of torch is missing is left out."""
        torch = self._modules["torch"]
        self._grad_enabled = torch.is_grad_enabled
        optimizer = self._modules.get("torch.optim.optimizer")  # the package deletes its attribute of this name
        for name, hook in (("pre", self._optimizer_begins), ("post", self._optimizer_ends)):
            register = getattr(optimizer, f"register_optimizer_step_{name}_hook", None)
            if register is not None:
                self._undo.append(register(hook).remove)
        if hasattr(torch.autograd, "_engine_run_backward"):
            self._replace(torch.autograd, "_engine_run_backward", self._around_backward)
        loader = getattr(self._modules.get("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
        if loader is not None:
            self._replace(loader, "__next__", self._around_next)
        self._replace(torch.nn.Module, "train", self._around_train)
        self.install_late()
        gc.callbacks.append(self._collected)
        self._undo.append(functools.partial(gc.callbacks.remove, self._collected))

    def install_late(self) -> None:
        """Hook the rare calls of modules that were loaded since."""
        for module, path, phase in RARE_CALLS:
            owner = self._modules.get(module)
            if owner is None or f"{module}.{path}" in self._hooked:
                continue
            *outer, name = path.split(".")
            for part in outer:
                owner = getattr(owner, part, None)
            if getattr(owner, name, None) is not None:
                self._hooked.add(f"{module}.{path}")
                self._replace(owner, name, functools.partial(self._around_phase, phase=phase))

    def remove(self) -> None:
        """Put everything back; what somebody else replaced since stays theirs and calls through ours, which then does nothing."""
        while self._undo:
            self._guarded(self._undo.pop())
        self._thread = -1

    def _replace(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:  # noqa: ANN401 - a module or a class
        original = getattr(owner, name)
        replacement = functools.wraps(original)(around(original))
        setattr(owner, name, replacement)

        def put_back() -> None:
            if getattr(owner, name) is replacement:
                setattr(owner, name, original)

        self._undo.append(put_back)

    def _guarded(self, call: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401 - of any call
        try:
            call(*arguments)
        except Exception as fault:  # noqa: BLE001 - the training must not notice
            self.fault_count += 1
            self.last_fault = f"{type(fault).__name__}: {fault}"

    def _is_ours(self) -> bool:
        """Whether this is the thread that trains: the first that asked for a batch, or ran backward."""
        thread = threading.get_ident()
        if self._thread is None:
            self._thread = thread
        return thread == self._thread

    def _optimizer_begins(self, *_: Any) -> None:  # noqa: ANN401 - torch's signature
        if self._is_ours():
            self._guarded(self._timeline.optimizer_begin)

    def _optimizer_ends(self, optimizer: Any, *_: Any) -> None:  # noqa: ANN401 - as above
        identity = id(optimizer)
        if self._is_ours():
            self._guarded(self._timeline.optimizer_end, identity)
        else:
            self._guarded(self._timeline.fused)
        if identity not in self._known:
            self._known.add(identity)
            self._guarded(self.optimizers.add, optimizer)

    def _around_backward(self, original: Any) -> Any:  # noqa: ANN401 - as above
        def _engine_run_backward(outputs: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
            if not self._has_seen_backward and self._thread != -1:
                self._has_seen_backward, self._thread = True, threading.get_ident()
            if not self._is_ours() or (outputs and type(outputs[0]).__name__ == "FakeTensor"):
                return original(outputs, *arguments, **options)
            self._guarded(self._timeline.backward_begin)
            try:
                return original(outputs, *arguments, **options)
            finally:
                self._guarded(self._timeline.backward_end)

        return _engine_run_backward

    def _around_next(self, original: Any) -> Any:  # noqa: ANN401 - as above
        def __next__(iterator: Any) -> Any:  # noqa: ANN401, N807 - the method's own name
            if not self._is_ours():
                return original(iterator)
            self._guarded(self._timeline.batch_begin, self._grad_enabled())
            try:
                data = original(iterator)
            except BaseException:
                self._guarded(self._timeline.batch_end, None, self._grad_enabled())
                raise
            self._guarded(self._batch_ends, data, iterator)
            return data

        return __next__

    def _batch_ends(self, data: Any, iterator: Any) -> None:  # noqa: ANN401 - as above
        batch = batch_of(data, getattr(iterator, "_num_workers", 0))
        self._timeline.batch_end(batch, self._grad_enabled())

    def _around_train(self, original: Any) -> Any:  # noqa: ANN401 - as above
        is_inside = False

        def train(module: Any, mode: bool = True) -> Any:  # noqa: ANN401 - torch's signature
            nonlocal is_inside
            if is_inside or not self._is_ours():
                return original(module, mode)
            is_inside = True
            try:
                return original(module, mode)
            finally:
                is_inside = False
                self._guarded(self._timeline.mode, bool(mode))

        return train

    def _around_phase(self, original: Any, *, phase: int) -> Any:  # noqa: ANN401 - as above
        def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
            if not self._is_ours():
                return original(*arguments, **options)
            self._guarded(self._timeline.enter, phase)
            try:
                return original(*arguments, **options)
            finally:
                self._guarded(self._timeline.leave, phase)

        return call

    def _collected(self, moment: str, _: dict[str, int]) -> None:
        if moment == "start":
            self._gc_began = time.monotonic_ns()
        elif self._gc_began and threading.get_ident() == self._thread:
            self._timeline.collected(time.monotonic_ns() - self._gc_began)
