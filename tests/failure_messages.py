"""Builders of the messages that tests read: every wording with numbers of our own."""

from decimal import Decimal

from advisor.ingest.log_text import read_log
from advisor.model.failure import Failure, LogText

GIB = 2**30
MIB = 2**20
KIB = 2**10

OLD_HINT = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid"
    " fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
NEW_HINT = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation"
    " for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)


def old_cuda(  # noqa: PLR0913 - the clauses of the message
    *,
    requested: str = "1.50 GiB",
    device: int = 0,
    total: str = "15.90 GiB",
    allocated: str = "11.25 GiB",
    free: str = "768.44 MiB",
    tail: str = "13.75 GiB reserved in total by PyTorch)",
) -> str:
    """The list in parentheses of torch 1.x."""
    return (
        f"RuntimeError: CUDA out of memory. Tried to allocate {requested} (GPU {device}; {total} total"
        f" capacity; {allocated} already allocated; {free} free; {tail}"
    )


def new_cuda(  # noqa: PLR0913 - the clauses of the message
    *,
    prefix: str = "torch.OutOfMemoryError: CUDA",
    requested: str = "2.25 GiB",
    device: int = 0,
    total: str = "79.15 GiB",
    free: str = "1.31 GiB",
    processes: str = "Including non-PyTorch memory, this process has 77.83 GiB memory in use. ",
    allocated: str = "70.50 GiB",
    private: str = "",
    unallocated: str = "6.75 GiB",
    hint: str = NEW_HINT,
) -> str:
    """The sentences of torch 2.x."""
    return (
        f"{prefix} out of memory. Tried to allocate {requested}. GPU {device} has a total capacity of"
        f" {total} of which {free} is free. {processes}Of the allocated memory {allocated} is"
        f" allocated by PyTorch, {private}and {unallocated} is reserved by PyTorch but unallocated.{hint}"
    )


def traceback(*frames: tuple[str, int, str, str]) -> str:
    """A traceback's header and frames (file, line, function, code), outermost first."""
    lines = ["Traceback (most recent call last):"]
    for file, line, function, code in frames:
        lines.append(f'  File "{file}", line {line}, in {function}')
        if code:
            lines.append(f"    {code}")
    return "\n".join(lines)


def printed(number: str, unit_bytes: int) -> int:
    """Bytes of a printed number, as whoever printed it rounded them."""
    return round(Decimal(number) * unit_bytes)


def failures_of(text: str | bytes) -> list[Failure]:
    """The failures that a log tells."""
    raw = text.encode() if isinstance(text, str) else text
    return [each for each in read_log(raw, "train.log") if isinstance(each, Failure)]


def the_failure(text: str | bytes) -> Failure:
    """The one failure that a log tells."""
    found = failures_of(text)
    assert len(found) == 1, found
    return found[0]


def the_log(text: str | bytes) -> LogText:
    """What a log tells besides its failures."""
    raw = text.encode() if isinstance(text, str) else text
    described = read_log(raw, "train.log")[0]
    assert isinstance(described, LogText)
    return described
