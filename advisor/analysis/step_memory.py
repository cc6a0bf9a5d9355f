"""Gradients, temporaries of backward, and what an optimizer's step makes: told apart by whether they outlive their run."""

from collections import Counter

import numpy as np

from advisor.analysis.device_record import Attribution, Flags, Record
from advisor.analysis.parameter_sizes import outlives_its_run
from advisor.analysis.stack_frames import Role
from advisor.analysis.training_phases import BACKWARD, FORWARD, OPTIMIZER

KEPT_AT_ONCE = 4
"""Live blocks of one line of a user's own `step` from which on it keeps them: temporaries are held one or two at a time."""


def gradients(record: Record) -> Flags:
    """Which uses are gradients: made by autograd, and alive when the run of backward is over."""
    uses = record.timeline.uses
    made = (record.role == Role.BACKWARD) & (uses.start >= 0)
    outlives = outlives_its_run(uses, record.phases, (FORWARD, OPTIMIZER))
    # Where the record ends within backward, a gradient is what autograd stored, or what has the size of something that stays.
    lasting = Counter(uses.requested_bytes[(uses.start < _first_row(record)) & (uses.end > uses.event_count)].tolist())
    has_size = np.isin(uses.requested_bytes, list(lasting))
    found: Flags = made & ((outlives == 1) | ((outlives == -1) & (has_size | record.flag("accumulates"))))
    return found


def _first_row(record: Record) -> int:
    return int(record.phases.rows[0]) if len(record.phases.rows) else record.timeline.event_count


def backward_memory(record: Record, found: Attribution, is_gradient: Flags) -> None:
    """Attribute what autograd made."""
    role = record.role[found.rows]
    gradient = is_gradient[found.rows]
    found.decide(np.flatnonzero(gradient).tolist(), "gradients", "made by autograd and alive after backward")
    found.decide(np.flatnonzero(role == Role.RECOMPUTE).tolist(), "activations", "recomputed inside backward")
    found.decide(
        np.flatnonzero((role == Role.BACKWARD) & ~gradient).tolist(),
        "temporaries",
        "made by autograd and freed in backward",
    )


def optimizer_memory(record: Record, found: Attribution) -> Flags:
    """Attribute what the optimizer's temporaries are; return which uses are made in its step and kept."""
    uses = record.timeline.uses
    made = (record.role == Role.OPTIMIZER) & (uses.start >= 0)
    outlives = outlives_its_run(uses, record.phases, (FORWARD, BACKWARD))
    creates = record.flag("creates_state")
    kept: Flags = made & ((outlives == 1) | creates)
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
