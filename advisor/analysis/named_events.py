"""Pick the events of a trace by what their names say; each distinct name is tested once."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.trace import KinetoTrace

if TYPE_CHECKING:
    from advisor.model.trace import Flags


def named(trace: KinetoTrace, test: Callable[[str], object]) -> "Flags":
    """True at the rows whose name passes the test; bool, as long as the trace's columns.

    Args:
        trace: the trace.
        test: called once a distinct name; whatever it returns is taken for true or false
            (`re.compile("...").search` is a test).
    """
    chosen = np.fromiter((bool(test(name)) for name in trace.names), bool, len(trace.names))
    flags: Flags = chosen[trace.name]
    return flags
