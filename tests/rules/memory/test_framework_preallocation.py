"""MEM606: a preallocated pool beside PyTorch, or the candidate in XLA's own failure."""

import pytest

from advisor.model.failure import Failure, FailureKind, Mention
from advisor.rules.memory.framework_preallocation import (
    LARGE_REQUEST_BYTES,
    framework_preallocation,
)
from advisor.rules.samples import GIB, a_failure, a_log

check = framework_preallocation.check
JAX = a_log(frameworks=("jax",))


def beside(outside: int) -> Failure:
    return a_failure(
        total_bytes=80 * GIB,
        requested_bytes=2 * GIB,
        free_bytes=0,
        allocated_bytes=80 * GIB - outside,
        reserved_unallocated_bytes=0,
    )


@pytest.mark.parametrize(("outside", "fires"), [(56 * GIB, True), (56 * GIB - 1, False), (79 * GIB, False)])
def test_a_pool_is_between_70_and_97_percent_of_the_device(outside: int, fires: bool) -> None:
    assert (check(beside(outside), JAX) is not None) is fires


def test_without_jax_or_tensorflow_it_is_another_process() -> None:
    assert check(beside(60 * GIB), a_log()) is None


@pytest.mark.parametrize(("requested", "lower"), [(LARGE_REQUEST_BYTES, True), (LARGE_REQUEST_BYTES - 1, False)])
def test_a_large_buffer_speaks_for_the_computation(requested: int, lower: bool) -> None:
    failure = a_failure(
        kind=FailureKind.XLA_RESOURCE_EXHAUSTED,
        backend="XLA",
        total_bytes=None,
        requested_bytes=requested,
    )
    finding = check(failure, None)
    assert finding is not None
    assert (finding.confidence < 0.4) is lower
    assert finding.confidence <= 0.6


def test_preallocation_that_is_off_is_not_blamed() -> None:
    off = a_log(settings=(("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),), frameworks=("jax",))
    assert check(beside(60 * GIB), off) is None


def test_a_long_log_of_a_healthy_jax_job_is_left_alone() -> None:
    said = Mention(topic="preallocate", line=1, text="XLA_PYTHON_CLIENT_PREALLOCATE is set after import jax")
    assert check(None, a_log(line_count=4, mentions=(said,))) is not None
    assert check(None, a_log(line_count=4000, mentions=(said,))) is None
    plain = Mention(topic="preallocate", line=1, text="jax preallocates 75%")
    assert check(None, a_log(line_count=4, mentions=(plain,))) is None
