import pytest
from failure_messages import the_failure

from advisor.model.failure import FailureKind


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ("RuntimeError: CUDA error: device-side assert triggered", "device-side assert"),
        (
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            "illegal memory access",
        ),
        ("RuntimeError: CUDA error: invalid configuration argument", "invalid configuration"),
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "no kernel image",
        ),
        (
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
            "driver too old",
        ),
        ("RuntimeError: CUDA error: unspecified launch failure", "launch failure"),
        ("RuntimeError: CUDA error: too many resources requested for launch", "launch resources"),
        (
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81, OpType=ALLREDUCE)",
            "collective timeout",
        ),
    ],
)
def test_errors_that_are_taken_for_a_lack_of_memory(text: str, generation: str) -> None:
    failure = the_failure(text)

    assert failure.kind is FailureKind.NOT_OUT_OF_MEMORY
    assert failure.generation == generation


def test_a_timeout_names_its_rank() -> None:
    assert the_failure("[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81)").rank == 3


def test_a_tritons_kernel_lacks_the_multiprocessors_memory() -> None:
    failure = the_failure(
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163840, Hardware"
        " limit: 101376. Reducing block sizes or `num_stages` may help."
    )

    assert failure.kind is FailureKind.NOT_OUT_OF_MEMORY
    assert (failure.requested_bytes, failure.allowed_bytes) == (163_840, 101_376)
