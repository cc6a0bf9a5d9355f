"""MEM707: platforms that bound one allocation."""

import pytest

from advisor.model.failure import BLOCK_LIMIT, FailureKind, Mention
from advisor.rules.memory.activations_dominate import activations_dominate
from advisor.rules.memory.single_allocation_limit import XPU_LIMIT_BYTES, single_allocation_limit
from advisor.rules.samples import GIB, a_failure, a_log

check = single_allocation_limit.check


@pytest.mark.parametrize(
    ("requested", "reserved", "fires"),
    [
        (GIB, 14 * GIB, True),
        (GIB, 14 * GIB + 1, False),  # less than twice the request is left
        (GIB - 1, GIB, False),
    ],
)
def test_an_intel_gpu_with_room_refuses_from_one_gibibyte(requested: int, reserved: int, fires: bool) -> None:
    failure = a_failure(backend="XPU", total_bytes=16 * GIB, requested_bytes=requested, reserved_bytes=reserved)
    assert (check(failure, None) is not None) is fires


def test_beyond_four_gibibytes_it_is_surer() -> None:
    fields = {"backend": "XPU", "total_bytes": 48 * GIB, "free_bytes": 40 * GIB}
    below, above = (check(a_failure(requested_bytes=size, **fields), None) for size in (XPU_LIMIT_BYTES, XPU_LIMIT_BYTES + 1))
    assert below is not None
    assert above is not None
    assert below.confidence < above.confidence


@pytest.mark.parametrize("requested", [5 * GIB, None])
def test_a_message_that_says_it_itself_needs_no_room_to_be_believed(requested: int | None) -> None:
    failure = a_failure(backend="XPU", generation=BLOCK_LIMIT, total_bytes=6 * GIB, requested_bytes=requested, reserved_bytes=4 * GIB)
    finding = check(failure, None)
    assert finding is not None
    assert finding.confidence > 0.9
    assert activations_dominate.check(failure, None, None, None) is None


def test_nvidia_has_no_such_limit() -> None:
    assert check(a_failure(requested_bytes=6 * GIB, free_bytes=40 * GIB), None) is None


def test_metal_says_it_itself() -> None:
    failure = a_failure(
        kind=FailureKind.UNIFIED_MEMORY_LIMIT,
        backend="MPS",
        generation="Metal buffer limit",
        requested_bytes=24 * GIB,
        total_bytes=None,
    )
    assert check(failure, None) is not None


def test_the_platforms_own_words_suffice() -> None:
    said = Mention(topic="windows", line=1, text="Current platform cannot allocate a block larger than 4GB")
    assert check(a_failure(backend="XPU", total_bytes=None), a_log(mentions=(said,))) is not None
