"""MEM701 compares one request with the whole device."""

import pytest

from advisor.rules.memory.request_exceeds_device import (
    ABSURD_BYTES,
    EXCEEDS_SCORE,
    NEARLY_RATIO,
    NEARLY_SCORE,
    request_exceeds_device,
)
from advisor.rules.samples import GIB, a_failure

check = request_exceeds_device.check


@pytest.mark.parametrize(
    ("request_bytes", "score"),
    [
        (80 * GIB + 1, EXCEEDS_SCORE),
        (80 * GIB, NEARLY_SCORE),
        (int(NEARLY_RATIO * 80 * GIB), NEARLY_SCORE),
        (int(NEARLY_RATIO * 80 * GIB) - 1, 0.0),
        (ABSURD_BYTES, 0.0),
    ],
)
def test_by_the_share_of_the_device(request_bytes: int, score: float) -> None:
    finding = check(a_failure(total_bytes=80 * GIB, requested_bytes=request_bytes))
    assert (finding.confidence if finding else 0.0) == score


def test_unknown_sizes_say_nothing() -> None:
    assert check(a_failure(total_bytes=None, requested_bytes=90 * GIB)) is None
    assert check(a_failure(requested_bytes=None)) is None


def test_it_explains_every_block_that_might_be_large() -> None:
    finding = check(a_failure(total_bytes=80 * GIB, requested_bytes=256 * GIB))
    assert finding is not None
    assert "MEM201" in finding.supersedes
    assert any("262,144" in observation.statement for observation in finding.observations)
