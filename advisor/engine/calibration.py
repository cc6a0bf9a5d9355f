"""Turn a rule's own score into a frequency, by the table that `scripts/calibrate.py` makes from the corpus."""

import functools
import json
import os
from collections.abc import Sequence

TABLE = os.path.join(os.path.dirname(__file__), "calibration.json")  # noqa: PTH118, PTH120 - the same


@functools.cache
def _points() -> tuple[tuple[float, float], ...]:
    with open(TABLE, encoding="utf-8") as file:  # noqa: PTH123 - pathlib and importlib.resources cost a tenth of a log's diagnosis
        points = json.load(file)["points"]
    return tuple((float(score), float(frequency)) for score, frequency in points)


def calibrated(score: float, points: Sequence[tuple[float, float]] | None = None) -> float:
    """The frequency with which findings of this score are right, by linear interpolation between the table's points.

    Args:
        score: a rule's own score, 0 to 1.
        points: (score, frequency) in rising order of score; the committed table by default.
    """
    table = _points() if points is None else points
    before = table[0]
    for after in table:
        if score <= after[0]:
            span = after[0] - before[0]
            share = (score - before[0]) / span if span else 1.0
            return round(before[1] + share * (after[1] - before[1]), 3)
        before = after
    return round(table[-1][1], 3)
