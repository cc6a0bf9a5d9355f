"""Out of memory in somebody's own words: a report of a few lines, or a line that is plainly an error, and no known message."""

import re

from advisor.ingest.byte_sizes import SIZE
from advisor.ingest.failure_denials import is_unreal
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

REPORT_LINES = 60
"""A text of at most this many lines is somebody's report, whose every word counts; a longer one is a log."""

_WORDS = LazyPattern(
    r"\bOOM(?:s|ed|ing|'?d)?\b|\bout[- ]of[- ](?:(?:GPU|device|CUDA|video) )?memory\b|\b(?:CUDA|GPU) memory (?:exception|error|"
    r"exhausted)\b",
    re.IGNORECASE,
)
_ERROR = LazyPattern(r"(?:Error|Exception|error|fatal|FATAL|abort\w*|terminated?|failed)\b")
_COUNTER = LazyPattern(r"^\s{0,3}[:=]\s{0,3}\d")
"""What stands behind the words in a table of counters, as memory_summary prints them ("CUDA OOMs: 0")."""

_HOST = LazyPattern(r"\b(?:host|CPU|system|node)[ -](?:memory|RAM)\b|\bRAM (?:usage|exhausted|full)", re.IGNORECASE)
_BACKEND = LazyPattern(r"\b(CUDA|HIP|ROCm|XPU|NPU|MPS|Metal)\b", re.IGNORECASE)
_REQUEST = LazyPattern(rf"(?:request(?:ed)?|allocat(?:e|ing|ion of))[ :]{{1,3}}(?:of )?{SIZE}")
_DEVICE = LazyPattern(r"\b(?:GPU|device|cuda)[ :]{1,2}(\d{1,4})\b")

_NO_FAILURE = "this is not a failure"
"""TensorFlow's allocator where it will do with less."""

_BACKENDS = {
    "cuda": "CUDA",
    "hip": "HIP",
    "rocm": "HIP",
    "xpu": "XPU",
    "npu": "NPU",
    "mps": "MPS",
    "metal": "MPS",
}


def recognize(text: str, *, is_report: bool) -> FailureText | None:
    """Words for a lack of memory.

    Args:
        text: a line of the log.
        is_report: whether the whole text is short enough to be somebody's report.
    """
    match = _WORDS.search(text)
    if match is None or _NO_FAILURE in text or is_unreal(text):
        return None
    if _COUNTER.search(text[match.end() :]):
        return None
    if not is_report and not _ERROR.search(text):
        return None
    figures = Figures(text)
    figures.clause("requested_bytes", _REQUEST)
    backend = _BACKEND.search(text)
    is_host = _HOST.search(text) is not None
    return FailureText(
        kind=FailureKind.HOST_OUT_OF_MEMORY if is_host else FailureKind.DEVICE_OUT_OF_MEMORY,
        backend="host" if is_host else _BACKENDS[backend[1].lower()] if backend else "",
        generation="words only",
        device_index=first_integer(_DEVICE, text),
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        end=max(match.end(), figures.end),
    )


WORDS_NEEDLES = (
    b"oom",
    b"out of memory",
    b"out-of-memory",
    b"memory exception",
    b"memory exhausted",
    b"memory error",
)

WORDS = Recognizer(WORDS_NEEDLES, lambda text: recognize(text, is_report=True))
WORDS_OF_A_LOG = Recognizer(WORDS_NEEDLES, lambda text: recognize(text, is_report=False))
