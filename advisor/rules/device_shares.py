"""Who holds the part of a device that is outside PyTorch's allocator, as far as a message's figures tell.

What a message tells depends on its generation. Until torch 2.0 it prints total, free and reserved, so that only the sum of everything
outside is known. Later ones ask NVML for the processes on the device: "this process has 23.6 GiB memory in use" is this process with its
context and its libraries, "Process 4711 has ..." another one. In a container the process does not recognise its own pid, so that the
one "Process ..." of a message is mostly this process itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.rules.capacity import CONTEXT_BYTES, reserved_bytes

if TYPE_CHECKING:
    from advisor.model.failure import Failure, ProcessMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShares:
    """The memory outside PyTorch's allocator; None is unknown, and the unknown ones are together in `undivided_bytes`.

    Attributes:
        own_bytes: of this process: its context, libraries, NCCL.
        others_bytes: of other processes, and what the driver keeps for itself (some hundred MiB).
        undivided_bytes: the sum of both where the message does not tell one from the other.
        named: the other processes that the message names.
    """

    own_bytes: int | None = None
    others_bytes: int | None = None
    undivided_bytes: int | None = None
    named: tuple[ProcessMemory, ...] = ()


def is_oversubscribed(failure: Failure) -> bool:
    """Whether the allocator holds more than the device has: Windows lends host memory, and no sum closes."""
    held, total = reserved_bytes(failure) or failure.allocated_bytes, failure.total_bytes
    if held is None or total is None:
        return False
    return held > total + (failure.resolution_bytes or 0)


def device_shares(failure: Failure) -> DeviceShares | None:
    """Divide what is outside the allocator; None where the figures are missing or do not close."""
    total, free, reserved = failure.total_bytes, failure.free_bytes, reserved_bytes(failure)
    if total is None or free is None or reserved is None or is_oversubscribed(failure):
        return None
    if failure.process_bytes is not None:
        return _divided(failure, failure.process_bytes, total - free, reserved, failure.other_processes)
    own = _own(failure, total - free, reserved)
    if own is not None and own.used_bytes is not None:
        rest = tuple(process for process in failure.other_processes if process is not own)
        return _divided(failure, own.used_bytes, total - free, reserved, rest)
    outside = max(0, total - free - reserved)
    named = sum(process.used_bytes or 0 for process in failure.other_processes)
    if named:
        return DeviceShares(
            own_bytes=max(0, outside - named),
            others_bytes=min(named, outside),
            named=failure.other_processes,
        )
    return DeviceShares(undivided_bytes=outside)


def _divided(failure: Failure, own: int, used: int, reserved: int, named: tuple[ProcessMemory, ...]) -> DeviceShares:
    named = tuple(process for process in named if failure.own_pid is None or process.pid != failure.own_pid)
    return DeviceShares(own_bytes=max(0, own - reserved), others_bytes=max(0, used - own), named=named)


def _own(failure: Failure, used: int, reserved: int) -> ProcessMemory | None:
    """Which of the named processes is this one: by pid, because both together exceed what is in use, or by its size."""
    slack = failure.resolution_bytes or 0
    candidates = []
    for process in failure.other_processes:
        if process.used_bytes is None or process.used_bytes + slack < reserved:
            continue
        if process.pid == failure.own_pid or process.used_bytes + reserved > used + 2 * slack:
            return process
        if process.used_bytes - reserved <= CONTEXT_BYTES:
            candidates.append(process)
    return min(candidates, key=lambda process: process.used_bytes or 0, default=None)
