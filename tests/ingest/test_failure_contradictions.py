"""Figures of one message that cannot all be true."""

import pytest

from advisor.ingest.failure_contradictions import consistent
from advisor.ingest.failure_message import FailureText
from advisor.model.failure import FailureKind

GIB = 2**30


def a_reading(kind=FailureKind.DEVICE_OUT_OF_MEMORY, **sizes_gib):
    figures = {f"{name}_bytes": int(size * GIB) for name, size in sizes_gib.items()}
    return FailureText(kind=kind, figures=figures, resolution_bytes=GIB // 100)


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        (a_reading(requested=2, total=10, free=50), "more is free than the device has"),
        (a_reading(requested=2, total=10, free=1, allocated=8, reserved=7), "more is live than is reserved"),
    ],
)
def test_contradicting_figures_are_dropped_and_only_the_request_is_kept(reading, why):
    kept = consistent(reading)
    assert kept.figures == {"requested_bytes": 2 * GIB}
    assert why in kept.gaps[-1]


@pytest.mark.parametrize(
    "reading",
    [
        a_reading(requested=2, total=10, free=1, allocated=7, reserved=8),
        a_reading(requested=2, total=8, free=0, allocated=15, reserved=16),
        a_reading(requested=2, total=10, free=10.01, allocated=0, reserved=0),
        a_reading(requested=2, total=10, free=1, allocated=7.01, reserved=7),
        a_reading(FailureKind.HOST_OUT_OF_MEMORY, total=10, free=50),
    ],
)
def test_rounded_figures_and_memory_lent_by_the_host_are_no_contradiction(reading):
    assert consistent(reading) is reading
