"""JAX, XLA and TensorFlow: RESOURCE_EXHAUSTED in its wordings, and the BFC allocator's tables around it.

Both have the BFC allocator; the path of its source tells whose it is. JAX builds XLA as external/xla (before: external/tsl,
external/org_tensorflow), TensorFlow has it in its own tree or as external/local_xla and external/local_tsl.

XLA prints sizes as "18.34G" or "8.00GiB"; both are 1024-based (tsl HumanReadableNumBytes).
"""

import math
import re

from advisor.ingest.byte_sizes import SHORT_SIZE, SIZE, byte_size
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

_EXHAUSTED = LazyPattern(r"RESOURCE_EXHAUSTED|ResourceExhaustedError|Resource exhausted:|XlaRuntimeError: Out of memory")
_WHILE_TRYING = LazyPattern(r"[Oo]ut of memory (?:while trying to allocate|allocating) ([\d,]{1,26}) bytes")
_IN_UNITS = LazyPattern(rf"[Oo]ut of memory (?:while trying to allocate|allocating) {SIZE}")
_REQUEST_FOR = LazyPattern(
    rf"Failed to allocate (?:request for )?{SHORT_SIZE} ?\((\d{{1,20}}) ?(?:B|bytes)\)(?: from device| on device ordinal (\d{{1,4}}))?"
)
_MEMORY_SPACE = LazyPattern(rf"[Rr]an out of memory in memory space (\w{{1,12}})\.\s{{1,4}}Used {SHORT_SIZE} of {SHORT_SIZE}")
_EXCEEDED = LazyPattern(r"Exceeded \w{1,12} capacity by [\d.]{1,12}[KMGT]?i?B?")
_ATTEMPTING = LazyPattern(rf"Attempting to (?:allocate|reserve) {SHORT_SIZE}")
_THERE_ARE = LazyPattern(rf"[Tt]here are {SHORT_SIZE} free")
_WOULD_EXCEED = LazyPattern(r"Allocation \(size=(\d{1,20})\) would exceed memory \(size=(\d{1,20})\)")
_TPU_USAGE = LazyPattern(rf"TensorCore Hbm usage: {SHORT_SIZE}")
_TPU_AVAILABLE = LazyPattern(rf"exceeding available bytes: {SHORT_SIZE}")

_OOM_TENSOR = LazyPattern(
    r"OOM when allocating tensor with shape ?\[([\d,x ]{0,160})\](?:,? and type ([\w:]{1,24}))?(?: on (\S{1,160}))?(?: by"
    r" allocator (\w{1,40}))?"
)
_BFC = LazyPattern(rf"Allocator \((\w{{1,40}})\) ran out of memory trying to allocate {SHORT_SIZE} ?(?:\(rounded to (\d{{1,20}})\))?")
_XLA_SOURCE = LazyPattern(r"(?<![\w/])(?:external/(?:xla|tsl|org_tensorflow)/\S{0,80}|(?:xla/)?tsl/framework/)bfc_allocator\.cc")
_NOT_A_FAILURE = "The caller indicates that this is not a failure"
_GPU = LazyPattern(r"(?:device:GPU:|GPU_)(\d{1,4})")

_LIMIT = LazyPattern(r"\bLimit: {1,40}(\d{1,20})\b")
_IN_USE = LazyPattern(r"\bInUse: {1,40}(\d{1,20})\b")

_ITEM_BYTES = {
    "float": 4, "float32": 4, "half": 2, "float16": 2, "bfloat16": 2, "double": 8, "float64": 8, "int32": 4, "int64": 8,
    "int16": 2, "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16, "int": 4, "qint8": 1, "uint16": 2,
}  # fmt: skip
"""Bytes of an element by the name that TensorFlow prints (DataTypeString)."""


def recognize(text: str) -> FailureText | None:
    """A refusal by XLA's or TensorFlow's allocator."""
    tensor = _OOM_TENSOR.search(text)
    if tensor is not None:
        return _tensorflow_tensor(text, tensor)
    exhausted = _EXHAUSTED.search(text)
    figures = Figures(text)
    device: int | None = None
    detail = ""
    matched = _exact_request(figures)
    request = _REQUEST_FOR.search(text)
    if request is not None:
        figures.exact("requested_bytes", int(request[3]))
        figures.end = max(figures.end, request.end())
        device, matched = (int(request[4]) if request[4] else None), True
    space = _MEMORY_SPACE.search(text)
    if space is not None:
        detail = _memory_space(figures, space)
        matched = True
    if figures.clause("requested_bytes", _ATTEMPTING):
        matched = figures.clause("free_bytes", _THERE_ARE) or exhausted is not None or matched
    if figures.clause("requested_bytes", _TPU_USAGE):
        matched = figures.clause("total_bytes", _TPU_AVAILABLE) or matched
    allocator = None if matched else _bfc(figures)
    if not matched and allocator is None and exhausted is None:
        return None
    is_tensorflow = allocator is not None and _XLA_SOURCE.search(text) is None
    return FailureText(
        kind=FailureKind.TENSORFLOW_OUT_OF_MEMORY if is_tensorflow else FailureKind.XLA_RESOURCE_EXHAUSTED,
        backend="TensorFlow" if is_tensorflow else "XLA",
        generation="BFC allocator" if allocator else "XLA" if figures.found else "words only",
        device_index=device if device is not None else first_integer(_GPU, allocator or ""),
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail=detail,
        end=max(figures.end, exhausted.end() if exhausted else 0),
    )


def allocator_state(lines: list[str]) -> dict[str, int]:
    """Limit and use of the BFC allocator, from the table that it logs around a failure: the last one wins."""
    state: dict[str, int] = {}
    for line in lines:
        for name, pattern in (("allowed_bytes", _LIMIT), ("allocated_bytes", _IN_USE)):
            found = pattern.search(line)
            if found is not None:
                state[name] = int(found[1])
    return state


def _exact_request(figures: Figures) -> bool:
    """The request in bytes, or in units; whether there is one."""
    match = _WHILE_TRYING.search(figures.text)
    if match is not None:
        figures.exact("requested_bytes", int(match[1].replace(",", "")))
        figures.end = max(figures.end, match.end())
        return True
    match = _WOULD_EXCEED.search(figures.text)
    if match is not None:
        figures.exact("requested_bytes", int(match[1]))
        figures.exact("total_bytes", int(match[2]))
        figures.end = max(figures.end, match.end())
        return True
    return figures.clause("requested_bytes", _IN_UNITS)


def _memory_space(figures: Figures, match: re.Match[str]) -> str:
    """A program that does not fit the memory space it was compiled for: what it would use, and what there is."""
    for name, number in (("requested_bytes", 2), ("total_bytes", 4)):
        size = byte_size(match[number], match[number + 1])
        if size is not None:
            figures.note(name, size)
    exceeded = _EXCEEDED.search(figures.text, match.end())
    figures.end = max(figures.end, (exceeded or match).end())
    return f"compiled program against {match[1]}" + (f"; {exceeded[0]}" if exceeded else "")


def _bfc(figures: Figures) -> str | None:
    """The BFC allocator's warning, unless it says that it is none; its name."""
    match = _BFC.search(figures.text)
    if match is None or _NOT_A_FAILURE in figures.text[match.start() : match.end() + 200]:
        return None
    if match[4]:
        figures.exact("requested_bytes", int(match[4]))
    elif size := byte_size(match[2], match[3]):
        figures.note("requested_bytes", size)
    figures.end = max(figures.end, match.end())
    return match[1]


def _tensorflow_tensor(text: str, match: re.Match[str]) -> FailureText:
    """A tensor by its shape and type; its bytes are their product."""
    item_bytes = _ITEM_BYTES.get((match[2] or "").lower())
    sides = [int(side) for side in re.findall(r"\d{1,15}", match[1])]
    figures = Figures(text)
    if item_bytes is not None and sides:
        size = math.prod(sides) * item_bytes
        if size < 2**62:
            figures.exact("requested_bytes", size)
    place = " ".join(part for part in (match[3], match[4]) if part)
    return FailureText(
        kind=FailureKind.TENSORFLOW_OUT_OF_MEMORY,
        backend="TensorFlow",
        generation="tensor shape",
        device_index=first_integer(_GPU, place),
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail=f"shape [{match[1]}] of type {match[2] or 'unknown'}" + (f" on {place}" if place else ""),
        end=match.end(),
    )


XLA = Recognizer(
    (
        b"resource_exhausted",
        b"resourceexhausted",
        b"resource exhausted",
        b"out of memory while trying",
        b"out of memory allocating",
        b"oom when allocating",
        b"ran out of memory",
        b"failed to allocate",
        b"attempting to allocate",
        b"would exceed memory",
        b"xlaruntimeerror: out of memory",
    ),
    recognize,
    is_flowing=True,
)
