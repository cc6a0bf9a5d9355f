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


ALLOCATION_FORMS = [
    # cublasStatus_t, cudnnStatus_t, cusparseStatus_t, cusolverStatus_t, cufftResult, curandStatus_t, cutensorStatus_t, cudssStatus_t
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasLtCreate(&handle)`", "cuBLAS", "allocation failed"),
    ("CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`", "cuBLAS", "disguised as internal error"),
    ("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cuDNN", "disguised as not initialized"),
    ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "cuDNN", "disguised as internal error"),
    ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "cuDNN", "allocation failed"),
    ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "cuDNN", "host allocation failed"),
    ("CUDA error: CUSPARSE_STATUS_ALLOC_FAILED when calling `cusparseCreate(handle)`", "cuSPARSE", "allocation failed"),
    ("CUDA error: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES when calling `cusparseSpGEMM_compute(a)`", "cuSPARSE", "insufficient resources"),
    ("CUDA error: resource allocation failed when calling `cusparseCreate(handle)`", "cuSPARSE", "allocation failed"),
    ("CUDA error: out of memory when calling `cusparseSpMM(handle, opA)`", "cuSPARSE", "allocation failed"),
    ("CUDA error: insufficient resources when calling `cusparseSpGEMM_workEstimation( handle )`", "cuSPARSE", "insufficient resources"),
    ("CUDA error: insufficient resources when calling `cusparseCreate(handle)`", "cuSPARSE", "allocation failed"),
    ("CUDA error: initialization error when calling `cusparseCreate(handle)`", "cuSPARSE", "disguised as not initialized"),
    ("CUDA error: insufficient resources when calling `cusparseLtMatmul(&handle)`", "cuSPARSELt", "insufficient resources"),
    ("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnSgesvd( handle )`", "cuSOLVER", "allocation failed"),
    ("cusolver error: CUSOLVER_STATUS_NOT_INITIALIZED, when calling `cusolverDnCreate(h)`", "cuSOLVER", "disguised as not initialized"),
    ("cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(h)`", "cuSOLVER", "disguised as internal error"),
    ("cusolver error: 2, when calling `cusolverDnCreate(handle)`", "cuSOLVER", "allocation failed"),
    ("cusolver error: 7, when calling `cusolverDnCreate(handle)`", "cuSOLVER", "disguised as internal error"),
    ("cuFFT error: CUFFT_ALLOC_FAILED", "cuFFT", "allocation failed"),
    ("CURAND_STATUS_ALLOCATION_FAILED", "cuRAND", "allocation failed"),
    ("CUTENSOR_STATUS_ALLOC_FAILED", "cuTENSOR", "allocation failed"),
    ("cudss error: CUDSS_STATUS_ALLOC_FAILED, when calling `cudssExecute(handle)`", "cuDSS", "allocation failed"),
    # compilers at run time take the host's memory
    ("CUDA NVRTC error: NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC", "host allocation failed"),
    ("CUDA NVRTC error: HIPRTC_ERROR_OUT_OF_MEMORY", "hipRTC", "host allocation failed"),
    # AMD's twins, which PyTorch prints behind the same words
    ("CUDA error: HIPBLAS_STATUS_NOT_INITIALIZED when calling `hipblasCreate(handle)`", "hipBLAS", "disguised as not initialized"),
    ("CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasDtrsmBatched( handle, side )`", "hipBLAS", "fixed workspace"),
    ("CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasLtCreate(&handle)`", "hipBLAS", "disguised as internal error"),
    ("rocblas error: rocblas_status_memory_error", "rocBLAS", "allocation failed"),
    ("CUDA error: HIPSPARSE_STATUS_ALLOC_FAILED when calling `hipsparseCreate(handle)`", "hipSPARSE", "allocation failed"),
    ("CUDA error: HIPSPARSE_STATUS_INSUFFICIENT_RESOURCES when calling `hipsparseSpMM(a)`", "hipSPARSE", "insufficient resources"),
    ("rocsparse_status_memory_error", "rocSPARSE", "allocation failed"),
    ("cusolver error: HIPSOLVER_STATUS_ALLOC_FAILED, when calling `hipsolverDnCreate(handle)`", "hipSOLVER", "allocation failed"),
    ("cuFFT error: HIPFFT_ALLOC_FAILED", "hipFFT", "allocation failed"),
    ("HIPRAND_STATUS_ALLOCATION_FAILED", "hipRAND", "allocation failed"),
    ("ROCRAND_STATUS_ALLOCATION_FAILED", "rocRAND", "allocation failed"),
    ("HIPTENSOR_STATUS_ALLOC_FAILED", "hipTensor", "allocation failed"),
    ("HIPDNN_STATUS_ALLOC_FAILED", "hipDNN", "allocation failed"),
    ("miopenStatusNotInitialized", "MIOpen", "disguised as not initialized"),
    # sentences instead of statuses
    ("cublas runtime error : resource allocation failed at /build/aten/src/THC/THCGeneral.cpp:100", "cuBLAS", "allocation failed"),
    ("cublas runtime error : library not initialized at /build/THCGeneral.cpp:100", "cuBLAS", "disguised as not initialized"),
    ("MAGMA: magma_sgetrf failed with error -113, cannot allocate memory on GPU device", "MAGMA", "allocation failed"),
    ("MAGMA: magma_sgetrf failed with error -112, cannot allocate memory on CPU host", "MAGMA", "host allocation failed"),
    ("MAGMA_ERR_DEVICE_ALLOC", "MAGMA", "allocation failed"),
    ("MAGMA_ERR_HOST_ALLOC", "MAGMA", "host allocation failed"),
    ("failed to create cublas handle: the resource allocation failed", "cuBLAS", "allocation failed"),
    ("Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR", "cuDNN", "disguised as internal error"),
    ("solver_handle_pool.cc:37: operation gpusolverDnCreate(&handle) failed: internal error", "cuSOLVER", "disguised as internal error"),
    ("operation hipsolverCreate(&handle) failed: alloc failed", "hipSOLVER", "allocation failed"),
]


@pytest.mark.parametrize(("text", "backend", "generation"), ALLOCATION_FORMS, ids=[text[:70] for text, _, _ in ALLOCATION_FORMS])
def test_each_library_is_heard_in_every_form(text: str, backend: str, generation: str) -> None:
    failure = the_failure(f"RuntimeError: {text}")

    assert failure.kind is FailureKind.LIBRARY_ALLOCATION_FAILED
    assert (failure.backend, failure.generation) == (backend, generation)


@pytest.mark.parametrize(
    "status",
    [
        f"{library}_STATUS_{status}"
        for library in ("CUBLAS", "CUDNN", "CUSPARSE", "CUSOLVER", "HIPBLAS", "HIPSPARSE", "HIPSOLVER", "ROCRAND")
        for status in ("EXECUTION_FAILED", "MAPPING_ERROR", "INVALID_VALUE", "NOT_SUPPORTED", "ARCH_MISMATCH")
    ]
    + ["CUFFT_EXEC_FAILED", "HIPFFT_EXEC_FAILED"],
)
def test_a_status_about_a_call_or_a_kernel_is_no_failed_allocation(status: str) -> None:
    failure = the_failure(f"RuntimeError: CUDA error: {status} when calling `f(x)`")

    assert failure.kind is FailureKind.NOT_OUT_OF_MEMORY
    assert failure.generation == "execution failed"


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasSgemm(handle)`",
        "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnXsyevd(handle)`",
        "cusolver error: 6, when calling `cusolverDnCreate(handle)`",
        "cuFFT error: CUFFT_SETUP_FAILED",
        "CUDA error: operation not supported when calling `cusparseLtInit(&handle)`",
        "failed to create a handle",
    ],
)
def test_what_does_not_make_a_handle_is_no_disguise(text: str) -> None:
    assert failures_of(f"RuntimeError: {text}") == []


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
