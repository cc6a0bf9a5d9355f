"""Pick the events of a trace by what their names say; each distinct name is tested once."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.trace import Category, KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Flags, Indices


def named_rows(trace: KinetoTrace, test: Callable[[str], object], *categories: Category) -> "Indices":
    """The rows of some categories whose name passes the test, in order of their start.

    Args:
        trace: the trace.
        test: called once a distinct name.
        categories: one or more.
    """
    rows = trace.mask_of(*categories).nonzero()[0]
    return trace.in_order(rows[passing(trace, test)[trace.name[rows]]])


def named(trace: KinetoTrace, test: Callable[[str], object]) -> "Flags":
    """True at the rows whose name passes the test; bool, as long as the trace's columns.

    Args:
        trace: the trace.
        test: called once a distinct name; whatever it returns is taken for true or false
            (`re.compile("...").search` is a test).
    """
    flags: Flags = passing(trace, test)[trace.name]
    return flags


def passing(trace: KinetoTrace, test: Callable[[str], object]) -> "Flags":
    """True at the codes of names (places in `trace.names`) that pass the test."""
    return np.fromiter((bool(test(name)) for name in trace.names), bool, len(trace.names))
