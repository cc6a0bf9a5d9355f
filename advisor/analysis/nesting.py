"""Which interval contains which: parents and self times of host events, without a loop."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor.model.trace import Codes, Indices, Times


def parents(thread: "Codes", start_ns: "Times", end_ns: "Times") -> "Indices":
    """The position of the innermost interval that contains each, on its thread; -1 without one.

    Intervals of a thread nest or follow each other, as calls do. One that reaches beyond the end of
    another (two readings of a clock) counts as following it.

    All intervals look outwards at once: each asks its predecessor, and where that one ends too
    early, whom it asked. Siblings so skip each other by doubling, and few rounds suffice.

    Args:
        thread: a number for each interval's thread.
        start_ns: where each begins.
        end_ns: where each ends.
    """
    order = np.lexsort((-end_ns, start_ns, thread))
    threads = thread[order].astype(np.int64)
    # A later thread's intervals end after all of an earlier one's, so that none contains another's.
    span = int(end_ns.max() - end_ns.min()) + 1 if len(end_ns) else 1
    end = (end_ns[order] - (end_ns.min() if len(end_ns) else 0)) + _ranks(threads) * span
    asked = np.arange(-1, len(order) - 1, dtype=np.intp)
    searching = np.arange(len(order), dtype=np.intp)
    while len(searching):
        at = asked[searching]
        going_on = (at >= 0) & (end[at] < end[searching])
        searching, at = searching[going_on], at[going_on]
        asked[searching] = asked[at]
    found = np.full(len(order), -1, dtype=np.intp)
    found[order] = np.where(asked >= 0, order[asked], -1)
    return found


def self_durations(parent: "Indices", duration_ns: "Times") -> "Times":
    """Durations less those of the intervals directly inside, nanoseconds, never negative."""
    has_parent = parent >= 0
    inside = np.bincount(parent[has_parent], weights=duration_ns[has_parent], minlength=len(duration_ns))
    left: Times = np.maximum(0, duration_ns - inside.astype(np.int64))
    return left


def _ranks(sorted_values: "Times") -> "Times":
    """0 for the first distinct value, 1 for the next, ..."""
    steps = np.diff(sorted_values, prepend=sorted_values[:1]) != 0
    ranks: Times = np.cumsum(steps)
    return ranks
