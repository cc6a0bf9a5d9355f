"""A ledger of device memory from the words of one out-of-memory message.

The message tells sums, not what was in them: what PyTorch had allocated stands in `unattributed`. What it does tell is exact, so the
entries sum to the device's capacity as it was printed; the printed digits' own uncertainty lies in `unattributed` too.
"""

from advisor.model.failure import Failure, FailureKind
from advisor.model.memory import BLOCKS, Basis, MemoryLedger, Moment

DRIVER_SHARE_BYTES = 1024**3
"""Memory beside this process and what is free that the driver itself may hold (reserved framebuffer, its own contexts of a few hundred
MiB); more of it is another process, whether or not the driver could name one."""


def text_ledger(failure: Failure) -> MemoryLedger | None:
    """The ledger at the moment of a failure; None without the device's capacity, or for other kinds of failure.

    Entries of BLOCKS that the message says nothing of are None. The others sum to `device_bytes` exactly:

    - `free`, `allocator_cached` (reserved but unallocated), `private_pools`: as printed;
    - `non_pytorch`: the process's whole use less what PyTorch had reserved, where the message has the former;
    - `other_processes`: the sum of those it lists, or, where the process's use is known and nothing is listed, what is left beyond
      DRIVER_SHARE_BYTES;
    - `unattributed`: the rest, above all what PyTorch had allocated.

    Where the figures cannot be parts of one device (Windows lets a process allocate more than the card has) only `free` is kept, and
    notes and gaps say why.
    """
    total = failure.total_bytes
    if failure.kind is not FailureKind.DEVICE_OUT_OF_MEMORY or total is None:
        return None
    notes: list[str] = []
    gaps: list[str] = []
    known = _contradiction_free(failure, total, notes, gaps)
    entries: dict[str, int | None] = dict.fromkeys(BLOCKS, None)
    entries.update(known)
    entries["unattributed"] = total - sum(known.values())
    if failure.device_index is None:
        notes.append("the message does not say which device it is")
    if failure.allowed_bytes is not None and failure.allowed_bytes < total:
        notes.append(f"this process is capped at {failure.allowed_bytes:,} bytes of the device")
    return MemoryLedger(
        source=failure.source,
        rank=failure.rank,
        gaps=(*failure.gaps, *gaps),
        device_index=failure.device_index or 0,
        at=Moment.OOM,
        device_bytes=total,
        entries=entries,
        basis=Basis.TEXT,
        allocated_bytes=failure.allocated_bytes,
        reserved_bytes=failure.reserved_bytes,
        notes=tuple(notes),
    )


def _contradiction_free(failure: Failure, total: int, notes: list[str], gaps: list[str]) -> dict[str, int]:
    """The entries that the message tells, none negative, together at most the device."""
    known = _told(failure, notes)
    allocated_besides = (failure.allocated_bytes or 0) - known.get("private_pools", 0)
    excess = sum(known.values()) + max(0, allocated_besides) - total
    if excess <= _tolerance(failure):
        return _trimmed(known, total)
    notes.append(
        f"PyTorch's figures exceed the device by {excess:,} bytes: memory beyond the card is in use (Windows pages to host memory),"
        " or the figures were not taken at one moment"
    )
    gaps.append("the figures of the message overlap, so only what was free could be told apart")
    free = known.get("free")
    return {"free": min(free, total)} if free is not None else {}


def _told(failure: Failure, notes: list[str]) -> dict[str, int]:
    """What the message tells by itself."""
    printed = {
        "free": failure.free_bytes,
        "allocator_cached": failure.reserved_unallocated_bytes,
        "private_pools": failure.private_pool_bytes,
    }
    known = {block: size for block, size in printed.items() if size is not None}
    if failure.allocated_bytes is not None:
        held = failure.allocated_bytes - known.get("private_pools", 0)
        notes.append(f"unattributed holds {held:,} bytes that PyTorch had allocated: the message does not say what they were")
    own, others = _processes(failure, notes)
    if others:
        known["other_processes"] = sum(others)
    if failure.reserved_bytes is None:
        return known
    if own is None:
        notes.append(
            "the message does not say what this process used in all, so what neither PyTorch nor the free memory explains cannot be"
            " split between other processes and memory outside PyTorch"
        )
        return known
    beside = own - failure.reserved_bytes
    if beside >= 0:
        known["non_pytorch"] = beside
    else:
        notes.append("this process used less than PyTorch had reserved: the driver's figure lags, or counts only a part")
    _add_unlisted(failure, known, own, notes)
    return known


def _processes(failure: Failure, notes: list[str]) -> tuple[int | None, list[int]]:
    """This process's whole use, and that of the others that are listed.

    In a container the driver's process ids are the host's, so PyTorch does not find itself and lists itself as "Process N". The one
    listed process that is large enough to be it is taken for it, where the device would overflow otherwise.
    """
    listed = [process for process in failure.other_processes if process.used_bytes is not None]
    sizes = {process.pid: process.used_bytes or 0 for process in listed}
    if failure.process_bytes is not None:
        return failure.process_bytes, [size for pid, size in sizes.items() if pid != failure.own_pid]
    if failure.own_pid in sizes:
        own = sizes.pop(failure.own_pid)
        return own, list(sizes.values())
    reserved, total, free = failure.reserved_bytes, failure.total_bytes, failure.free_bytes
    if reserved is None or total is None or free is None:
        return None, list(sizes.values())
    candidates = [pid for pid, size in sizes.items() if size >= reserved]
    if len(candidates) == 1 and sum(sizes.values()) + reserved > total - free + _tolerance(failure):
        notes.append(f"process {candidates[0]} is taken for this one: the device would overflow if it were another")
        own = sizes.pop(candidates[0])
        return own, list(sizes.values())
    return None, list(sizes.values())


def _add_unlisted(failure: Failure, known: dict[str, int], own: int, notes: list[str]) -> None:
    """Memory of processes that the driver did not list (another container's, for one)."""
    if failure.total_bytes is None or failure.free_bytes is None or "other_processes" in known:
        return
    outside = failure.total_bytes - failure.free_bytes - own
    if outside > DRIVER_SHARE_BYTES:
        known["other_processes"] = outside
        notes.append("no other process is listed, yet more is in use outside this one than a driver keeps")


def _tolerance(failure: Failure) -> int:
    """By how much sums of the printed figures may miss: half a digit of each of at most six."""
    return 6 * (failure.resolution_bytes or 0)


def _trimmed(known: dict[str, int], total: int) -> dict[str, int]:
    """The same, with the digits' rounding taken from the largest entries where the sum would exceed the device."""
    trimmed = dict(known)
    excess = sum(trimmed.values()) - total
    while excess > 0:
        largest = max(trimmed, key=lambda block: trimmed[block])
        taken = min(excess, trimmed[largest])
        trimmed[largest] -= taken
        excess -= taken
    return trimmed
