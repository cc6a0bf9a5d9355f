"""Sets of moments as sorted intervals: union, complement, and how much of them lies where."""

from typing import TYPE_CHECKING

import numpy as np

from advisor.model.dataclass import dataclass

if TYPE_CHECKING:
    from advisor.model.trace import Flags, Indices, Times


@dataclass(frozen=True, eq=False)
class TimeSet:
    """Moments in nanoseconds: the union of [start, end) over sorted intervals that do not touch.

    Attributes:
        start_ns / end_ns: the intervals, int64.
    """

    start_ns: "Times"
    end_ns: "Times"

    @classmethod
    def union(cls, start_ns: "Times", end_ns: "Times") -> "TimeSet":
        """The moments in any of some intervals, given in any order."""
        filled = end_ns > start_ns
        starts, ends = start_ns[filled], end_ns[filled]
        order = starts.argsort(kind="stable")
        starts, ends = starts[order], ends[order]
        if not len(starts):
            return cls(starts, ends)
        reached = np.maximum.accumulate(ends)
        opens = np.concatenate(([True], starts[1:] > reached[:-1]))
        closes = np.concatenate((opens[1:], [True]))
        return cls(starts[opens], reached[closes])

    @property
    def total_ns(self) -> int:
        """Its measure."""
        return int((self.end_ns - self.start_ns).sum())

    def before(self, moment_ns: "Times") -> "Times":
        """How much of it lies before each moment, nanoseconds."""
        if not len(self.start_ns):
            return np.zeros_like(moment_ns)
        lengths = self.end_ns - self.start_ns
        ahead = np.concatenate(([0], np.cumsum(lengths)))
        place = np.searchsorted(self.start_ns, moment_ns, side="right")
        last = np.maximum(place - 1, 0)
        beyond = np.maximum(0, self.end_ns[last] - moment_ns)
        found: Times = ahead[place] - np.where(place > 0, beyond, 0)
        return found

    def within(self, start_ns: "Times", end_ns: "Times") -> "Times":
        """How much of it lies in each of some intervals, nanoseconds."""
        inside: Times = self.before(end_ns) - self.before(start_ns)
        return inside

    def complement(self, start_ns: int, end_ns: int) -> "TimeSet":
        """The moments of a window that are not in it."""
        starts = np.clip(np.concatenate(([start_ns], self.end_ns)), start_ns, end_ns)
        ends = np.clip(np.concatenate((self.start_ns, [end_ns])), start_ns, end_ns)
        left = ends > starts
        return TimeSet(starts[left].astype(np.int64), ends[left].astype(np.int64))

    def minus(self, other: "TimeSet") -> "TimeSet":
        """Its moments that are not in another set."""
        if not len(self.start_ns):
            return self
        outside = other.complement(int(self.start_ns[0]), int(self.end_ns[-1]))
        return self.common(outside)

    def common(self, other: "TimeSet") -> "TimeSet":
        """The moments in both."""
        # An interval of the common part begins where one set begins inside the other; where both begin at once, it is counted once.
        starts = (self.start_ns[other.reaches_to(self.start_ns)], other.start_ns[self.holds(other.start_ns)])
        ends = (self.end_ns[other.reaches_from(self.end_ns)], other.end_ns[self.holds(other.end_ns)])
        return TimeSet(np.sort(np.concatenate(starts)), np.sort(np.concatenate(ends)))

    def holds(self, moment_ns: "Times") -> "Flags":
        """Whether each moment lies strictly inside an interval."""
        place = np.searchsorted(self.start_ns, moment_ns, side="left") - 1
        return self._ends_after(place, moment_ns)

    def reaches_to(self, moment_ns: "Times") -> "Flags":
        """Whether each moment lies inside an interval or at its start."""
        place = np.searchsorted(self.start_ns, moment_ns, side="right") - 1
        return self._ends_after(place, moment_ns)

    def reaches_from(self, moment_ns: "Times") -> "Flags":
        """Whether each moment lies inside an interval or at its end."""
        place = np.searchsorted(self.start_ns, moment_ns, side="left") - 1
        return self._ends_after(place, moment_ns - 1)

    def _ends_after(self, place: "Indices", moment_ns: "Times") -> "Flags":
        if not len(self.end_ns):
            return np.zeros(len(moment_ns), dtype=bool)
        after: Flags = (place >= 0) & (self.end_ns[np.maximum(place, 0)] > moment_ns)
        return after
