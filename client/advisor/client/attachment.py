"""`attach()`: one line in a training loop, and what it gives back."""

import atexit
import importlib.util
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from advisor.client.failures import ExceptHook, FailureRecorder
from advisor.client.frame_locals import callers
from advisor.client.gauges import GaugeReader
from advisor.client.hooks import Hooks
from advisor.client.identity import boot_id, rank_of, run_id_of, start_ticks
from advisor.client.late_torch import WhenLoaded
from advisor.client.launch import reap, start_sidecar
from advisor.client.layout import DETACHED, ENDED, PHASES, Event, Metric
from advisor.client.record_items import known_items
from advisor.client.ring import RingWriter
from advisor.client.run_facts import facts_at_attach
from advisor.client.spool import RING, RUN, make_rank_folder, spool_root, write_json
from advisor.client.timeline import Timeline

if TYPE_CHECKING:
    from advisor.client.registry import Registry

LOG = logging.getLogger("advisor")

FIRST_WALK_STEP = 10
"""The step behind which the memory's tensors are looked at for the first time: optimizer states are there then."""

WALK_PAUSE = 2000
"""Times as long as a look took is waited before the next one: it then costs a twentieth of a percent."""

LEAST_PAUSE_SECONDS = 10.0

LATE_STEPS = (1, 10)
"""Steps after which what was loaded since is looked at: models, `generate`, checkpoint writers."""


class Attachment:
    """What watches a training run; made by `attach()`.

    Nothing of it raises into the training (unless `strict`), waits, or takes more than some ten microseconds a step.

    Attributes:
        run_id: the run's name; empty where nothing is recorded.
        folder: where its evidence lies; None where nothing is recorded.
    """

    run_id = ""
    folder: Path | None = None

    def log(self, **metrics: float) -> None:
        """Keep figures of the present step (loss, accuracy, ...)."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what is done inside: "eval", "generation", "checkpoint", "logging"; other names count as other."""
        del name
        yield

    def step(self) -> None:
        """Say that a step ends here; needed only where no optimizer of torch ends it."""

    def detach(self) -> None:
        """Stop watching and put back every hook; the evidence stays."""

    def __enter__(self) -> "Attachment":  # noqa: PYI034 - typing.Self is 3.11's
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.detach()


PHASE_NAMES = {"eval": "evaluation", "validation": "evaluation", "test": "evaluation", "generate": "generation", "save": "checkpoint"}
"""Other words for phases."""


class LiveAttachment(Attachment):
    """An attachment that records."""

    def __init__(self, folder: Path, run_id: str, rank: int | None, facts: dict[str, Any], models: Sequence[Any] = ()) -> None:
        """Make the ring and write what is known at once.

        Raises:
            OSError: if the folder cannot be written.
        """
        self.run_id, self.folder = run_id, folder
        self._lock = threading.Lock()
        self._ring = RingWriter(folder / RING, rank=rank, boot_id=boot_id(), start_ticks=start_ticks(os.getpid()))
        self.timeline = Timeline(self._finished, self._ring.state, GaugeReader())
        self.hooks = Hooks(self.timeline, sys.modules)
        self.failures = FailureRecorder(folder)
        self._registry: Registry | None = None
        self._next_walk = 0
        self._told_models = [weakref.ref(model) for model in models]
        self._excepthook = ExceptHook(self._failed)
        self._waits_for_torch: WhenLoaded | None = None
        self._is_open = True
        write_json(folder, RUN, {"run_id": run_id, "rank": rank, "pid": os.getpid(), "attached_wall_nanoseconds": time.time_ns(), **facts})

    def start(self) -> None:
        """Install the hooks, now or when torch is loaded."""
        self._excepthook.install()
        atexit.register(self._ended)
        if "torch" in sys.modules:
            self.hooks.install()
        else:
            self._waits_for_torch = WhenLoaded("torch", self.hooks.install)
            self._waits_for_torch.install()

    def log(self, **metrics: float) -> None:
        """Write the figures to the ring; what is no number, or would have to be waited for, is left out."""
        now, step = time.monotonic_ns(), self.timeline.step_count
        for name, value in metrics.items():
            number = _number(value)
            if self._is_open and number is not None:
                with self._lock:
                    self._ring.metric(Metric(step, now, number, name))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        known = PHASE_NAMES.get(name, name)
        index = PHASES.index(known) if known in PHASES else 0
        self.timeline.enter(index)
        try:
            yield
        finally:
            self.timeline.leave(index)

    def step(self) -> None:
        """End a step here."""
        self.timeline.step()

    def detach(self) -> None:
        """Stop, once."""
        global _current  # noqa: PLW0603 - one process has one attachment
        if not self._is_open:
            return
        self._ended(DETACHED)
        reap()
        self.hooks.remove()
        self._excepthook.remove()
        if self._waits_for_torch is not None:
            self._waits_for_torch.remove()
        atexit.unregister(self._ended)
        self._is_open = False
        if _current is self:
            _current = None

    def forget(self) -> None:
        """In a forked child: this is the parent's run; write nothing to it."""
        self.hooks.remove()
        self._excepthook.remove()
        atexit.unregister(self._ended)
        self._is_open = False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._failed(error, trace)
        self.detach()

    def _finished(self, values: tuple[float, ...]) -> None:
        if not self._is_open:
            return
        with self._lock:
            self._ring.step(values)
        step, now = int(values[0]), int(values[1])
        if step in LATE_STEPS:
            self.hooks.install_late()
            reap()
        if step >= FIRST_WALK_STEP and now >= self._next_walk:
            self._walk("interval", sys._getframe(1))  # noqa: SLF001 - the loop's own variables stand further out

    def _failed(self, error: BaseException, trace: TracebackType | None) -> None:
        try:
            self.failures.record(error, trace, phase=self.timeline.phase, step=self.timeline.step_count)
            self._walk("failure", _innermost(trace))
            with self._lock:
                self._ring.event(Event(self.timeline.step_count, time.monotonic_ns(), "failure", f"{type(error).__name__}: {error}"))
        except Exception as fault:  # noqa: BLE001 - the user's own error is what must be seen
            LOG.debug("the failure could not be recorded: %s", fault)

    def _walk(self, moment: str, frame: FrameType | None) -> None:
        """Keep what the memory is made of; a walk takes microseconds a tensor, and none of them is read."""
        if self.folder is None or "torch" not in sys.modules:
            return
        if self._registry is None:
            from advisor.client.registry import Registry  # noqa: PLC0415 - it takes as long to load as all else together

            self._registry = Registry()
            for model in self._told_models:
                self._registry.add_model(model())
        for optimizer in list(self.hooks.optimizers):
            self._registry.add_optimizer(optimizer)
        walk = self._registry.walk(moment=moment, step=self.timeline.step_count, phase=self.timeline.phase, frame=frame)
        self._next_walk = time.monotonic_ns() + int(max(LEAST_PAUSE_SECONDS, WALK_PAUSE * walk.seconds) * 1e9)
        write_json(self.folder, f"registry-{moment}.json", walk.content())

    def _ended(self, flag: int = ENDED) -> None:
        self.timeline.close()
        self._ring.state[0] |= flag << 32


_current: LiveAttachment | None = None
_lock = threading.Lock()


def attach(  # noqa: PLR0913 - what the user may say; nothing is required
    model: Any = None,  # noqa: ANN401 - a module, or several
    optimizer: Any = None,  # noqa: ANN401 - an optimizer, or several
    *,
    run: str | None = None,
    config: Any = None,  # noqa: ANN401 - a mapping, a namespace, a dataclass
    data_version: str | None = None,
    seed: int | None = None,
    strict: bool = False,
) -> Attachment:
    """Watch this training run: one line, no argument needed.

    Args:
        model: where it should not be found by itself.
        optimizer: the same.
        run: the run's name; by default the launcher's, or a new one.
        config: the configuration, for the record.
        data_version: what names the data (a commit, a date, a hash), for the record.
        seed: the seed, for the record.
        strict: raise what goes wrong here instead of logging it.

    Returns:
        The attachment, the same for every call in a process; one that does nothing where torch is missing, ADVISOR_DISABLE is set, or
        the spool cannot be written: the log says so in one line.
    """
    global _current  # noqa: PLW0603 - one process has one attachment
    with _lock:
        if _current is not None:
            return _current
        try:
            reason = _why_not()
            if reason:
                LOG.warning("advisor: not attached, %s", reason)
                return Attachment()
            frame = sys._getframe(1)  # noqa: SLF001 - what the caller calls its model and settings
            _current = _made(model, optimizer, run=run, frame=frame, config=config, data_version=data_version, seed=seed)
        except Exception as fault:
            if strict:
                raise
            LOG.warning("advisor: not attached, %s: %s", type(fault).__name__, fault)
            return Attachment()
        return _current


def _why_not() -> str:
    if os.environ.get("ADVISOR_DISABLE", "").strip() not in {"", "0"}:
        return "ADVISOR_DISABLE is set"
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        return "torch is not installed here"
    return ""


def _made(
    model: Any,  # noqa: ANN401 - the same
    optimizer: Any,  # noqa: ANN401 - the same
    *,
    run: str | None,
    frame: FrameType,
    **told: Any,  # noqa: ANN401 - the same
) -> LiveAttachment:
    rank = rank_of(os.environ)
    run_id = run_id_of(os.environ, run)
    folder = make_rank_folder(spool_root(), run_id, rank)
    facts = facts_at_attach(model=model, optimizer=optimizer, frames=callers(frame), **told)
    attachment = LiveAttachment(folder, run_id, rank, {**facts, "items": known_items(facts, run_id=run_id)}, _several(model))
    attachment.start()
    attachment.hooks.optimizers.update(_several(optimizer))
    start_sidecar(folder)
    return attachment


def _several(value: Any) -> list[Any]:  # noqa: ANN401 - one or several
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _innermost(trace: TracebackType | None) -> FrameType | None:
    """The frame in which an exception was raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


def _number(value: Any) -> float | None:  # noqa: ANN401 - whatever the user logs
    """The value as a number; None where it is none, or a tensor on a GPU, whose reading would wait for it."""
    if getattr(value, "is_cuda", False):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _in_child() -> None:
    global _current  # noqa: PLW0603 - as above
    if _current is not None:
        _current.forget()
        _current = None


os.register_at_fork(after_in_child=_in_child)
