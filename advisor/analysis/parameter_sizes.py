"""How many trainable parameters of which size the model has, as the record of a training step shows it.

Gradients have their parameters' sizes, and so have an optimizer's temporaries: either gives the sizes of parameters whose own allocation
is older than the record.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from advisor.analysis.allocation_lifetimes import Lifetimes
from advisor.analysis.training_phases import BACKWARD, FORWARD, NEVER, OPTIMIZER, Phases

MOST_MOMENTS = 16
"""Steps that are looked at; one would do, the fullest of some is surer (the first may lie at the record's border)."""

Flags = NDArray[np.bool_]


def outlives_its_run(uses: Lifetimes, phases: Phases, others: tuple[int, ...]) -> NDArray[np.int8]:
    """Whether each recorded allocation outlives the run of its phase: 1 yes, 0 no, -1 where the record ends within the run."""
    end_of_run = phases.next_of(others, uses.start)
    ended = end_of_run < NEVER
    return np.where(ended, uses.end > end_of_run, np.where(uses.end < uses.event_count, 0, -1)).astype(np.int8)


def gradient_sizes(uses: Lifetimes, is_gradient: Flags, phases: Phases) -> Counter[int]:
    """How many gradients of each size (requested bytes) are live when they are all there: at the optimizer's first allocation."""
    rows = np.flatnonzero(is_gradient)
    moments = phases.run_starts(OPTIMIZER)
    if not len(moments):
        moments = np.append(phases.run_starts(FORWARD), uses.event_count)
    chosen = moments[np.linspace(0, len(moments) - 1, min(MOST_MOMENTS, len(moments))).astype(np.int64)]
    best: Counter[int] = Counter()
    for moment in chosen.tolist():
        live = rows[(uses.start[rows] < moment) & (uses.end[rows] > moment)]
        found = Counter(uses.requested_bytes[live].tolist())
        if _bytes(found) > _bytes(best):
            best = found
    return best


def step_sizes(uses: Lifetimes, is_optimizer: Flags, phases: Phases) -> Counter[int]:
    """Sizes of the parameters by the allocations of one optimizer step: a line of it allocates once (or more) a parameter."""
    starts, ends = phases.run_starts(OPTIMIZER), phases.run_ends(OPTIMIZER)
    if not len(starts):
        return Counter()
    longest = int(np.argmax(ends - starts))
    rows = np.flatnonzero(is_optimizer & (uses.start >= starts[longest]) & (uses.start <= ends[longest]))
    by_stack: dict[int, Counter[int]] = {}
    for stack, size in zip(uses.stack[rows].tolist(), uses.requested_bytes[rows].tolist(), strict=True):
        by_stack.setdefault(stack, Counter())[size] += 1
    covering = max((len(sizes) for sizes in by_stack.values()), default=0)
    full = [sizes for sizes in by_stack.values() if len(sizes) == covering]
    return min(full, key=lambda sizes: sum(sizes.values()), default=Counter())


def backward_sizes(uses: Lifetimes, is_backward: Flags, phases: Phases, held: Counter[int]) -> Counter[int]:
    """Sizes of the parameters where gradients are only ever added to: each backward pass makes one temporary gradient a parameter.

    `held` has the sizes of memory that lives through the whole record; only those can be parameters with their gradients.
    """
    passes = max(1, len(phases.run_starts(BACKWARD)))
    made = Counter(uses.requested_bytes[is_backward].tolist())
    found = {size: min(count // 2, round(made[size] / passes)) for size, count in held.items()}
    return Counter({size: count for size, count in found.items() if count > 0})


def _bytes(sizes: Counter[int]) -> int:
    return sum(size * count for size, count in sizes.items())
