"""Device activity → the operator that issued it: by the profiler's external ids, else by time."""

from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.distinct import distinct_places
from advisor.analysis.nesting import parents
from advisor.model.trace import Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Indices, Times


MOST_OPERATORS = 500_000
"""Operators up to which containment in time is looked up where no external ids are recorded; with
more it would take seconds."""


def operators_of(trace: KinetoTrace, rows: "Indices", launch: "Indices") -> "Indices":
    """The innermost operator around the launch of each row; -1 where none is recorded.

    Args:
        trace: the trace.
        rows: of device activity.
        launch: the host call of each, -1 where unknown; it carries the external id where the
            activity itself does not.
    """
    own = trace.external_id[rows]
    issued = np.where(launch >= 0, trace.external_id[np.maximum(launch, 0)], -1)
    found = by_external_id(trace, np.where(own >= 0, own, issued))
    if (found >= 0).any() or not (launch >= 0).any():
        return found
    return _around(trace, launch)


def _around(trace: KinetoTrace, launch: "Indices") -> "Indices":
    """The innermost operator that contains each launch in time, on its thread; -1 without one."""
    operators = trace.mask_of(Category.OPERATOR).nonzero()[0]
    found = np.full(len(launch), -1, dtype=np.intp)
    if not len(operators) or len(operators) > MOST_OPERATORS:
        return found
    calls, position = distinct_places(launch[launch >= 0])
    both = np.concatenate((operators, calls))
    around = parents(trace.thread[both], trace.start_ns[both], trace.ends_ns(both))
    # A launch may stand inside another call (a driver call in a runtime call): its operator is the
    # outer call's.
    while (inside_call := around >= len(operators)).any():
        around[inside_call] = around[around[inside_call]]
    issuer = around[len(operators) :]
    found[launch >= 0] = np.where(issuer >= 0, operators[np.maximum(issuer, 0)], -1)[position]
    return found


def by_external_id(trace: KinetoTrace, wanted: "Times") -> "Indices":
    """The operator with each external id; -1 for an id of -1 and for one that no operator has."""
    operators = trace.mask_of(Category.OPERATOR).nonzero()[0]
    operators = operators[trace.external_id[operators] >= 0]
    found = np.full(len(wanted), -1, dtype=np.intp)
    if not len(operators) or not len(wanted):
        return found
    order = operators[trace.external_id[operators].argsort(kind="stable")]
    keys = trace.external_id[order]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    hit = (wanted >= 0) & (keys[place] == wanted)
    found[hit] = order[place[hit]]
    return found
