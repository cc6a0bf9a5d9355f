"""More memory was free than was asked for, and the request failed all the same.

## What it means

The device was not full, so making the model smaller is not the remedy. Something else refused: the
driver, a limit on this process, the host (Windows backs device memory with its page file), or another
process that held the memory for that moment.

## How it is recognized

By arithmetic: free is at least what was asked of the driver. PyTorch's message prints the size of the
segment it asked for (2 MiB, 20 MiB, or the tensor rounded up to 2 MiB), a snapshot's event the tensor's
own, which is rounded here in the same way. Where the two differ by less than 5%, the rule says that
they are too near to tell.

## What to do

On Windows enlarge the page file. Look for limits (cgroup, ulimit -v, MPS, virtual GPUs), for a process that
came and went, and try the same allocation alone; if that fails too, the driver is at fault.

## What it is confused with

A device that is all but full: below 5% free, capacity remains the likelier reason, and this is only a candidate.

A cap that the message names is MEM605; a single allocation that the platform does not allow MEM707. A
device that is nearly full (MEM102, MEM201) has less free than was asked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.analysis.driver_requests import asked_of_driver
from advisor.model.dataclass import dataclass
from advisor.model.finding import Action, Finding, RuledOut, Severity
from advisor.rules.capacity import CROWDED_RATIO, NEAR_RATIO, is_capacity_failure, severity_of
from advisor.rules.facts import bytes_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure, LogText
    from advisor.model.memory import AllocatorRecord, MemoryLedger

AMPLE_FACTOR = 2.0
"""Free over request from which no rounding and no fragmentation of the driver explains it."""

_WINDOWS = re.compile(r"[A-Za-z]:\\|\\site-packages\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    requested: int
    free: int
    slack: int
    source: Source
    total: int | None = None

    @property
    def is_crowded(self) -> bool:
        """Whether the device was nearly full, whatever was free."""
        return self.total is not None and self.free < CROWDED_RATIO * self.total


@rule("MEM708", "request-fits-free-memory")
def request_fits_free_memory(
    failure: Failure | None,
    record: AllocatorRecord | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
) -> Finding | None:
    """Free is at least what was asked of the driver."""
    refused = _of_message(failure) or _of_record(record, ledger)
    if refused is None or refused.free < refused.requested:
        return None
    near = refused.is_crowded or refused.free - refused.requested <= max(refused.slack, NEAR_RATIO * refused.requested)
    ample = refused.free >= AMPLE_FACTOR * refused.requested
    windows = _is_windows(failure, log)
    return Finding(
        statement=_statement(refused, near=near),
        severity=severity_of(failure) if failure is not None else Severity.ERROR,
        confidence=0.3 if refused.is_crowded else 0.45 if near else 0.9 if ample else 0.8,
        observations=(
            bytes_fact(
                f"{bytes_text(refused.requested)} was asked of the driver",
                refused.requested,
                refused.source,
            ),
            bytes_fact(f"{bytes_text(refused.free)} was free", refused.free, refused.source),
        ),
        actions=_actions(windows=windows),
        settles=Action(
            title="Try the same allocation alone, and watch the device meanwhile",
            change=f"torch.empty({refused.requested}, dtype=torch.uint8, device='cuda')  # in a fresh python; "
            "nvidia-smi -l 1 in another terminal during the failing run",
        ),
        ruled_out=() if near else _ruled_out(refused),
    )


def _is_windows(failure: Failure | None, log: LogText | None) -> bool:
    if log is not None and log.mentioned("windows", "wsl") is not None:
        return True
    return failure is not None and any(_WINDOWS.search(frame.filename) for frame in failure.frames)


def _of_message(failure: Failure | None) -> _Refused | None:
    if failure is None or not is_capacity_failure(failure):
        return None
    requested, free = failure.requested_bytes, failure.free_bytes
    if requested is None or free is None:
        return None
    slack = 2 * (failure.resolution_bytes or 0)
    return _Refused(requested=requested, free=free, slack=slack, source=failure.source, total=failure.total_bytes)


def _of_record(record: AllocatorRecord | None, ledger: MemoryLedger | None) -> _Refused | None:
    if record is None or record.oom_requested_bytes is None or record.oom_free_bytes is None:
        return None
    return _Refused(
        requested=asked_of_driver(record.oom_requested_bytes),
        free=record.oom_free_bytes,
        slack=0,
        source=record.source,
        total=ledger.device_bytes if ledger is not None and ledger.device_index == record.device_index else None,
    )


def _statement(refused: _Refused, *, near: bool) -> str:
    asked, free = bytes_text(refused.requested), bytes_text(refused.free)
    if refused.is_crowded:
        return (
            f"{free} was free and {asked} was refused on a device that was otherwise full: too little free memory to say "
            "that capacity was not the reason."
        )
    if near:
        return (
            f"{free} was free and {asked} was refused: too near to each other to tell whether the "
            "device was full or something else refused."
        )
    return f"{asked} was refused although {free} was free: the device was not full, and a smaller model is not the remedy."


def _actions(*, windows: bool) -> tuple[Action, ...]:
    page_file = Action(
        title="Windows: enlarge the page file",
        change="System > Advanced > Performance > Virtual memory: at least the device's memory; then restart",
        cost="disk space",
    )
    others = (
        Action(
            title="Look for a limit on this process",
            change="ulimit -v; cat /sys/fs/cgroup/memory.max; env | grep -E 'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT|CUDA_VISIBLE_DEVICES'",
        ),
        Action(
            title="Let the allocator map memory in small pages",
            change="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # Linux, torch 2.1 and later",
            cost="was not replayed: it has helped in such cases where the driver lacked one contiguous range",
        ),
        Action(
            title="Restart or update the driver",
            change="nvidia-smi --query-gpu=driver_version --format=csv",
            cost="ends all jobs of the device",
        ),
    )
    return (page_file, *others) if windows else (*others, page_file)


def _ruled_out(refused: _Refused) -> tuple[RuledOut, ...]:
    because = f"{bytes_text(refused.free)} was free, {bytes_text(refused.requested)} was asked for"
    return tuple(RuledOut(code=code, because=because) for code in ("MEM102", "MEM201"))


def fires() -> Case:
    """64 MiB is refused with 8.4 GiB free."""
    return a_case(
        a_failure(
            total_bytes=12 * GIB,
            requested_bytes=64 * MIB,
            free_bytes=int(8.4 * GIB),
            allocated_bytes=int(2.6 * GIB),
            reserved_unallocated_bytes=20 * MIB,
        )
    )


def clean() -> Case:
    """20 MiB is refused with 11 MiB free, on a device of 24 GiB."""
    return a_case(
        a_failure(
            total_bytes=int(23.65 * GIB),
            requested_bytes=20 * MIB,
            free_bytes=11 * MIB,
            allocated_bytes=23 * GIB,
            reserved_unallocated_bytes=190 * MIB,
        )
    )
