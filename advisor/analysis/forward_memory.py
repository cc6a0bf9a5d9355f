"""What forward passes made: kept for backward, freed before it, a growing cache, or the current layer of inference."""

from collections import Counter

import numpy as np

from advisor.analysis.device_record import Attribution, Flags, Record
from advisor.analysis.stack_frames import Role
from advisor.analysis.training_phases import BACKWARD, FORWARD, NEVER

KEPT_AT_ONCE = 4
"""Live blocks of one site from which on it keeps them on purpose: a forward pass without autograd holds one or two."""

GROWING_ROUNDS = 3
"""Generations of a growing cache that must have been seen."""

GROWING_RATIO = 0.8
"""Share of a cache's blocks that a larger one follows; a new prompt begins a shorter one."""

KEPT_BY_AUTOGRAD = "made in forward; its site holds many blocks at once, as autograd does"


def forward_memory(record: Record, found: Attribution) -> None:
    """Attribute what forward passes made, the loss behind them included."""
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
    for stack, yes in zip(uses.stack[rows].tolist(), (uses.end[rows] > backward).tolist(), strict=True):
        counts = lived.setdefault(stack, [0, 0])
        counts[yes] += 1
    return {stack: counts[1] >= counts[0] for stack, counts in lived.items()}


def _inference(record: Record, found: Attribution, made: Flags) -> None:
    """Forward passes of a record without backward: caches that grow, graphs that are kept, and the current layer."""
    uses, rows = record.timeline.uses, found.rows
    at_once = Counter(uses.stack[rows[made]].tolist())
    growing = {stack for stack, count in at_once.items() if count > 1 and _grows(record, stack, count)}
    stacks = uses.stack[rows]
    is_growing = made & np.isin(stacks, list(growing))
    found.decide(
        np.flatnonzero(is_growing).tolist(),
        "kv_cache",
        "replaced by a larger one at every call, as concatenated keys and values are",
    )
    is_kept = made & np.isin(stacks, [stack for stack, count in at_once.items() if count >= KEPT_AT_ONCE])
    found.decide(
        np.flatnonzero(is_kept).tolist(),
        "activations",
        KEPT_BY_AUTOGRAD,
    )
    found.decide(
        np.flatnonzero(made).tolist(),
        "activations",
        "made in forward; the record holds no backward",
    )


def _grows(record: Record, stack: int, at_once: int) -> bool:
    """Whether a site's blocks are each outlived by a larger one of the same site, over several rounds of the blocks it keeps."""
    uses = record.timeline.uses
    rows = np.flatnonzero((uses.stack == stack) & (uses.start >= 0))
    rows = rows[np.argsort(uses.start[rows])]
    ended = rows[uses.end[rows] < uses.event_count]
    if len(ended) < GROWING_ROUNDS * at_once:
        return False
    # When a block ends, its successor is the newest one of the site.
    newest = rows[np.searchsorted(uses.start[rows], uses.end[ended]) - 1]
    is_larger = uses.requested_bytes[newest] > uses.requested_bytes[ended]
    return bool(is_larger.mean() > GROWING_RATIO)
