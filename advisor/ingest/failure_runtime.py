"""Out of memory as the CUDA, HIP, Level Zero and other runtimes say it, without any allocator's figures.

Here too: the message of torch's cudaMallocAsync backend, vLLM's cumem allocator, llama.cpp, CuPy, Paddle and Gaudi, which speak for
the runtime below them.
"""

import re

from advisor.ingest.byte_sizes import SIZE, byte_size
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

_MALLOC_ASYNC = LazyPattern(r"Allocation on device ?\d{0,4} would exceed allowed memory|OutOfMemoryError: Allocation on device")
_MALLOC_ASYNC_CLAUSES = (
    ("allocated_bytes", LazyPattern(rf"Currently allocated\s{{0,8}}: {SIZE}")),
    ("requested_bytes", LazyPattern(rf"Requested\s{{0,16}}: {SIZE}")),
    ("total_bytes", LazyPattern(rf"Device limit\s{{0,16}}: {SIZE}")),
    ("free_bytes", LazyPattern(rf"Free \(according to CUDA\): {SIZE}")),
    (
        "allowed_bytes",
        LazyPattern(rf"PyTorch limit \(set by user-supplied memory fraction\)\s{{0,32}}: {SIZE}"),
    ),
)

_CUMEM = LazyPattern(
    r"(?:out of memory|error)[^\n]{0,80}?cumem_allocator\.cpp:\d{1,6}|cumem_allocator[^\n]{0,120}?out of memory",
    re.IGNORECASE,
)
_LLAMA_CPP = LazyPattern(
    rf"allocating {SIZE} on device (\d{{1,4}}): (?:cuda|hip|musa)Malloc failed|failed to allocate (?:CUDA|ROCm|Vulkan|"
    rf"SYCL)\d{{0,2}} buffer of size (\d{{1,20}})"
)
_CUPY = LazyPattern(
    r"(?:OutOfMemoryError: )?Out of memory allocating ([\d,]{1,26}) bytes \(allocated so far: ([\d,]{1,26}) bytes(?:, limit set"
    r" to: ([\d,]{1,26}) bytes)?"
)
_PADDLE = LazyPattern(
    rf"Cannot allocate {SIZE} memory on GPU (\d{{1,4}}), {SIZE} memory has been allocated and available memory is only {SIZE}"
)
_GAUDI = LazyPattern(r"PT_DEVMEM Allocation failed for size::(\d{1,20})")
_OLD_TORCH = LazyPattern(r"cuda runtime error \(2\) ?: ?out of memory", re.IGNORECASE)
_RUNTIME = LazyPattern(
    r"CUDA(?: runtime| driver)? [Ee]rror ?(?:\(\d{1,3}\))?:? (?:2: )?[\"']?out of memory|cudaErrorMemoryAllocation|"
    r"CUDA_ERROR_OUT_OF_MEMORY|"
    r"HIP error: out of memory|hipErrorOutOfMemory|hipErrorMemoryAllocation|cudaMalloc\w{0,12} failed:? out of memory|"
    r"CUDA error(?: code)? ?2\b|cuMem(?:Create|Alloc|Map)\w{0,12}[^\n]{0,60}out of memory",
)
_LEVEL_ZERO = LazyPattern(
    r"(?:UR|ZE)_RESULT_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY|PI_ERROR_OUT_OF_(?:RESOURCES|HOST_MEMORY)|UR_RESULT_ERROR_OUT_OF_RESOURCES"
)
_HSA = LazyPattern(
    r"HSA_STATUS_ERROR_OUT_OF_RESOURCES(?:[^\n]{0,120}?Available Free mem ?: (\d{1,10}) (MB))?",
    re.DOTALL,
)
_DEVICE = LazyPattern(r"\b(?:GPU|device(?: ordinal)?)[ :=]{1,2}(\d{1,4})\b")
_FREE_DEVICE_MEMORY = LazyPattern(rf"free device mem(?:ory)?: {SIZE}")


def recognize_speaker(text: str) -> FailureText | None:
    """The message of one of those who speak for the runtime."""
    for reading in (_malloc_async, _llama_cpp, _cupy, _paddle, _gaudi, _cumem):
        found = reading(text)
        if found is not None:
            return found
    return None


def _malloc_async(text: str) -> FailureText | None:
    trigger = _MALLOC_ASYNC.search(text)
    if trigger is None:
        return None
    figures = Figures(text)
    for name, pattern in _MALLOC_ASYNC_CLAUSES:
        figures.clause(name, pattern)
    return FailureText(
        kind=FailureKind.DEVICE_OUT_OF_MEMORY,
        backend="CUDA",
        generation="torch cudaMallocAsync",
        device_index=first_integer(LazyPattern(r"Allocation on device (\d{1,4})"), text),
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        end=max(trigger.end(), figures.end),
    )


def _llama_cpp(text: str) -> FailureText | None:
    match = _LLAMA_CPP.search(text)
    if match is None:
        return None
    figures = Figures(text)
    if match[1]:
        size = byte_size(match[1], match[2])
        if size is not None:
            figures.note("requested_bytes", size)
    else:
        figures.exact("requested_bytes", int(match[4]))
    return FailureText(
        kind=FailureKind.ENGINE_OUT_OF_MEMORY,
        backend="llama.cpp",
        generation="llama.cpp buffer",
        device_index=int(match[3]) if match[3] else None,
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        end=match.end(),
    )


def _cupy(text: str) -> FailureText | None:
    match = _CUPY.search(text)
    if match is None:
        return None
    names = ("requested_bytes", "allocated_bytes", "allowed_bytes")
    sizes = [int(digits.replace(",", "")) if digits else None for digits in match.groups()]
    return FailureText(
        kind=FailureKind.DEVICE_OUT_OF_MEMORY,
        backend="CuPy",
        generation="CuPy",
        figures={name: size for name, size in zip(names, sizes, strict=True) if size is not None},
        resolution_bytes=0,
        end=match.end(),
    )


def _paddle(text: str) -> FailureText | None:
    match = _PADDLE.search(text)
    if match is None:
        return None
    figures = Figures(text)
    for name, number, unit in (
        ("requested_bytes", 1, 2),
        ("allocated_bytes", 4, 5),
        ("free_bytes", 6, 7),
    ):
        size = byte_size(match[number], match[unit])
        if size is not None:
            figures.note(name, size)
    return FailureText(
        kind=FailureKind.DEVICE_OUT_OF_MEMORY,
        backend="Paddle",
        generation="Paddle",
        device_index=int(match[3]),
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        end=match.end(),
    )


def _gaudi(text: str) -> FailureText | None:
    match = _GAUDI.search(text)
    if match is None:
        return None
    return FailureText(
        kind=FailureKind.DEVICE_OUT_OF_MEMORY,
        backend="HPU",
        generation="Gaudi",
        figures={"requested_bytes": int(match[1])},
        resolution_bytes=0,
        hint_rank=first_integer(LazyPattern(r"\[Rank:(\d{1,6})\]"), text),
        end=match.end(),
    )


def _cumem(text: str) -> FailureText | None:
    match = _CUMEM.search(text)
    if match is None:
        return None
    return FailureText(
        kind=FailureKind.ENGINE_OUT_OF_MEMORY,
        backend="vLLM",
        generation="vLLM cumem allocator",
        detail="vLLM's sleep-mode allocator could not map device memory",
        end=match.end(),
    )


def recognize(text: str) -> FailureText | None:
    """The runtime's bare words: hardly ever a figure, so the device is all that may be known."""
    found = [
        (pattern.search(text), backend, generation)
        for pattern, backend, generation in (
            (_OLD_TORCH, "CUDA", "torch 0.x runtime error"),
            (_RUNTIME, "CUDA", "runtime error"),
            (_LEVEL_ZERO, "XPU", "Level Zero"),
            (_HSA, "HIP", "HSA"),
        )
    ]
    match, backend, generation = next((each for each in found if each[0]), (None, "", ""))
    if match is None:
        return None
    if re.match(r"(?i)hip", match[0]):
        backend = "HIP"
    figures = Figures(text)
    figures.clause("free_bytes", _FREE_DEVICE_MEMORY)
    if generation == "HSA" and match[1] and (size := byte_size(match[1], match[2])):
        figures.note("free_bytes", size)
    return FailureText(
        kind=FailureKind.DEVICE_OUT_OF_MEMORY,
        backend=backend,
        generation=generation,
        device_index=first_integer(_DEVICE, text[match.start() : match.end() + 80]),
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail=match[0][:80],
        end=max(match.end(), figures.end),
    )


SPEAKERS = Recognizer(
    (
        b"allocation on device",
        b"buffer of size",
        b"malloc failed",
        b"out of memory allocating",
        b"available memory is only",
        b"pt_devmem allocation failed",
        b"cumem_allocator",
    ),
    recognize_speaker,
    is_flowing=True,
)
RUNTIME = Recognizer(
    (
        b"out of memory",
        b"memoryallocation",
        b"out_of_memory",
        b"hiperroroutofmemory",
        b"out_of_device_memory",
        b"out_of_host_memory",
        b"out_of_resources",
        b"cuda error 2",
    ),
    recognize,
)
