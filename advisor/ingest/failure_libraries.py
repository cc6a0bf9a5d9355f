"""Allocation failures of the libraries beside PyTorch's allocator: cuBLAS, cuDNN and kin, NCCL and RCCL.

They take device memory for handles, workspaces and buffers directly from the driver, so what PyTorch's cache has reserved they
cannot have. Several disguise it: a handle that cannot be created is "not initialized", a convolution without room for any
algorithm's workspace has "no valid algorithm".
"""

import re

from advisor.ingest.byte_sizes import SIZE
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

_LIBRARIES = {
    "CUBLAS": "cuBLAS", "CUDNN": "cuDNN", "CUSPARSE": "cuSPARSE", "CUSOLVER": "cuSOLVER", "CUFFT": "cuFFT", "CURAND": "cuRAND",
    "HIPBLAS": "hipBLAS", "ROCBLAS": "rocBLAS", "HIPSPARSE": "hipSPARSE", "HIPFFT": "hipFFT", "CUTENSOR": "cuTENSOR",
}  # fmt: skip
_STATUS = LazyPattern(
    r"\b(CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT|CURAND|HIPBLAS|ROCBLAS|HIPSPARSE|HIPFFT|CUTENSOR)_(?:STATUS_)?"
    r"(ALLOC_FAILED|ALLOCATION_FAILED|NOT_INITIALIZED|INSUFFICIENT_RESOURCES|INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED|"
    r"INTERNAL_ERROR_HOST_ALLOCATION_FAILED|MEMORY_ERROR)\b",
    re.IGNORECASE,
)
_ROCBLAS = LazyPattern(r"rocblas_status_memory_error|hipblasCreate[^\n]{0,60}alloc", re.IGNORECASE)
_MIOPEN = LazyPattern(
    r"miopenStatusAllocFailed|MIOpen[^\n]{0,160}(?:failed to allocate|out of memory|Memory not enough|not enough memory)",
    re.IGNORECASE,
)
_NO_ALGORITHM = LazyPattern(
    r"Unable to find a valid cuDNN algorithm to run convolution|FIND was unable to find an engine to execute this computation"
)
_CALLING = LazyPattern(r"when calling `([^`\n]{1,160})")

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


def recognize_library(text: str) -> FailureText | None:
    """A handle or workspace that a mathematics library could not get."""
    status = _STATUS.search(text)
    match = status or _ROCBLAS.search(text) or _MIOPEN.search(text) or _NO_ALGORITHM.search(text)
    if match is None:
        return None
    calling = _CALLING.search(text, match.start())
    said = [match[0]]
    if calling is not None and calling.start() - match.end() < 80:  # noqa: PLR2004 - the clause that follows the status
        said.append(f"when calling {calling[1]}")
    return FailureText(
        kind=FailureKind.LIBRARY_ALLOCATION_FAILED,
        backend=_library(match, status),
        generation=_wording(match, status),
        detail=", ".join(said)[:240],
        end=max(match.end(), calling.end() if len(said) > 1 and calling else 0),
    )


def _library(match: re.Match[str], status: re.Match[str] | None) -> str:
    if status is not None:
        return _LIBRARIES[status[1].upper()]
    lowered = match[0].lower()
    return "rocBLAS" if "blas" in lowered else "MIOpen" if "miopen" in lowered else "cuDNN"


def _wording(match: re.Match[str], status: re.Match[str] | None) -> str:
    """Whether the message says that it is about memory, or is known to disguise it."""
    if status is not None and status[2].upper() == "NOT_INITIALIZED":
        return "disguised as not initialized"
    return "disguised as no algorithm" if _NO_ALGORITHM.match(match[0]) else "allocation failed"


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
        b"not_initialized",
        b"insufficient_resources",
        b"memory_error",
        b"miopen",
        b"valid cudnn algorithm",
        b"unable to find an engine",
        b"hipblascreate",
    ),
    recognize_library,
)
COLLECTIVE = Recognizer((b"calloc", b"cuda failure", b"hip failure", b"failed to cuda malloc"), recognize_collective)
