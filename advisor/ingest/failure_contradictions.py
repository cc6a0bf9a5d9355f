"""Figures of one message that cannot all be true: none of them is kept, because nothing tells which is wrong."""

from advisor.ingest.failure_message import FailureText
from advisor.model.dataclass import replace
from advisor.model.failure import FailureKind

TOLERANCE_RATIO = 0.02
"""Of the larger figure: they are printed rounded, and read one after the other while other threads allocate."""

_STATE = frozenset({"total_bytes", "free_bytes", "allocated_bytes", "reserved_bytes", "reserved_unallocated_bytes"})
"""What describes the device; the request itself stands apart."""


def consistent(reading: FailureText) -> FailureText:
    """The message, without the figures of the device where they contradict each other; a gap then says so.

    Live memory beyond the device's total is no contradiction: Windows lends memory of the host.
    """
    if reading.kind is not FailureKind.DEVICE_OUT_OF_MEMORY:
        return reading
    why = _contradiction(reading)
    if why is None:
        return reading
    kept = {name: size for name, size in reading.figures.items() if name not in _STATE}
    gap = f"the message's figures contradict each other ({why}): only the size of the request is used"
    return replace(reading, figures=kept, gaps=(*reading.gaps, gap))


def _contradiction(reading: FailureText) -> str | None:
    figures, rounding = reading.figures, 2 * (reading.resolution_bytes or 0)
    total, free = figures.get("total_bytes"), figures.get("free_bytes")
    allocated, reserved = figures.get("allocated_bytes"), figures.get("reserved_bytes")
    if total is not None and free is not None and _exceeds(free, total, rounding):
        return "more is free than the device has"
    if allocated is not None and reserved is not None and _exceeds(allocated, reserved, rounding):
        return "more is live than is reserved"
    return None


def _exceeds(part: int, whole: int, rounding: int) -> bool:
    return part > whole + max(rounding, TOLERANCE_RATIO * whole)
