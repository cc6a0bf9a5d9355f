"""Allocation failures of the libraries beside PyTorch's allocator: cuBLAS, cuDNN and kin, NCCL and RCCL.

They take device memory for handles, workspaces and buffers directly from the driver, so what PyTorch's cache has reserved they
cannot have. Several disguise it: a handle that cannot be created is "not initialized" or an "internal error", a convolution without
room for any algorithm's workspace has "no valid algorithm".

How they say it:

- by the name of a status, in `cublasStatus_t`, `cudnnStatus_t`, `cusparseStatus_t`, `cusolverStatus_t`, `cufftResult`,
  `curandStatus_t`, `cutensorStatus_t`, `cudssStatus_t`, `nvrtcResult` and their twins on AMD (hipBLAS, rocBLAS, hipSPARSE, rocSPARSE,
  hipSOLVER, hipFFT, hipRAND, rocRAND, hipTensor, hipDNN, hipRTC, MIOpen); PyTorch prints the name behind "CUDA error: ",
  "cuDNN error: ", "cusolver error: ", "cuFFT error: ", "CUDA NVRTC error: ", on AMD too;
- by a sentence: cuSPARSE's own, PyTorch's before 1.8 ("cublas runtime error : resource allocation failed"), MAGMA's, TensorFlow's
  ("failed to create cublas handle"), JAX's ("operation gpusolverDnCreate(&handle) failed");
- by the number of a status: cuSOLVER's in PyTorch before 1.11.
"""

import re

from advisor.ingest.byte_sizes import SIZE
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.dataclass import dataclass
from advisor.model.failure import FailureKind

_LIBRARIES = {
    "CUBLAS": "cuBLAS", "CUBLASLT": "cuBLAS", "CUDNN": "cuDNN", "CUSPARSE": "cuSPARSE", "CUSPARSELT": "cuSPARSELt",
    "CUSOLVER": "cuSOLVER", "CUFFT": "cuFFT", "CURAND": "cuRAND", "CUTENSOR": "cuTENSOR", "CUDSS": "cuDSS", "NVRTC": "NVRTC",
    "HIPBLAS": "hipBLAS", "HIPBLASLT": "hipBLASLt", "ROCBLAS": "rocBLAS", "HIPSPARSE": "hipSPARSE", "HIPSPARSELT": "hipSPARSELt",
    "ROCSPARSE": "rocSPARSE", "HIPSOLVER": "hipSOLVER", "HIPFFT": "hipFFT", "HIPRAND": "hipRAND", "ROCRAND": "rocRAND",
    "HIPTENSOR": "hipTensor", "HIPDNN": "hipDNN", "HIPRTC": "hipRTC", "MIOPEN": "MIOpen", "MAGMA": "MAGMA",
}  # fmt: skip
_NAMES = "|".join(sorted(_LIBRARIES, key=len, reverse=True))

ALLOCATION_FAILED = "allocation failed"
HOST_ALLOCATION_FAILED = "host allocation failed"
INSUFFICIENT_RESOURCES = "insufficient resources"
NOT_INITIALIZED = "disguised as not initialized"
INTERNAL_ERROR = "disguised as internal error"
NO_ALGORITHM = "disguised as no algorithm"
FIXED_WORKSPACE = "fixed workspace"
"""The wordings, as Failure's `generation`. Insufficient resources, behind a call that makes no handle, are mostly the bounds of an
algorithm (sparse products need buffers for all intermediate products). The fixed workspace is hipBLAS's: a batched call that outgrows
what PyTorch gave it is refused with the status of a failed allocation, however much is free."""

_STATUS = LazyPattern(
    rf"\b({_NAMES})_(?:STATUS_|ERROR_|ERR_)?"
    r"(ALLOC_FAILED|ALLOCATION_FAILED|DEVICE_ALLOC|HOST_ALLOC|OUT_OF_MEMORY|NOT_INITIALIZED|INSUFFICIENT_RESOURCES|"
    r"INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED|INTERNAL_ERROR_HOST_ALLOCATION_FAILED|MEMORY_ERROR|"
    r"INTERNAL_ERROR(?=,? when calling `?\w{0,24}(?:Create|Init)\b))",
    re.IGNORECASE,
)
_STATUS_WORDINGS = {
    "HOST_ALLOC": HOST_ALLOCATION_FAILED,
    "INTERNAL_ERROR_HOST_ALLOCATION_FAILED": HOST_ALLOCATION_FAILED,
    "NOT_INITIALIZED": NOT_INITIALIZED,
    "INSUFFICIENT_RESOURCES": INSUFFICIENT_RESOURCES,
    "INTERNAL_ERROR": INTERNAL_ERROR,
}
"""Of the statuses that are not a plain failed allocation on the device. NVRTC and hipRTC compile in the host's memory."""

_SENTENCE = LazyPattern(
    r"(?:CUDA|HIP) error: (?P<sparse>out of memory|resource allocation failed|insufficient resources|initialization error|"
    r"library not initialized) when calling `?(?P<called>cusparseLt|cusparse|hipsparse)"
    r"|\b(?P<old>cublas|cusparse|cudnn|cufft|curand)\w{0,4} runtime error ?: "
    r"(?P<said>(?:the )?resource allocation failed|(?:the )?library (?:was )?not initialized|an internal operation failed)"
    r"|cusolver error: (?P<number>[127]),? when calling"
    r"|cannot allocate memory on (?P<magma>GPU device|CPU host)"
    r"|(?:[Ff]ailed to|[Cc]ould not) create (?P<handle>cu(?:blas|dnn|sparse|solver|fft)|(?:roc|hip)(?:blas|sparse|solver))\w{0,4}"
    r" (?:handle|instance)(?:: (?P<why>[^\n]{1,80}))?"
    r"|operation (?P<jax>gpu|cu|hip|roc)(?P<of>blas|solver|sparse|dnn|fft)\w{0,16}Create\w{0,4}\([^)\n]{0,40}\) failed: "
    r"(?P<jax_why>[^\n]{1,60})",
)
_SAYS_ALLOCATION = LazyPattern(r"alloc|out of memory|RESOURCE_EXHAUSTED", re.IGNORECASE)
_SAYS_INITIALIZED = LazyPattern(r"initiali[sz]", re.IGNORECASE)
_CUSOLVER_NUMBERS = {"1": NOT_INITIALIZED, "2": ALLOCATION_FAILED, "7": INTERNAL_ERROR}

_ROCBLAS = LazyPattern(r"hipblasCreate[^\n]{0,60}alloc", re.IGNORECASE)
_MIOPEN = LazyPattern(
    r"miopenStatus(AllocFailed|NotInitialized)"
    r"|MIOpen[^\n]{0,160}(?:failed to allocate|out of memory|Memory not enough|not enough memory)",
    re.IGNORECASE,
)
_NO_ALGORITHM = LazyPattern(
    r"Unable to find a valid cuDNN algorithm to run convolution|FIND was unable to find an engine to execute this computation"
)
_CUDNN_INTERNAL = LazyPattern(r"cuDNN error: CUDNN_STATUS_INTERNAL_ERROR\b")
_CALLING = LazyPattern(r"when calling `([^`\n]{1,160})")
_CREATING = LazyPattern(r"\w{1,24}(?:Create|Init)\b")
_BATCHED = LazyPattern(r"hipblas\w{1,24}Batched")

_CALLOC = LazyPattern(r"Failed to (?:CUDA|HIP) (?:host )?(?:calloc|malloc)(?: async)? (\d{1,20}) bytes", re.IGNORECASE)
_CALLOC_WORDS = LazyPattern(
    r"\b[nr]ccl[^\n]{0,40}failed to (?:cuda |hip )?c?alloc|Failed to (?:CUDA|HIP) (?:calloc|malloc)",
    re.IGNORECASE,
)
_NCCL_FAILURE = LazyPattern(
    r"(?:Cuda|HIP) failure (?:2 )?'?out of memory'?|NCCL[^\n]{0,200}(?:[Cc]uda|HIP) (?:failure|error)[^\n]{0,12}out of memory",
    re.IGNORECASE,
)
_NCCL_PLACE = LazyPattern(r"(?P<host>[\w.\-]{1,80}):(?P<pid>\d{1,9}):\d{1,9} \[(?P<device>\d{1,4})\]")
_RANK = LazyPattern(r"\brank[ :=]{1,2}(\d{1,6})\b", re.IGNORECASE)
_FREE_DEVICE_MEMORY = LazyPattern(rf"free device mem(?:ory)?: {SIZE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saying:
    """What a library said: whose it is, how it was worded, and where it stands in the text."""

    library: str
    wording: str
    said: str
    start: int
    end: int


def recognize_library(text: str) -> FailureText | None:
    """A handle or workspace that a mathematics library could not get."""
    found = _by_status(text) or _by_sentence(text) or _by_other_words(text)
    if found is None:
        return None
    calling = _CALLING.search(text, found.start)
    said, end, wording = [found.said], found.end, found.wording
    if calling is not None and calling.start() - found.end < 80:  # noqa: PLR2004 - the clause that follows the status
        said.append(f"when calling {calling[1]}")
        end = max(end, calling.end())
        if wording == ALLOCATION_FAILED and _BATCHED.match(calling[1]):
            wording = FIXED_WORKSPACE
        elif wording == INSUFFICIENT_RESOURCES and _CREATING.match(calling[1]):
            wording = ALLOCATION_FAILED
    return FailureText(
        kind=FailureKind.LIBRARY_ALLOCATION_FAILED,
        backend=found.library,
        generation=wording,
        detail=", ".join(said)[:240],
        end=end,
    )


def _by_status(text: str) -> _Saying | None:
    match = _STATUS.search(text)
    if match is None:
        return None
    library, status = match[1].upper(), match[2].upper()
    wording = _STATUS_WORDINGS.get(status, ALLOCATION_FAILED)
    if library in {"NVRTC", "HIPRTC"}:
        wording = HOST_ALLOCATION_FAILED
    return _Saying(library=_LIBRARIES[library], wording=wording, said=match[0], start=match.start(), end=match.end())


def _by_sentence(text: str) -> _Saying | None:
    match = _SENTENCE.search(text)
    if match is None:
        return None
    parts = match.groupdict()
    reason = parts["sparse"] or parts["said"] or parts["why"] or parts["jax_why"] or ""
    if parts["number"]:
        library, wording = "cuSOLVER", _CUSOLVER_NUMBERS[parts["number"]]
    elif parts["magma"]:
        library, wording = "MAGMA", ALLOCATION_FAILED if parts["magma"].startswith("GPU") else HOST_ALLOCATION_FAILED
    else:
        library = _library_of(parts)
        wording = _wording_of(reason)
    return _Saying(library=library, wording=wording, said=match[0].strip(), start=match.start(), end=match.end())


def _library_of(parts: dict[str, str | None]) -> str:
    named = parts["called"] or parts["old"] or parts["handle"]
    if named is None:
        named = f"{'cu' if parts['jax'] == 'gpu' else parts['jax']}{parts['of']}"
    return _LIBRARIES.get(named.upper(), named)


def _wording_of(reason: str) -> str:
    """How a sentence gives the reason; a handle that could not be created for no reason given is an internal error."""
    if _SAYS_ALLOCATION.search(reason):
        return ALLOCATION_FAILED
    if "insufficient" in reason:
        return INSUFFICIENT_RESOURCES
    return NOT_INITIALIZED if _SAYS_INITIALIZED.search(reason) else INTERNAL_ERROR


def _by_other_words(text: str) -> _Saying | None:
    for pattern, library, wording in (
        (_ROCBLAS, "rocBLAS", ALLOCATION_FAILED),
        (_MIOPEN, "MIOpen", ALLOCATION_FAILED),
        (_NO_ALGORITHM, "cuDNN", NO_ALGORITHM),
        (_CUDNN_INTERNAL, "cuDNN", INTERNAL_ERROR),
    ):
        match = pattern.search(text)
        if match is not None:
            is_unready = pattern is _MIOPEN and (match[1] or "").lower() == "notinitialized"
            said = NOT_INITIALIZED if is_unready else wording
            return _Saying(library=library, wording=said, said=match[0], start=match.start(), end=match.end())
    return None


def recognize_collective(text: str) -> FailureText | None:
    """A buffer that NCCL or RCCL could not get."""
    calloc = _CALLOC.search(text)
    failure = _NCCL_FAILURE.search(text)
    match = calloc or failure or _CALLOC_WORDS.search(text)
    if match is None:
        return None
    figures = Figures(text)
    if calloc is not None:
        figures.exact("requested_bytes", int(calloc[1]))
    figures.clause("free_bytes", _FREE_DEVICE_MEMORY)
    place = _NCCL_PLACE.search(text)
    said = [each[0] for each in (failure, calloc) if each] or [match[0]]
    return FailureText(
        kind=FailureKind.COLLECTIVE_ALLOCATION_FAILED,
        backend="RCCL" if re.search(r"\bRCCL\b", text) else "NCCL",
        generation="NCCL calloc" if calloc else "NCCL failure",
        device_index=int(place["device"]) if place else None,
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail="; ".join(said)[:240],
        hint_rank=first_integer(_RANK, text[max(0, match.start() - 120) : match.end() + 120]),
        end=max(match.end(), figures.end, *(each.end() for each in (failure, calloc) if each)),
    )


LIBRARY = Recognizer(
    (
        b"alloc_failed",
        b"allocation_failed",
        b"_err_device_alloc",
        b"_err_host_alloc",
        b"rtc_error_out_of_memory",
        b"not_initialized",
        b"insufficient_resources",
        b"memory_error",
        b"_status_internal_error",
        b"miopen",
        b"valid cudnn algorithm",
        b"unable to find an engine",
        b"hipblascreate",
        b"when calling `cusparse",
        b"when calling cusparse",
        b"when calling `hipsparse",
        b"cublas runtime error",
        b"cudnn runtime error",
        b"cusparse runtime error",
        b"cufft runtime error",
        b"curand runtime error",
        b"cusolver error: ",
        b"cannot allocate memory on",
        b"create cublas",
        b"create cudnn",
        b"create cusparse",
        b"create cusolver",
        b"create cufft",
        b"create rocblas",
        b"create hipblas",
        b"create hipsparse",
        b"create hipsolver",
        b"dncreate(",
        b"blascreate(",
        b"sparsecreate(",
        b"solvercreate(",
    ),
    recognize_library,
)
COLLECTIVE = Recognizer((b"calloc", b"cuda failure", b"hip failure", b"failed to cuda malloc"), recognize_collective)
