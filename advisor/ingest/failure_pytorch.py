"""PyTorch's caching allocators: every wording since torch 1.0, of CUDA, HIP, XPU, NPU and the devices built after them.

Wordings, by the first version that printed them (c10/cuda/CUDACachingAllocator.cpp, c10/xpu, torch_npu, IPEX):

- 1.0: "(GPU 0; X total capacity; X already allocated; X free; X cached)", where "cached" is reserved but not allocated;
- 1.4: "X reserved in total by PyTorch" instead of "cached"; 1.8 may add "X allowed;" before it;
- 1.11: the same with a hint about max_split_size_mb;
- 2.1: sentences, with "capacty" misspelled, the device's processes and this process's whole use;
- 2.2: spelled right, the hint names expandable_segments; 2.4 adds private pools, which it counts as allocated;
- IPEX on GPUs whose blocks are addressed with 32 bits: "can NOT allocate memory block with size larger than 4GB", then the old list;
- 2.5: the class is torch.OutOfMemoryError; 2.9: the hint names PYTORCH_ALLOC_CONF or docs.pytorch.org.
"""

import re

from advisor.ingest.byte_sizes import SIZE, byte_size
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import BLOCK_LIMIT, FailureKind, ProcessMemory

_TRIGGER = LazyPattern(r"\b(CUDA|HIP|XPU|NPU|MTIA|MLU|GCU|MUSA|SUPA|MACA|PPU|TXDA|GPU)[- ]?(?i:out[- ]of[- ]memory|OOM\b)")
_CLASS = LazyPattern(r"\btorch\.(?:(?P<module>cuda|xpu|npu|hpu)\.|_C\.)?OutOfMemoryError\b")
_BLOCK_LIMIT = LazyPattern(r"can NOT allocate memory block with size larger than \d{1,4} ?GB", re.IGNORECASE)
_AT_EXABYTES = LazyPattern(r"Tried to allocate more than 1 ?EB memory")

_REQUESTED = LazyPattern(rf"[Tt]r(?:ied|ying) to allocate {SIZE}")
_REQUEST_IN_WORDS = LazyPattern(rf"(?:request(?:ed)?|allocat(?:e|ing|ion of))[ :]{{1,3}}(?:of )?{SIZE}")
_TOTAL_OLD = LazyPattern(rf"{SIZE} total capacity")
_ALLOCATED_OLD = LazyPattern(rf"{SIZE} already allocated")
_FREE_OLD = LazyPattern(rf"{SIZE} free\b")
_CACHED_OLD = LazyPattern(rf"{SIZE} cached\b")
_RESERVED_OLD = LazyPattern(rf"{SIZE} reserved in total")
_ACTIVE_OLD = LazyPattern(rf"{SIZE} current active")
_ALLOWED = LazyPattern(rf"{SIZE} allowed\b")
_TOTAL = LazyPattern(rf"has a total capaci?ty of {SIZE}")
_FREE = LazyPattern(rf"of which {SIZE} is\b")
_PROCESS = LazyPattern(rf"Process (\d{{1,10}}) has {SIZE} memory in use")
_OWN = LazyPattern(rf"[Tt]his process has {SIZE} memory in use")
_ALLOCATED = LazyPattern(rf"Of the allocated memory {SIZE} is allocated")
_PRIVATE = LazyPattern(rf"with {SIZE} allocated in private pools")
_UNALLOCATED = LazyPattern(rf"{SIZE} is reserved by PyTorch but unallocated")
_DEVICE = LazyPattern(r"\b(?:GPU|NPU|XPU|MLU|GCU|HPU|device)[ :]{1,2}(\d{1,4})\b")

_LIST = LazyPattern(r"\((?:GPU|NPU|XPU|MLU|GCU|HPU|device)[ :]{1,2}\d{1,4}\b|total capacity;|already allocated;")

_HINT_LENGTH = 200
"""Characters behind the old list in which its hint stands."""

_WORDS_REACH = 300
"""Characters behind the words "out of memory" in which a size may belong to them, where no known wording follows."""

_HINT = LazyPattern(r"If reserved (?:but unallocated )?memory is")
_LISTED_PROCESS = LazyPattern(r"\b(\d{2,8})[ :]{1,3}(\d{1,7}) ?(MiB)\b")

_OLD_FORKS = {"NPU": "torch_npu", "XPU": "IPEX"}
"""Backends that printed the old list outside of PyTorch itself."""

_MOST_PROCESSES = 64
"""Processes that are taken from one message."""

EXABYTE_BYTES = 2**60
"""The bound that the allocator prints as 1EB (c10 one_exa_bytes)."""

_OLD_CLAUSES = (
    ("total_bytes", _TOTAL_OLD),
    ("allocated_bytes", _ALLOCATED_OLD),
    ("free_bytes", _FREE_OLD),
    ("reserved_unallocated_bytes", _CACHED_OLD),
    ("allowed_bytes", _ALLOWED),
    ("reserved_bytes", _RESERVED_OLD),
)
_CLAUSES = (
    ("total_bytes", _TOTAL),
    ("free_bytes", _FREE),
    ("process_bytes", _OWN),
    ("allowed_bytes", _ALLOWED),
    ("allocated_bytes", _ALLOCATED),
    ("private_pool_bytes", _PRIVATE),
    ("reserved_unallocated_bytes", _UNALLOCATED),
)
_CLAUSE_NAMES = {
    "total_bytes": "the device's capacity",
    "free_bytes": "what was free",
    "allocated_bytes": "what was allocated",
    "reserved_unallocated_bytes": "what was reserved but unallocated",
}


def recognize(text: str) -> FailureText | None:
    """An out-of-memory message of PyTorch's allocators."""
    trigger, named, limit = _TRIGGER.search(text), _CLASS.search(text), _BLOCK_LIMIT.search(text)
    found = [match for match in (trigger, named, limit) if match]
    if not found:
        return None
    start = min(match.start() for match in found)
    end = max(match.end() for match in found)
    backend = "XPU" if limit is not None else _backend(trigger, named)
    if _AT_EXABYTES.search(text):
        return _beyond_an_exabyte(text, backend)
    text = _until_next(text, start, end)
    is_sentence = _TOTAL.search(text) is not None
    is_list = not is_sentence and _LIST.search(text) is not None
    figures = Figures(text if is_sentence else _of_list(text) if is_list else text[: end + _WORDS_REACH])
    if not figures.clause("requested_bytes", _REQUESTED):
        figures.clause("requested_bytes", _REQUEST_IN_WORDS)
    for name, pattern in _CLAUSES if is_sentence else _OLD_CLAUSES if is_list else ():
        figures.clause(name, pattern)
    processes = _processes(figures)
    _complete(figures.found)
    device = first_integer(_DEVICE, figures.text)
    generation = BLOCK_LIMIT if limit is not None else _generation(figures.text, backend, is_sentence=is_sentence)
    return FailureText(
        kind=FailureKind.DEVICE_OUT_OF_MEMORY,
        backend=backend,
        generation=generation,
        device_index=device,
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        processes=processes,
        detail=limit[0] if limit is not None else _detail(figures),
        gaps=(*figures.gaps, *_cut(figures.found, generation)),
        end=max(end, figures.end),
    )


def _of_list(text: str) -> str:
    """The text up to the parenthesis that closes the old wording's list, and the hint behind it."""
    opened = _LIST.search(text)
    closed = text.find(")", opened.end()) if opened else -1
    if closed < 0:
        return text
    hint = _HINT.search(text, closed, closed + 40)
    return text[: closed + _HINT_LENGTH] if hint else text[: closed + 1]


def _backend(trigger: re.Match[str] | None, named: re.Match[str] | None) -> str:
    if trigger is not None:
        return "" if trigger[1] == "GPU" else trigger[1]
    module = named.groupdict().get("module") if named else None
    return module.upper() if module else ""


def _until_next(text: str, start: int, end: int) -> str:
    """The text up to the next message of the same kind."""
    following = _TRIGGER.search(text, max(end, start + 1))
    while following is not None and following.start() - end < 3:  # noqa: PLR2004 - "OutOfMemoryError: CUDA out of memory"
        following = _TRIGGER.search(text, following.end())
    return text[: following.start()] if following else text


def _processes(figures: Figures) -> tuple[ProcessMemory, ...]:
    """The processes that a message lists: its own sentences, or what somebody pasted from nvidia-smi behind it."""
    found: list[ProcessMemory] = []
    for match in _PROCESS.finditer(figures.text):
        size = byte_size(match[2], match[3])
        found.append(ProcessMemory(pid=int(match[1]), used_bytes=size.size_bytes if size else None))
        figures.end = max(figures.end, match.end())
        if size is None:
            figures.gaps.append(f"the driver did not know the memory of process {match[1]}")
        else:
            figures.resolution_bytes = max(figures.resolution_bytes or 0, size.resolution_bytes)
    if not found and "nvidia-smi" in figures.text:
        for match in _LISTED_PROCESS.finditer(figures.text):
            size = byte_size(match[2], match[3])
            if size is not None:
                found.append(ProcessMemory(pid=int(match[1]), used_bytes=size.size_bytes))
                figures.resolution_bytes = max(figures.resolution_bytes or 0, size.resolution_bytes)
                figures.end = max(figures.end, match.end())
    return tuple(found[:_MOST_PROCESSES])


def _complete(found: dict[str, int]) -> None:
    """The third of allocated, reserved and unallocated, where two are printed."""
    allocated, reserved = found.get("allocated_bytes"), found.get("reserved_bytes")
    unallocated = found.get("reserved_unallocated_bytes")
    if allocated is None:
        return
    if reserved is None and unallocated is not None:
        found["reserved_bytes"] = allocated + unallocated
    elif reserved is not None and unallocated is None and reserved >= allocated:
        found["reserved_unallocated_bytes"] = reserved - allocated


def _generation(text: str, backend: str, *, is_sentence: bool) -> str:
    """The first version that printed this wording."""
    if not is_sentence:
        return _generation_of_list(text, backend)
    if "capacty" in text:
        return "torch 2.1"
    if "PYTORCH_ALLOC_CONF" in text or "docs.pytorch.org" in text:
        return "torch 2.9"
    if "torch.OutOfMemoryError" in text:
        return "torch 2.5"
    return "torch 2.4" if _PRIVATE.search(text) else "torch 2.2"


def _generation_of_list(text: str, backend: str) -> str:
    if _TOTAL_OLD.search(text) is None:
        return "words only"
    if backend in _OLD_FORKS:
        return _OLD_FORKS[backend]
    if _RESERVED_OLD.search(text):
        return "torch 1.11 reserved" if _HINT.search(text) else "torch 1.4 reserved"
    return "torch 1.x cached" if _CACHED_OLD.search(text) else "torch 1.x cut"


def _detail(figures: Figures) -> str:
    """What the message says besides its figures: the allocator's hint, active memory."""
    said: list[str] = []
    active = _ACTIVE_OLD.search(figures.text)
    if active is not None:
        said.append(active[0])
    hint = re.search(r"try setting (?:PYTORCH_\w{1,30}=)?(expandable_segments|max_split_size_mb)", figures.text)
    if hint is not None:
        said.append(f"the message's standing hint names {hint[1]}")
    return "; ".join(said)


def _cut(found: dict[str, int], generation: str) -> tuple[str, ...]:
    """What a message of this wording would have said and does not."""
    if "total_bytes" not in found or generation == "words only":
        return ()
    expected = [name for name in _CLAUSE_NAMES if name not in found]
    if generation in {"IPEX", BLOCK_LIMIT}:
        expected = [name for name in expected if name != "free_bytes"]
    return (f"the message is cut: it lacks {', '.join(_CLAUSE_NAMES[name] for name in expected)}",) if expected else ()


def _beyond_an_exabyte(text: str, backend: str) -> FailureText:
    """A size that overflowed: no memory was asked for that any machine has, so this is another error."""
    match = _AT_EXABYTES.search(text)
    return FailureText(
        kind=FailureKind.NOT_OUT_OF_MEMORY,
        backend=backend,
        generation="more than 1EB",
        figures={"requested_bytes": EXABYTE_BYTES},
        resolution_bytes=0,
        detail="a request of more than 1EB: a negative or garbage size, not a lack of memory",
        gaps=("the request is only known to exceed 2^60 bytes",),
        end=match.end() if match else 0,
    )


PYTORCH = Recognizer(
    (b"out of memory", b"outofmemory", b"out-of-memory", b" oom", b"can not allocate memory block"), recognize, is_flowing=True
)
