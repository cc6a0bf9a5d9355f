"""Look at a text in many places at once, eight bytes in each step: what stands there, how long a number is, what it is."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = npt.NDArray[Any]

WORD_BYTES = 8

MOST_DIGITS = 2 * WORD_BYTES
"""Of a number before its point: microseconds since 1970 have as many."""

PLACES = 3
"""Digits behind a point, where there is one: Kineto prints nanoseconds, all of them."""

MARGIN_BYTES = 160
"""What a text has behind the part that is looked at, so that looking beyond its end needs no care."""

_POINT, _ZERO = b".0"

_ONES = 0x0101010101010101
_ZEROS = np.uint64(_ZERO * _ONES)
_ALL = np.uint64(2**64 - 1)
_HIGH_BITS = np.uint64(0x80 * _ONES)
_BELOW_TEN = np.uint64(0x76 * _ONES)
"""Added to a byte below ten it leaves the highest bit clear; above, sets it."""

_STEPS = tuple(
    (np.uint64(factor), np.uint64(shift), np.uint64(mask))
    for factor, shift, mask in ((10, 8, 0x00FF00FF00FF00FF), (100, 16, 0x0000FFFF0000FFFF), (10_000, 32, 0xFFFFFFFF))
)
"""Neighbors become one number of twice as many digits: the factor of the first, where the second lies, and what is kept."""

_FLOAT_BIAS, _FRACTION_BITS = 1023, 52


class Decimals(NamedTuple):
    """Numbers as they are printed, none negative and none with an exponent.

    Attributes:
        whole: what stands before their points, int64, below 10^16.
        thousandths: what stands behind them, int64, below 1000.
    """

    whole: Column
    thousandths: Column

    def as_floats(self) -> Column:
        """The numbers as reading their texts gives them, float64; exact below 9 * 10^12, where 53 bits hold all digits."""
        return (self.whole * 1000 + self.thousandths) / 1000


class Text:
    """A text that is looked at.

    Attributes:
        text: with MARGIN_BYTES behind what is looked at.
        characters: uint8.
        words: the eight bytes from each position on, uint64, the first byte the lowest.
    """

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.characters: Column = np.frombuffer(text, np.uint8)
        self.words: Column = np.ndarray((len(text) - WORD_BYTES + 1,), "<u8", text, 0, (1,))

    def pieces(self, starts: Column, ends: Column) -> list[bytes]:
        """Parts of the text."""
        text = self.text
        return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def records(self, starts: Column, word_count: int) -> Column:
        """Words from some positions on, uint64, a row each."""
        size_bytes = word_count * WORD_BYTES
        table = np.ndarray((len(self.text) - size_bytes + 1,), f"V{size_bytes}", self.text, 0, (1,))
        rows: Column = table[starts].view("<u8").reshape(-1, word_count)
        return rows

    def stands(self, what: bytes, positions: Column) -> Column:
        """At which positions a text stands."""
        found = np.ones(len(positions), bool)
        for start in range(0, len(what), WORD_BYTES):
            part = what[start : start + WORD_BYTES]
            words = self.words[positions + start] if start else self.words[positions]
            found &= begin_with(words, part)
        return found

    def run(self, positions: Column) -> Column:
        """How many digits stand from some positions on, MOST_DIGITS at most."""
        found = _leading(self.words[positions])
        if (found == WORD_BYTES).any():
            found += np.where(found == WORD_BYTES, _leading(self.words[positions + WORD_BYTES]), 0)
        return found

    def run_before(self, positions: Column) -> Column:
        """How many digits stand right before some positions, MOST_DIGITS at most."""
        found = _trailing(self.words[positions - WORD_BYTES])
        if (found == WORD_BYTES).any():
            found += np.where(found == WORD_BYTES, _trailing(self.words[positions - 2 * WORD_BYTES]), 0)
        return found

    def decimals(self, starts: Column, ends: Column) -> Decimals | None:
        """Read numbers; None where any is not as Kineto prints it.

        Args:
            starts: where each number begins, at least one, behind at least MOST_DIGITS other characters.
            ends: where it has ended.
        """
        is_point = self.characters[ends - PLACES - 1] == _POINT
        if not is_point.any():
            whole = self.integers(starts, ends)
            return None if whole is None else Decimals(whole, np.zeros_like(whole))
        if not is_point.all():
            return None
        whole, thousandths = self.integers(starts, ends - PLACES - 1), self._digits(ends, np.full_like(ends, PLACES))
        return None if whole is None or thousandths is None else Decimals(whole, thousandths)

    def integers(self, starts: Column, ends: Column) -> Column | None:
        """Read whole numbers, int64; None where any is none, longer than MOST_DIGITS, or begins with a needless zero."""
        widths = ends - starts
        longest = widths.max()
        if widths.min() < 1 or longest > MOST_DIGITS or ((self.characters[starts] == _ZERO) & (widths > 1)).any():
            return None
        low = self._digits(ends, np.minimum(widths, WORD_BYTES))
        if low is None or longest <= WORD_BYTES:
            return low
        high = self._digits(ends - WORD_BYTES, np.maximum(widths - WORD_BYTES, 0))
        if high is None:
            return None
        numbers: Column = high * 10**WORD_BYTES + low
        return numbers

    def _digits(self, ends: Column, widths: Column) -> Column | None:
        """Numbers of up to eight digits; None where any character is none."""
        # The first digit is the lowest byte, and what precedes a shorter number is shifted out.
        kept = _ALL << ((WORD_BYTES - widths) * WORD_BYTES).astype(np.uint64)
        values = (self.words[ends - WORD_BYTES] ^ _ZEROS) & kept
        if _above_nine(values).any():
            return None
        for factor, shift, mask in _STEPS:
            values = (values * factor + (values >> shift)) & mask
        numbers: Column = values.astype(np.int64)
        return numbers


def begin_with(words: Column, start: bytes) -> Column:
    """Which words begin with up to eight bytes."""
    kept = words if len(start) == WORD_BYTES else words & (256 ** len(start) - 1)
    found: Column = kept == int.from_bytes(start, "little")
    return found


def _leading(words: Column) -> Column:
    """Digits before the first character that is none."""
    others = _above_nine(words ^ _ZEROS)
    # The lowest bit that is set, as a float, has its place for an exponent.
    place = ((others & (~others + np.uint64(1))).astype(np.float64).view(np.int64) >> _FRACTION_BITS) - _FLOAT_BIAS
    return np.where(others == 0, WORD_BYTES, place >> 3)


def _trailing(words: Column) -> Column:
    """Digits behind the last character that is none."""
    others = _above_nine(words ^ _ZEROS)
    upper = others >> np.uint64(32)
    # Half a word at a time is an exact float, which has the place of the highest bit for an exponent.
    place = (np.where(upper, upper, others).astype(np.float64).view(np.int64) >> _FRACTION_BITS) - _FLOAT_BIAS + 32 * (upper > 0)
    return np.where(others == 0, WORD_BYTES, WORD_BYTES - 1 - (place >> 3))


def _above_nine(values: Column) -> Column:
    """The highest bit of each byte that is above nine, and no other bit."""
    others: Column = (((values & ~_HIGH_BITS) + _BELOW_TEN) | values) & _HIGH_BITS
    return others
