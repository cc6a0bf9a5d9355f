"""Errors that are taken for a lack of memory, or stand beside one, and are something else."""

from advisor.ingest.failure_message import FailureText, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

_INDEX_CHECK = r"srcIndex < srcSelectDimSize|index >= -sizes\[i\]|t >= 0 && t < n_classes|idx_dim >= 0"
"""Checks of PyTorch's own kernels that an index out of range fails."""

_TIMEOUT = (
    r"Watchdog caught collective operation timeout|collective operation timeout: WorkNCCL|NCCL operation \w{1,40} timed out|"
    r"Timed out waiting \d{1,9}ms for (?:recv|send)|TCPStore[^\n]{0,60}[Tt]imeout"
)

_EXECUTION = (
    r"\b(?:CU|HIP|ROC)[A-Z]{3,8}_STATUS_(?:EXECUTION_FAILED|MAPPING_ERROR|INVALID_VALUE|NOT_SUPPORTED|ARCH_MISMATCH)\b"
    r"|\b(?:CU|HIP)FFT_EXEC_FAILED\b"
)
"""Statuses of the mathematics libraries that are about a call or a kernel."""

_KINDS = (
    ("device-side assert", r"device-side assert(?:ion)? (?:triggered|failed)"),
    ("index out of range", rf"Assertion `[^`\n]{{0,120}}(?:{_INDEX_CHECK})[^`\n]{{0,80}}` failed"),
    ("illegal memory access", r"illegal memory access was encountered|cudaErrorIllegalAddress|Memory access fault by GPU"),
    ("misaligned address", r"CUDA error: misaligned address"),
    ("illegal instruction", r"CUDA error: an illegal instruction was encountered"),
    ("launch failure", r"unspecified launch failure|cudaErrorLaunchFailure|the launch timed out and was terminated"),
    ("invalid configuration", r"(?:CUDA|HIP) error: invalid configuration argument|cudaErrorInvalidConfiguration"),
    ("launch resources", r"too many resources requested for launch|cudaErrorLaunchOutOfResources"),
    ("invalid device", r"(?:CUDA|HIP) error: invalid device ordinal|cudaErrorInvalidDevice"),
    ("no kernel image", r"no kernel image is available for execution|cudaErrorNoKernelImageForDevice|hipErrorNoBinaryForGpu"),
    ("driver too old", r"CUDA driver version is insufficient|NVIDIA driver on your system is too old|forward compatibility was attempted"),
    ("uncorrectable memory error", r"uncorrectable (?:ECC|NVLink) error(?: was)?(?: encountered| detected)"),
    (
        "execution failed",
        _EXECUTION,
    ),
    ("collective timeout", _TIMEOUT),
    ("engine timeout", r"RPC call to \w{1,40} timed out"),
)  # fmt: skip
_ANY = LazyPattern("|".join(f"(?P<k{index}>{pattern})" for index, (_, pattern) in enumerate(_KINDS)))

_TRITON = LazyPattern(
    r"out of resource: ?(shared memory|registers|threads|tensor memory)[,.] ?(?:Required: ?(\d{1,12}))?(?:, ?Hardware limit: ?(\d{1,12}))?"
)
_RANK = LazyPattern(r"\[Rank (\d{1,6})\]")


def recognize(text: str) -> FailureText | None:
    """An error that is not a lack of memory."""
    first_line = text.split("\n", 1)[0]
    triton = _TRITON.search(first_line)
    if triton is not None:
        figures = {
            name: int(digits)
            for name, digits in (("requested_bytes", triton[2]), ("allowed_bytes", triton[3]))
            if digits and triton[1] == "shared memory"
        }
        return FailureText(
            kind=FailureKind.NOT_OUT_OF_MEMORY,
            backend="Triton",
            generation="kernel resources",
            figures=figures,
            resolution_bytes=0 if figures else None,
            detail=f"a kernel needs more {triton[1]} of a multiprocessor than there is",
            end=triton.end(),
        )
    match = _ANY.search(first_line)
    if match is None or match.lastgroup is None:
        return None
    return FailureText(
        kind=FailureKind.NOT_OUT_OF_MEMORY,
        backend="HIP" if "HIP" in first_line else "NCCL" if "NCCL" in first_line else "CUDA",
        generation=_KINDS[int(match.lastgroup[1:])][0],
        detail=match[0][:240],
        end=match.end(),
        hint_rank=first_integer(_RANK, first_line),
    )


LOOKALIKES = Recognizer(
    (
        b"device-side assert",
        b"assertion `",
        b"illegal memory access",
        b"illegaladdress",
        b"memory access fault",
        b"misaligned address",
        b"illegal instruction",
        b"launch failure",
        b"launchfailure",
        b"launch timed out",
        b"invalid configuration",
        b"invalidconfiguration",
        b"requested for launch",
        b"launchoutofresources",
        b"invalid device ordinal",
        b"invaliddevice",
        b"kernel image",
        b"nokernelimage",
        b"nobinaryforgpu",
        b"driver version is insufficient",
        b"system is too old",
        b"forward compatibility",
        b"uncorrectable",
        b"_status_execution_failed",
        b"fft_exec_failed",
        b"_status_mapping_error",
        b"_status_invalid_value",
        b"_status_not_supported",
        b"_status_arch_mismatch",
        b"collective operation timeout",
        b"timed out",
        b"out of resource",
    ),
    recognize,
)
