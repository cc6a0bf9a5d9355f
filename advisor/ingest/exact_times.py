"""Times in microseconds since 1970 with a fraction: numbers whose digits one float cannot hold."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec
    import numpy.typing as npt

_PLAIN = re.compile(rb"(-?)(\d{1,16})\.(\d{1,9})\Z")

_POINT, _ZERO, _NINE = b".09"


def exact_microseconds(
    texts: "Sequence[msgspec.Raw]",
) -> "tuple[npt.NDArray[Any], npt.NDArray[Any]]":
    """Whole microseconds, and the rest in nanoseconds: two floats that hold what one cannot.

    Args:
        texts: JSON values. What is no plain decimal fraction is read as a float; what is no number
            at all becomes NaN.
    """
    joined = np.frombuffer(b"".join(texts), np.uint8)
    width = len(joined) // max(1, len(texts))
    point = bytes(joined[:width]).find(b".")
    if 0 < point < width - 1 and width * len(texts) == len(joined):
        table = joined.reshape(-1, width)
        digits = np.delete(table, point, axis=1)
        # A profiler prints all its times alike, so mostly all are read at once.
        if (table[:, point] == _POINT).all() and ((digits >= _ZERO) & (digits <= _NINE)).all():
            values = digits.astype(np.float64) - _ZERO
            weights = 10.0 ** np.arange(width - 2, -1, -1)
            scale = weights[point - 1]
            fraction_ns = np.rint(values[:, point:] @ weights[point:] * 1000 / scale)
            return values[:, :point] @ (weights[:point] / scale), fraction_ns
    pairs = [_one(bytes(text)) for text in texts]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def _one(text: bytes) -> tuple[float, float]:
    found = _PLAIN.match(text)
    if found:
        sign = -1 if found[1] else 1
        return sign * float(found[2]), sign * 1000 * float(b"0." + found[3])
    try:
        return float(text), 0.0
    except ValueError:
        return float("nan"), 0.0
