"""What a training loop is doing, from the moments at which its loader, backward pass and optimizer begin and end.

Nothing is inferred from gaps: the wait for data is the loader's own `__next__`, backward and optimizer are measured at their calls.
Forward is what lies between a batch and its backward pass; where no loader gives batches it begins where the step before ended.
"""

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from advisor.client.layout import PHASES

OTHER, DATA_WAIT, FORWARD, BACKWARD, OPTIMIZER, EVALUATION = range(6)

GRAD_IN_EVALUATION = 4
WITHOUT_OPTIMIZER = 64
WITHOUT_LOADER = 128
UNFINISHED = 256

MOST_FOREIGN = 8
"""Steps of other optimizers without one of ours, after which ours is taken for replaced; generative pairs step at most a few to one."""


class Batch(NamedTuple):
    """What a loader gave: counts are 0 where they cannot be told."""

    sample_count: int = 0
    token_count: int = 0
    shape_digest: int = 0
    worker_count: int = 0


class Gauges(NamedTuple):
    """What is read beside the phases, most of it a few times a second; see layout.Step."""

    flags: int = 0
    cpu_seconds: float = 0.0
    rss_bytes: int = 0
    allocated_peak_bytes: int = 0
    reserved_peak_bytes: int = 0
    allocated_bytes: int = 0
    retry_count: int = 0
    refused_count: int = 0
    recompilation_count: int = 0
    graph_break_count: int = 0
    context_switch_count: int = 0


class Words(Protocol):
    """A few words to store to: a view of the ring, or a list."""

    def __setitem__(self, place: int, value: int, /) -> None: ...


class Timeline:
    """The phases of one thread's training loop. Calls come from that thread alone and wait for nothing.

    Six calls a step come here, so that they are written for speed: fields in slots, arguments by place, state stored in place.
    """

    __slots__ = (
        "_backward_count",
        "_base",
        "_batch_count",
        "_clock",
        "_evaluates",
        "_flags",
        "_foreign_count",
        "_gauges",
        "_gc_count",
        "_gc_nanoseconds",
        "_had_backward",
        "_has_optimizer",
        "_is_after_optimizer",
        "_is_fused",
        "_is_mode_misleading",
        "_last_optimizer",
        "_on_step",
        "_sample_count",
        "_shape_digest",
        "_since",
        "_stack",
        "_state",
        "_step_begin",
        "_steps_itself",
        "_taken",
        "_token_count",
        "_unsettled",
        "_worker_count",
        "step_count",
    )

    def __init__(
        self,
        on_step: Callable[[tuple[float, ...]], None],
        state: Words,
        gauges: Callable[[int], tuple[float, ...]] = lambda _: Gauges(),
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Start at the current moment.

        Args:
            on_step: takes each finished step, the fields of layout.STEP in order.
            state: three words to keep phase, steps finished, and nanoseconds of the last change in.
            gauges: takes the moment and reads what is read once a step, in the order of Gauges.
            clock: nanoseconds of the monotonic clock.
        """
        self._on_step, self._state, self._gauges, self._clock = on_step, state, gauges, clock
        self.step_count = 0
        self._stack: list[int] = []
        self._base = OTHER
        self._evaluates = self._is_mode_misleading = False
        self._last_optimizer = self._foreign_count = 0
        self._is_after_optimizer = self._is_fused = self._steps_itself = False
        self._has_optimizer = self._had_backward = False
        self._since = self._step_begin = clock()
        self._begin_step()

    @property
    def phase(self) -> str:
        """The present phase, one of PHASES."""
        return PHASES[self._stack[-1] if self._stack else self._base]

    def _begin_step(self) -> None:
        self._taken = [0] * len(PHASES)
        self._unsettled = self._gc_nanoseconds = self._gc_count = 0
        self._backward_count = self._batch_count = self._sample_count = self._token_count = self._shape_digest = 0
        self._worker_count = self._flags = 0

    def _advance(self) -> int:
        """Give the time since the last change to the phase that it was spent in."""
        now = self._clock()
        spent, self._since = now - self._since, now
        if self._stack:
            self._taken[self._stack[-1]] += spent
        else:
            self._taken[self._base] += spent
            self._unsettled += spent
        return now

    def enter(self, phase: int) -> None:
        """A phase begins, inside the present one."""
        now = self._advance()
        self._stack.append(phase)
        state = self._state
        state[0] = phase
        state[2] = now

    def leave(self, phase: int) -> None:
        """A phase ends; phases inside it that were left by an exception end with it."""
        now = self._advance()
        stack = self._stack
        while stack and stack.pop() != phase:
            pass
        state = self._state
        state[0] = stack[-1] if stack else self._base
        state[2] = now

    def batch_begin(self, is_grad_enabled: bool = True) -> None:
        """The loop asks its loader for a batch."""
        if self._batch_count and not (self._had_backward or self._has_optimizer or self._steps_itself):
            self._finish(self._advance(), WITHOUT_OPTIMIZER)
        if self._stack:
            self._advance()
            self._stack.clear()  # an exception left a phase open: no phase asks for a batch
        self.enter(EVALUATION if self._evaluates or not is_grad_enabled else DATA_WAIT)

    def batch_end(self, batch: Batch | None, is_grad_enabled: bool = True) -> None:
        """The loader gave a batch, or None at its end."""
        is_evaluation = self._evaluates or not is_grad_enabled
        self._base = OTHER if batch is None else EVALUATION if is_evaluation else FORWARD
        self.leave(EVALUATION if is_evaluation else DATA_WAIT)
        self._is_after_optimizer = False
        if batch is None:
            return
        self._unsettled = 0
        if self._evaluates and is_grad_enabled:
            self._flags |= GRAD_IN_EVALUATION
        samples, tokens, digest, self._worker_count = batch
        self._batch_count += 1
        self._sample_count += samples
        self._token_count += tokens
        self._shape_digest = (self._shape_digest * 31 + digest) & 0xFFFFFFFF

    def backward_begin(self) -> None:
        """A backward pass begins."""
        self.enter(BACKWARD)
        if len(self._stack) == 1 and self._base != FORWARD:
            # Between two calls of ours lay a forward pass that no batch announced: what was "other" was that.
            self._taken[self._base] -= self._unsettled
            self._taken[FORWARD] += self._unsettled
        if self._evaluates:
            # What is trained was called evaluation: a part of the model was switched, and its mode tells nothing of the loop.
            self._evaluates, self._is_mode_misleading = False, True
        self._unsettled = 0
        self._is_after_optimizer = False
        self._had_backward = True

    def backward_end(self) -> None:
        """A backward pass has ended."""
        self._base = OTHER
        self.leave(BACKWARD)
        if self._stack and BACKWARD in self._stack:
            return
        self._backward_count += 1
        self._unsettled = 0
        if self._is_fused:
            self._is_fused = False
            self._finish(self._since)

    def optimizer_begin(self) -> None:
        """An optimizer's step begins."""
        self.enter(OPTIMIZER)

    def optimizer_end(self, optimizer: int) -> None:
        """An optimizer's step has ended: of several that step in turn, the last one ends the step.

        Args:
            optimizer: its identity.
        """
        self.leave(OPTIMIZER)
        self._has_optimizer = True
        self._unsettled = 0
        if self._stack and BACKWARD in self._stack:
            self._is_fused = True  # one optimizer a parameter, inside backward: the step ends with it
            return
        if optimizer == self._last_optimizer:
            self._foreign_count = 0
        else:
            self._foreign_count += 1
            if self._is_after_optimizer or not self._last_optimizer or self._foreign_count > MOST_FOREIGN:
                self._last_optimizer = optimizer
        self._is_after_optimizer = True
        if optimizer == self._last_optimizer and not self._steps_itself:
            self._finish(self._since)

    def fused(self) -> None:
        """An optimizer stepped on one of autograd's own threads: the step ends with the backward pass."""
        self._has_optimizer = self._is_fused = True

    def step(self) -> None:
        """The loop says itself where a step ends; from the first time on only that ends one."""
        self._steps_itself = True
        self._finish(self._advance())

    def close(self) -> None:
        """The training ends: what was spent since the last step is a step unfinished."""
        self._finish(self._advance(), UNFINISHED)

    def mode(self, is_training: bool) -> None:
        """The model was switched to training or to evaluation."""
        if self._evaluates == is_training and not self._is_mode_misleading:
            self._advance()
            self._evaluates = not is_training
            self._base, self._unsettled = (OTHER if is_training else EVALUATION), 0

    def collected(self, nanoseconds: int) -> None:
        """A garbage collection took that long."""
        self._gc_nanoseconds += nanoseconds
        self._gc_count += 1

    def flag(self, bits: int) -> None:
        """Something was switched on in this step; see layout.STEP_FLAGS."""
        self._flags |= bits

    def _finish(self, now: int, flags: int = 0) -> None:
        gauge_flags, *gauges = self._gauges(now)
        self._state[1] = self.step_count = self.step_count + 1
        flags |= self._flags | int(gauge_flags) | (0 if self._batch_count else WITHOUT_LOADER)
        counts = self._gc_count, self._backward_count, self._batch_count, self._sample_count, self._token_count, self._shape_digest
        ends = self.step_count, now, now - self._step_begin
        self._on_step((*ends, *self._taken, self._gc_nanoseconds, *counts, self._worker_count, flags, *gauges))
        self._step_begin = now
        self._begin_step()
