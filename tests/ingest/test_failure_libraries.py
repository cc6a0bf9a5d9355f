import pytest
from failure_messages import failures_of, the_failure

from advisor.model.failure import FailureKind


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "cuBLAS",
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuDNN"),
        (
            "RuntimeError: CUDA error: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES when calling `cusparseCreate`",
            "cuSPARSE",
        ),
        (
            "RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate`",
            "cuSOLVER",
        ),
        ("RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED", "cuFFT"),
        (
            "RuntimeError: CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`",
            "hipBLAS",
        ),
        ("RuntimeError: miopenStatusAllocFailed", "MIOpen"),
    ],
)
def test_handles_and_workspaces_that_a_library_cannot_get(text: str, backend: str) -> None:
    failure = the_failure(text)

    assert failure.kind is FailureKind.LIBRARY_ALLOCATION_FAILED
    assert failure.backend == backend
    assert failure.generation == "allocation failed"


def test_the_call_that_failed_is_kept() -> None:
    failure = the_failure("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasLtCreate(&handle)`")

    assert "cublasLtCreate" in failure.detail


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            "disguised as not initialized",
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "disguised as not initialized"),
        (
            "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution",
            "disguised as no algorithm",
        ),
    ],
)
def test_disguises_are_told_from_plain_words(text: str, generation: str) -> None:
    assert the_failure(text).generation == generation


def test_a_failed_execution_is_no_failed_allocation() -> None:
    failure = the_failure("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`")

    assert failure.kind is FailureKind.NOT_OUT_OF_MEMORY


def test_nccl_says_it_in_two_lines_that_are_one_failure() -> None:
    failure = the_failure(
        "gpu-7:411:530 [2] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
        "gpu-7:411:530 [2] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 4194304 bytes\n"
    )

    assert failure.kind is FailureKind.COLLECTIVE_ALLOCATION_FAILED
    assert failure.requested_bytes == 4_194_304
    assert failure.device_index == 2
    assert failure.resolution_bytes == 0


def test_two_devices_of_nccl_are_two_failures() -> None:
    found = failures_of(
        "gpu-7:411:530 [2] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 4194304 bytes\n"
        "gpu-7:412:531 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 4194304 bytes\n"
    )

    assert [failure.device_index for failure in found] == [2, 3]


def test_the_asynchronous_calloc_and_rccl_are_read() -> None:
    failure = the_failure("torch.distributed.DistBackendError: RCCL error: Failed to CUDA calloc async 2432 bytes")

    assert failure.requested_bytes == 2432
    assert failure.backend == "RCCL"
