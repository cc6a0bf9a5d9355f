"""Say what each live block is, by the stack that allocated it, by its lifetime and by its size.

The order is: tags that the snapshot itself carries; stacks that decide; lifetimes against the phases of training; then, for memory that is
older than the record, its fate within it and the sizes of the parameters. What none of this explains stays unattributed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from advisor.analysis.allocation_timeline import Timeline
from advisor.analysis.held_memory import Candidate, share_out
from advisor.analysis.memory_tags import tagged_blocks
from advisor.analysis.parameter_sizes import (
    backward_sizes,
    gradient_sizes,
    outlives_its_run,
    step_sizes,
)
from advisor.analysis.stack_frames import Role
from advisor.analysis.stack_reading import StackReading
from advisor.analysis.training_phases import BACKWARD, FORWARD, NEVER, OPTIMIZER, Phases, phases
from advisor.model.snapshot import NOT_RECORDED, AllocatorSnapshot, DeviceSnapshot

KEPT_AT_ONCE = 4
"""Live blocks of one site from which on it keeps them on purpose: a forward pass without autograd holds one or two."""

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

ENGINES = ("/vllm/", "/sglang/", "/tensorrt_llm/")
"""Serving engines preallocate their cache: what is older than the record can be weights or cache there."""


@dataclass(slots=True, kw_only=True)
class Attribution:
    """What the live blocks of a moment are.

    Attributes:
        rows: the live uses.
        block: the ledger's entry of each.
        why: the reason of each, in a few words.
        notes: what the reader must know.
        parameter_sizes: trainable parameters by size, as far as the record shows them.
    """

    rows: Rows
    block: list[str]
    why: list[str]
    notes: list[str] = field(default_factory=list)
    parameter_sizes: Counter[int] = field(default_factory=Counter)

    def decide(self, where: Iterable[int], block: str, why: str) -> None:
        """Attribute live uses, by their position in `rows`, unless something surer already did."""
        for at in where:
            if not self.block[at]:
                self.block[at], self.why[at] = block, why

    def undecided(self) -> Flags:
        """Which live uses nothing has explained yet."""
        return np.array([not block for block in self.block], np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Record:
    """A device's record with what its stacks say; `role` has one entry a use."""

    snapshot: AllocatorSnapshot
    device: DeviceSnapshot
    timeline: Timeline
    readings: tuple[StackReading, ...]
    phases: Phases
    role: NDArray[np.int8]

    def flag(self, name: str) -> Flags:
        """A yes-or-no of the readings, one a use; no for uses without a stack."""
        values = np.array(
            [bool(getattr(reading, name)) for reading in self.readings] + [False], np.bool_
        )
        return values[self.timeline.uses.stack]


def record_of(
    snapshot: AllocatorSnapshot,
    device: DeviceSnapshot,
    timeline: Timeline,
    readings: tuple[StackReading, ...],
) -> Record:
    """Join a device's timeline with the readings of its stacks."""
    role_of = np.array([int(reading.role) for reading in readings] + [int(Role.UNKNOWN)], np.int8)
    return Record(
        snapshot=snapshot,
        device=device,
        timeline=timeline,
        readings=readings,
        phases=phases(device.events, readings),
        role=role_of[timeline.uses.stack],
    )


def attribute(record: Record, moment: int) -> Attribution:
    """Attribute every block that is live at a moment."""
    uses = record.timeline.uses
    rows = record.timeline.live(moment)
    found = Attribution(rows=rows, block=[""] * len(rows), why=[""] * len(rows))
    for at, block in tagged_blocks(record.snapshot, record.device, uses, rows, moment).items():
        found.decide([at], block, "the snapshot itself says so")
    _by_stack(record, found)
    is_gradient = _gradients(record)
    _backward(record, found, is_gradient)
    is_state = _states(record, found)
    _forward(record, found)
    found.parameter_sizes = _parameters(record, is_gradient)
    _held(record, found, is_state, makes_gradients=bool(is_gradient.any()))
    left = np.flatnonzero(found.undecided())
    for at in left.tolist():
        reason = (
            "allocated before the record, or without a stack"
            if uses.stack[rows[at]] == NOT_RECORDED
            else "its stack does not tell"
        )
        found.decide([at], "unattributed", reason)
    return found


def _by_stack(record: Record, found: Attribution) -> None:
    decided = (
        (Role.LOADING, "weights", "made while a module was built, moved or loaded"),
        (Role.CACHE, "kv_cache", "made by a cache of keys and values"),
        (
            Role.COMMUNICATION,
            "communication_buffers",
            "made by collectives, buckets or gathered parameters",
        ),
        (Role.INPUT, "inputs", "made by a data loader or a transfer of inputs"),
        (Role.SAVING, "temporaries", "a copy made while a state_dict was saved"),
    )
    role = record.role[found.rows]
    for wanted, block, why in decided:
        found.decide(np.flatnonzero(role == wanted).tolist(), block, why)


def _gradients(record: Record) -> Flags:
    """Which uses are gradients: made by autograd, and alive when the run of backward is over."""
    uses = record.timeline.uses
    made = (record.role == Role.BACKWARD) & (uses.start >= 0)
    outlives = outlives_its_run(uses, record.phases, (FORWARD, OPTIMIZER))
    # Where the record ends within backward, a gradient is what autograd stored, or what has the size of something that stays.
    lasting = Counter(
        uses.requested_bytes[
            (uses.start < _first_row(record)) & (uses.end > uses.event_count)
        ].tolist()
    )
    has_size = np.isin(uses.requested_bytes, list(lasting))
    return made & ((outlives == 1) | ((outlives == -1) & (has_size | record.flag("accumulates"))))


def _first_row(record: Record) -> int:
    return int(record.phases.rows[0]) if len(record.phases.rows) else record.timeline.event_count


def _backward(record: Record, found: Attribution, is_gradient: Flags) -> None:
    role = record.role[found.rows]
    gradient = is_gradient[found.rows]
    found.decide(
        np.flatnonzero(gradient).tolist(), "gradients", "made by autograd and alive after backward"
    )
    found.decide(
        np.flatnonzero(role == Role.RECOMPUTE).tolist(), "activations", "recomputed inside backward"
    )
    found.decide(
        np.flatnonzero((role == Role.BACKWARD) & ~gradient).tolist(),
        "temporaries",
        "made by autograd and freed in backward",
    )


def _states(record: Record, found: Attribution) -> Flags:
    """Attribute what the optimizer's temporaries are; return which uses are made in its step and kept."""
    uses = record.timeline.uses
    made = (record.role == Role.OPTIMIZER) & (uses.start >= 0)
    outlives = outlives_its_run(uses, record.phases, (FORWARD, BACKWARD))
    creates = record.flag("creates_state")
    kept = made & ((outlives == 1) | creates)
    open_ = made & (outlives == -1) & ~creates
    # Where the record ends within (or right after) the step: a library makes states in known functions; the user's own step
    # keeps what a line of it holds many times over.
    at_once = Counter(uses.stack[open_ & (uses.end > uses.event_count)].tolist())
    many = np.isin(uses.stack, [stack for stack, count in at_once.items() if count >= KEPT_AT_ONCE])
    kept |= open_ & many & ~record.flag("in_library")
    live = found.rows
    dropped = made & ~kept
    found.decide(
        np.flatnonzero(dropped[live]).tolist(),
        "temporaries",
        "made in the optimizer's step and freed in it",
    )
    return kept


def _forward(record: Record, found: Attribution) -> None:
    uses, steps, rows = record.timeline.uses, record.phases, found.rows
    role, start, end = record.role[rows], uses.start[rows], uses.end[rows]
    is_recorded = (start >= 0) & (start < uses.event_count)
    after_forward = (role == Role.PYTHON) & (steps.at(start) == FORWARD) & is_recorded
    made = (role == Role.FORWARD) | after_forward
    backward = steps.next_of((BACKWARD,), start)
    ahead = made & (backward < NEVER)
    found.decide(
        np.flatnonzero(ahead & (end > backward)).tolist(),
        "activations",
        "made in forward and alive in backward",
    )
    found.decide(
        np.flatnonzero(ahead & (end <= backward)).tolist(),
        "temporaries",
        "made in forward and freed before backward",
    )
    if not steps.has(BACKWARD):
        _inference(record, found, made)
        return
    # The last forward pass of the record: what its sites did before.
    survives = _survivors(record)
    left = made & (backward == NEVER)
    keeps = np.array([survives.get(stack, True) for stack in uses.stack[rows].tolist()], np.bool_)
    found.decide(
        np.flatnonzero(left & keeps).tolist(),
        "activations",
        "made in forward; its site's blocks live into backward",
    )
    found.decide(
        np.flatnonzero(left & ~keeps).tolist(),
        "temporaries",
        "made in forward; its site's blocks are freed before backward",
    )


def _survivors(record: Record) -> dict[int, bool]:
    """Whether most earlier blocks of each forward site lived into backward."""
    uses = record.timeline.uses
    rows = np.flatnonzero((uses.start >= 0) & np.isin(record.role, (Role.FORWARD, Role.PYTHON)))
    backward = record.phases.next_of((BACKWARD,), uses.start[rows])
    rows, backward = rows[backward < NEVER], backward[backward < NEVER]
    lived: dict[int, list[int]] = {}
    for stack, yes in zip(
        uses.stack[rows].tolist(), (uses.end[rows] > backward).tolist(), strict=True
    ):
        counts = lived.setdefault(stack, [0, 0])
        counts[yes] += 1
    return {stack: counts[1] >= counts[0] for stack, counts in lived.items()}


def _inference(record: Record, found: Attribution, made: Flags) -> None:
    """Forward passes of a record without backward: caches that grow, graphs that are kept, and the current layer."""
    uses, rows = record.timeline.uses, found.rows
    at_once = Counter(uses.stack[rows[made]].tolist())
    growing = {
        stack for stack, count in at_once.items() if count > 1 and _grows(record, stack, count)
    }
    stacks = uses.stack[rows]
    is_growing = made & np.isin(stacks, list(growing))
    found.decide(
        np.flatnonzero(is_growing).tolist(),
        "kv_cache",
        "replaced by a larger one at every call, as concatenated keys and values are",
    )
    is_kept = made & np.isin(
        stacks, [stack for stack, count in at_once.items() if count >= KEPT_AT_ONCE]
    )
    found.decide(
        np.flatnonzero(is_kept).tolist(),
        "activations",
        "made in forward; its site holds many blocks at once, as autograd does",
    )
    found.decide(
        np.flatnonzero(made).tolist(),
        "activations",
        "made in forward; the record holds no backward",
    )


def _grows(record: Record, stack: int, at_once: int) -> bool:
    """Whether a site's blocks are each replaced by a larger one, over at least three rounds of `at_once` blocks."""
    uses = record.timeline.uses
    rows = np.flatnonzero((uses.stack == stack) & (uses.start >= 0))
    rows = rows[np.argsort(uses.start[rows])]
    if len(rows) < 3 * at_once:
        return False
    old, new = rows[:-at_once], rows[at_once:]
    replaced = (uses.requested_bytes[new] > uses.requested_bytes[old]) & (
        uses.end[old] > uses.start[new]
    )
    return bool(replaced.mean() > 0.8)  # noqa: PLR2004 - nearly all; a new prompt may begin a shorter cache


def _parameters(record: Record, is_gradient: Flags) -> Counter[int]:
    uses = record.timeline.uses
    sizes = gradient_sizes(uses, is_gradient, record.phases)
    if not sizes:
        sizes = step_sizes(uses, record.role == Role.OPTIMIZER, record.phases)
    if not sizes and record.phases.has(BACKWARD):
        lasting = (uses.start == -1) & (uses.end > uses.event_count) & (uses.requested_bytes > 0)
        held = Counter(uses.requested_bytes[lasting].tolist())
        sizes = backward_sizes(uses, record.role == Role.BACKWARD, record.phases, held)
    return sizes


def _held(record: Record, found: Attribution, is_state: Flags, *, makes_gradients: bool) -> None:
    """Attribute what outlives the step: weights, gradients of before, states, inputs."""
    uses, steps, rows = record.timeline.uses, record.phases, found.rows
    n = uses.event_count
    role, start, freed = record.role[rows], uses.start[rows], uses.freed[rows]
    undecided = found.undecided()
    is_old = undecided & (start == -1) & (role == Role.UNKNOWN)
    within = is_old & (freed < n)
    phase, following = steps.at(np.minimum(freed, n)), steps.following(np.minimum(freed, n))
    sized = np.isin(uses.requested_bytes[rows], list(found.parameter_sizes))
    free_stack = uses.free_stack[rows]
    zeroed = np.array(
        [reading.zeroes_gradients for reading in record.readings] + [False], np.bool_
    )[free_stack]
    found.decide(np.flatnonzero(within & zeroed).tolist(), "gradients", "freed by zero_grad")
    between = sized & (phase != OPTIMIZER) & (phase != BACKWARD) & (following == FORWARD)
    found.decide(
        np.flatnonzero(within & between).tolist(),
        "gradients",
        "of a parameter's size, freed before the next forward",
    )
    found.decide(
        np.flatnonzero(within & (phase == BACKWARD)).tolist(),
        "activations",
        "older than the record and freed in backward",
    )
    _inputs(record, found)
    candidates = []
    lasting = is_old & (freed >= n)
    replaced = within & sized & (phase == OPTIMIZER)
    built = found.undecided() & (role == Role.CONSTRUCTION)
    plain = found.undecided() & (role == Role.PYTHON) & sized & (uses.end[rows] >= n)
    for kind, mask in (
        ("lasting", lasting),
        ("built", built),
        ("built", plain),
        ("replaced", replaced),
        ("state", is_state[rows]),
    ):
        chosen = np.flatnonzero(mask & found.undecided())
        order = (
            _last_line_first(record, rows[chosen]) if kind == "state" else start[chosen].tolist()
        )
        for at, place in zip(chosen.tolist(), order, strict=True):
            candidates.append(
                Candidate(at=at, kind=kind, size=int(uses.requested_bytes[rows[at]]), order=place)
            )
    known = Counter(
        int(uses.requested_bytes[row])
        for row, block in zip(rows.tolist(), found.block, strict=True)
        if block == "weights"
    )
    shares = share_out(
        candidates,
        found.parameter_sizes,
        known_weights=known,
        gradients_are_old=steps.has(BACKWARD) and not makes_gradients,
        has_optimizer=steps.has(OPTIMIZER) or _steps_are_marked(record.snapshot),
        lasting_is_weights=_lasting_is_weights(record, found),
    )
    for at, (block, why) in shares.items():
        found.decide([at], block, why)


def _last_line_first(record: Record, rows: Rows) -> list[int]:
    """A rank for blocks that an optimizer's step made anew: those of its last line come first.

    Where `p.data = p.data - ...` makes the weights anew in every step, it does so after the moments that it needs.
    """
    uses = record.timeline.uses
    step = np.searchsorted(record.phases.run_starts(OPTIMIZER), uses.start[rows], "right").tolist()
    lines = list(zip(step, uses.stack[rows].tolist(), strict=True))
    first: dict[tuple[int, int], int] = {}
    for line, start in zip(lines, uses.start[rows].tolist(), strict=True):
        first[line] = min(start, first.get(line, start))
    return [-first[line] for line in lines]


def _steps_are_marked(snapshot: AllocatorSnapshot) -> bool:
    return any(mark.name.startswith("Optimizer.step#") for mark in snapshot.annotations)


def _inputs(record: Record, found: Attribution) -> None:
    uses, steps, rows = record.timeline.uses, record.phases, found.rows
    start, end = uses.start[rows], uses.end[rows]
    sized = np.isin(uses.requested_bytes[rows], list(found.parameter_sizes))
    outside = (
        found.undecided()
        & (record.role[rows] == Role.PYTHON)
        & (start >= 0)
        & (start < uses.event_count)
    )
    forward = steps.next_of((FORWARD,), start)
    before = outside & (steps.following(start) == FORWARD) & ~(sized & (end >= uses.event_count))
    found.decide(
        np.flatnonzero(before & (end > forward)).tolist(),
        "inputs",
        "made outside of the model just before forward, and alive in it",
    )
    short = outside & (end < np.minimum(forward, uses.event_count))
    found.decide(np.flatnonzero(short).tolist(), "temporaries", "made and freed between two phases")


def _lasting_is_weights(record: Record, found: Attribution) -> bool:
    """Whether memory that is older than the record, lives through it and has no gradient's size can be called weights."""
    if not record.phases.has(FORWARD):
        return False
    if any(
        engine in f"/{frame.filename}" for frame in record.snapshot.frames for engine in ENGINES
    ):
        found.notes.append(
            "a serving engine preallocates its cache: what is older than the record can be weights or cache"
        )
        return False
    if not record.phases.has(BACKWARD, OPTIMIZER):
        kept = Counter(
            record.timeline.uses.stack[row]
            for row, why in zip(found.rows.tolist(), found.why, strict=True)
            if "as autograd does" in why
        )
        if kept and found.undecided().any():
            found.notes.append(
                "autograd was on and the record holds no step: what is older can be weights, gradients or optimizer states"
            )
            return False
    return True
