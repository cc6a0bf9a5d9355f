"""Distinct values and medians of columns, without numpy.ma.

`np.unique` and `np.median` import it on their first use, which takes as long as to
read 5 MB of a trace.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.trace import Indices


def distinct(values: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """The distinct values of a column, sorted."""
    ordered = np.sort(values)
    if not len(ordered):
        return ordered
    found: npt.NDArray[Any] = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return found


def distinct_places(values: "npt.NDArray[Any]") -> "tuple[npt.NDArray[Any], Indices]":
    """The distinct values, and for each value its place among them."""
    found = distinct(values)
    return found, np.searchsorted(found, values)


def median(values: "npt.NDArray[Any]") -> float:
    """The median of a column with a value at least; of an even number the mean of the middle two."""
    upper = len(values) // 2
    lower = (len(values) - 1) // 2
    ordered = np.partition(values, [lower, upper])
    return (float(ordered[lower]) + float(ordered[upper])) / 2
