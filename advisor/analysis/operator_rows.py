"""Device activity → the operator that issued it, by the external ids that the profiler writes on both."""

from typing import TYPE_CHECKING

import numpy as np

from advisor.model.trace import Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Indices, Times


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
    return by_external_id(trace, np.where(own >= 0, own, issued))


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
