"""Apple's unified memory: PyTorch's MPS allocator, old (GB, meaning GiB) and new (GiB), and Metal's own refusals.

aten/src/ATen/mps/MPSAllocator.mm: torch 1.12 printed "currently allocated", 1.13 "MPS allocated" and "other allocations", which is
left out where it is zero.
"""

from advisor.ingest.byte_sizes import SIZE
from advisor.ingest.failure_message import FailureText, Figures, Recognizer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

_TRIGGER = LazyPattern(r"MPS backend out of memory|MPS(?: device)? (?:ran )?out of memory")
_REFUSED_BUFFER = LazyPattern(rf"Invalid buffer size: {SIZE}")

_CLAUSES = (
    ("allocated_bytes", LazyPattern(rf"(?:MPS|currently) allocated: {SIZE}")),
    ("other_allocations_bytes", LazyPattern(rf"other allocations: {SIZE}")),
    ("allowed_bytes", LazyPattern(rf"max allowed: {SIZE}")),
    ("requested_bytes", LazyPattern(rf"Tried to allocate {SIZE}")),
)
_POOL = LazyPattern(r"on (private|shared) pool")
_OLD_UNIT = LazyPattern(r"\d [KMG]B\b")


def recognize(text: str) -> FailureText | None:
    """A refusal by the MPS allocator."""
    trigger = _TRIGGER.search(text)
    if trigger is None:
        return _refused_buffer(text)
    following = _TRIGGER.search(text, trigger.end())
    figures = Figures(text[: following.start()] if following else text)
    for name, pattern in _CLAUSES:
        figures.clause(name, pattern)
    pool = _POOL.search(figures.text)
    return FailureText(
        kind=FailureKind.UNIFIED_MEMORY_LIMIT,
        backend="MPS",
        generation="MPS GB (1024-based)" if _OLD_UNIT.search(figures.text) else "MPS GiB" if figures.found else "words only",
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail=f"{pool[1]} pool" if pool else "",
        gaps=tuple(figures.gaps),
        end=max(trigger.end(), figures.end, pool.end() if pool else 0),
    )


def _refused_buffer(text: str) -> FailureText | None:
    """A single buffer that is larger than Metal allows."""
    match = _REFUSED_BUFFER.search(text)
    if match is None:
        return None
    figures = Figures(text)
    figures.clause("requested_bytes", _REFUSED_BUFFER)
    return FailureText(
        kind=FailureKind.UNIFIED_MEMORY_LIMIT,
        backend="MPS",
        generation="Metal buffer limit",
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail="one buffer exceeds the largest that Metal allows",
        end=match.end(),
    )


MPS = Recognizer(
    (b"mps backend out of memory", b"mps ran out of memory", b"invalid buffer size"),
    recognize,
    is_flowing=True,
)
