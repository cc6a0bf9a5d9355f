"""What outlives a training step: weights, gradients of before, optimizer states, inputs; older than the record, much of it."""

from collections import Counter

import numpy as np

from advisor.analysis.device_record import Attribution, Flags, Record, Rows
from advisor.analysis.forward_memory import KEPT_BY_AUTOGRAD
from advisor.analysis.held_memory import Candidate, share_out
from advisor.analysis.parameter_sizes import backward_sizes, gradient_sizes, step_sizes
from advisor.analysis.replaced_states import WHY, replaced_states
from advisor.analysis.stack_frames import Role
from advisor.analysis.training_phases import BACKWARD, FORWARD, NEVER, OPTIMIZER
from advisor.model.snapshot import AllocatorSnapshot

ENGINES = ("/vllm/", "/sglang/", "/tensorrt_llm/")
"""Serving engines preallocate their cache: what is older than the record can be weights or cache there."""


LARGEST_FIXED_BATCH_BYTES = 256 * 1024**2
"""A batch that lives to the record's end is taken for an input up to this size (256 images of 224 x 224 in fp32 take 147 MiB); a larger
block made outside of the model can be a cache or a data set."""

BUCKETS_HOLD_GRADIENTS_RATIO = 0.5
"""Communication buffers of at least this share of the parameters' bytes are taken to hold the gradients (gradient_as_bucket_view)."""


def parameter_sizes(record: Record, is_gradient: Flags) -> Counter[int]:
    """Trainable parameters by size in requested bytes; empty where the record does not show them."""
    uses = record.timeline.uses
    sizes = gradient_sizes(uses, is_gradient, record.phases)
    if not sizes:
        sizes = step_sizes(uses, record.role == Role.OPTIMIZER, record.phases)
    if not sizes and record.phases.has(BACKWARD):
        lasting = (uses.start == -1) & (uses.end > uses.event_count) & (uses.requested_bytes > 0)
        held = Counter(uses.requested_bytes[lasting].tolist())
        sizes = backward_sizes(uses, record.role == Role.BACKWARD, record.phases, held)
    return sizes


def lasting_memory(record: Record, found: Attribution, is_state: Flags, moment: int, *, makes_gradients: bool) -> None:
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
    zeroed = np.array([reading.zeroes_gradients for reading in record.readings] + [False], np.bool_)[free_stack]
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
    found.decide(replaced_states(record, found, is_state, moment), "temporaries", WHY)
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
        order = _last_line_first(record, rows[chosen]) if kind == "state" else start[chosen].tolist()
        for at, place in zip(chosen.tolist(), order, strict=True):
            candidates.append(Candidate(at=at, kind=kind, size=int(uses.requested_bytes[rows[at]]), order=place))
    known = Counter(int(uses.requested_bytes[row]) for row, block in zip(rows.tolist(), found.block, strict=True) if block == "weights")
    shares = share_out(
        candidates,
        found.parameter_sizes,
        known_weights=known,
        gradients_are_old=steps.has(BACKWARD) and not makes_gradients and not _in_buckets(record, found),
        has_optimizer=steps.has(OPTIMIZER) or _steps_are_marked(record.snapshot),
        lasting_is_weights=_lasting_is_weights(record, found),
    )
    for at, (block, why) in shares.items():
        found.decide([at], block, why)


def _in_buckets(record: Record, found: Attribution) -> bool:
    buffers = [row for row, block in zip(found.rows.tolist(), found.block, strict=True) if block == "communication_buffers"]
    parameters = sum(size * count for size, count in found.parameter_sizes.items())
    return int(record.timeline.size_bytes[buffers].sum()) >= BUCKETS_HOLD_GRADIENTS_RATIO * parameters > 0


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
    outside = found.undecided() & (record.role[rows] == Role.PYTHON) & (start >= 0) & (start < uses.event_count)
    forward = steps.next_of((FORWARD,), start)
    lasts = end >= uses.event_count
    is_no_batch = lasts & (sized | (uses.requested_bytes[rows] > LARGEST_FIXED_BATCH_BYTES))
    before = outside & (steps.following(start) == FORWARD) & ~is_no_batch
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
    if any(engine in f"/{frame.filename}" for frame in record.snapshot.frames for engine in ENGINES):
        found.notes.append("a serving engine preallocates its cache: what is older than the record can be weights or cache")
        return False
    if record.phases.has(BACKWARD) and not _has_whole_backward(record):
        if found.undecided().any():
            found.notes.append("the record holds no whole backward pass: what is older can be weights, gradients or optimizer states")
        return False
    if not record.phases.has(BACKWARD, OPTIMIZER):
        kept = Counter(
            record.timeline.uses.stack[row] for row, why in zip(found.rows.tolist(), found.why, strict=True) if why == KEPT_BY_AUTOGRAD
        )
        if kept and found.undecided().any():
            found.notes.append("autograd was on and the record holds no step: what is older can be weights, gradients or optimizer states")
            return False
    return True


def _has_whole_backward(record: Record) -> bool:
    """Whether a run of backward is followed by another phase, so that every trainable parameter has shown its gradient."""
    first = record.phases.run_starts(BACKWARD)[:1]
    return bool((record.phases.next_of((FORWARD, OPTIMIZER), first) < NEVER).all())
