import pytest
from failure_messages import GIB, MIB, failures_of, printed, the_failure

from advisor.model.failure import FailureKind


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        (
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3221225472 bytes.",
            3 * GIB,
        ),
        (
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 1073741824 bytes.",
            GIB,
        ),
        ("RESOURCE_EXHAUSTED: Out of memory allocating 626MiB", 626 * MIB),
        (
            "RESOURCE_EXHAUSTED: Failed to allocate request for 8.00GiB (8589934592B) on device ordinal 3",
            8 * GIB,
        ),
        (
            "ValueError: Allocation (size=21474836480) would exceed memory (size=17179869184)",
            20 * GIB,
        ),
    ],
)
def test_requests_are_read_in_every_unit(text: str, requested: int) -> None:
    failure = the_failure(text)

    assert failure.kind is FailureKind.XLA_RESOURCE_EXHAUSTED
    assert failure.requested_bytes == requested
    assert failure.resolution_bytes is not None


def test_the_device_ordinal_is_the_device() -> None:
    assert the_failure("Failed to allocate request for 1.50GiB (1610612736B) on device ordinal 3").device_index == 3


def test_a_compiled_program_is_compared_with_its_memory_space() -> None:
    failure = the_failure(
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.\n"
        "Used 20.93G of 15.48G hbm. Exceeded hbm capacity by 5.45G."
    )

    assert failure.requested_bytes == printed("20.93", GIB)
    assert failure.total_bytes == printed("15.48", GIB)
    assert "5.45G" in failure.detail


def test_a_reservation_that_was_not_possible_tells_what_is_free() -> None:
    failure = the_failure(
        "RESOURCE_EXHAUSTED: Attempting to reserve 1.95G at the bottom of memory. That was not possible."
        " There are 1.78G free, 0B reserved, and 1.78G reservable."
    )

    assert failure.requested_bytes == printed("1.95", GIB)
    assert failure.free_bytes == printed("1.78", GIB)


def test_the_table_of_the_bfc_allocator_completes_the_failure() -> None:
    failure = the_failure(
        "I tsl/framework/bfc_allocator.cc:1104] Stats: \n"
        "Limit:                     12884901888\n"
        "InUse:                     12750000128\n"
        "MaxInUse:                  12750000128\n"
        "E pjrt] RESOURCE_EXHAUSTED: Out of memory while trying to allocate 536870912 bytes.\n"
    )

    assert failure.allowed_bytes == 12 * GIB
    assert failure.allocated_bytes == 12_750_000_128


def test_a_tensor_of_tensorflow_has_the_bytes_of_its_shape() -> None:
    failure = the_failure(
        "ResourceExhaustedError: OOM when allocating tensor with shape[32,1024,64,64] and type float on"
        " /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc [Op:Conv2D]"
    )

    assert failure.kind is FailureKind.TENSORFLOW_OUT_OF_MEMORY
    assert failure.requested_bytes == 32 * 1024 * 64 * 64 * 4
    assert failure.device_index == 1


def test_a_tensor_of_unknown_type_has_no_known_bytes() -> None:
    failure = the_failure("OOM when allocating tensor with shape[7,7] and type resource")

    assert failure.requested_bytes is None


def test_the_allocators_warning_that_is_no_failure_is_none() -> None:
    assert (
        failures_of(
            "W bfc_allocator.cc:243] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.25GiB with"
            " freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could"
            " be performance gains if more memory were available."
        )
        == []
    )


def test_the_allocators_own_failure_is_one() -> None:
    failure = the_failure("W bfc_allocator.cc] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)")

    assert failure.requested_bytes == 2 * GIB
    assert failure.device_index == 0


@pytest.mark.parametrize(
    ("path", "backend"),
    [
        ("external/xla/xla/tsl/framework/bfc_allocator.cc", "XLA"),
        ("external/xla/third_party/tsl/tsl/framework/bfc_allocator.cc", "XLA"),
        ("external/tsl/tsl/framework/bfc_allocator.cc", "XLA"),
        ("external/org_tensorflow/tensorflow/core/common_runtime/bfc_allocator.cc", "XLA"),
        ("xla/tsl/framework/bfc_allocator.cc", "XLA"),
        ("tensorflow/core/common_runtime/bfc_allocator.cc", "TensorFlow"),
        ("tensorflow/tsl/framework/bfc_allocator.cc", "TensorFlow"),
        ("external/local_tsl/tsl/framework/bfc_allocator.cc", "TensorFlow"),
        ("external/local_xla/xla/tsl/framework/bfc_allocator.cc", "TensorFlow"),
    ],
)
@pytest.mark.parametrize("prefix", ["W ", "2025-01-02 03:04:05.678901: W "])
def test_the_path_of_the_bfc_allocator_tells_whose_it_is(path: str, backend: str, prefix: str) -> None:
    failure = the_failure(f"{prefix}{path}:497] Allocator (GPU_1_bfc) ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)")

    assert failure.backend == backend
    assert (failure.kind is FailureKind.XLA_RESOURCE_EXHAUSTED) is (backend == "XLA")
    assert failure.requested_bytes == 2 * GIB
    assert failure.device_index == 1


def test_xla_s_allocator_and_its_exception_are_one_failure() -> None:
    failure = the_failure(
        "W external/xla/xla/tsl/framework/bfc_allocator.cc:497] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB"
        " (rounded to 2147483648)requested by op \n"
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes.\n"
    )

    assert failure.kind is FailureKind.XLA_RESOURCE_EXHAUSTED
    assert failure.device_index == 0
