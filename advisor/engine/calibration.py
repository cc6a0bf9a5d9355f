"""Turn a rule's own score into a frequency, by the table that `scripts/calibrate.py` makes from the corpus."""

import functools
import importlib.resources
import json
from collections.abc import Sequence

TABLE = "calibration.json"


@functools.cache
def _points() -> tuple[tuple[float, float], ...]:
    text = importlib.resources.files(__package__).joinpath(TABLE).read_text(encoding="utf-8")
    return tuple((float(score), float(frequency)) for score, frequency in json.loads(text)["points"])


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
