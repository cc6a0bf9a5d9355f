"""Memory of this process outside PyTorch's allocator: NCCL, cuDNN and other libraries.

## What it means

Libraries ask the driver for their own memory: NCCL for every communicator and channel, cuBLAS for
workspaces, other frameworks for all they do. PyTorch neither counts it nor can make room for it: it
gives cached memory back only for its own requests, so a library fails where PyTorch would not.

## How it is recognized

This process's use less what its allocator has reserved exceeds a context with its libraries (0.3 to
1.8 GiB) and is at least 5% of the device. Or NCCL (RCCL) itself reports that the driver refused it
memory.

## What to do

Leave the libraries room: lower the memory fraction or call torch.cuda.empty_cache() before new process
groups are made. Make fewer communicators, and smaller ones with NCCL_BUFFSIZE. Destroy groups that
are no longer used.

## What it is confused with

Another process (MEM601): where the message does not name this process's own use, the two cannot be
told apart. The context alone takes up to 1.8 GiB and is unavoidable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind, LogText
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import is_attributed
from advisor.rules.capacity import (
    CONTEXT_BYTES,
    OUTSIDE_BYTES,
    OUTSIDE_RATIO,
    is_capacity_failure,
    severity_of,
)
from advisor.rules.clues import quoted
from advisor.rules.device_shares import device_shares
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.shortage import shortage_of
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case

DEVICE_RATIO = 0.05
"""Share of the device below which what libraries hold beyond a context does not decide."""

DISTRIBUTED = frozenset({"deepspeed", "fsdp", "megatron", "accelerate", "lightning"})
"""Frameworks that bring NCCL with them."""


@rule("MEM602", "non-pytorch-memory")
def non_pytorch_memory(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """Libraries hold more than a context, or NCCL was refused memory."""
    if failure is not None and failure.kind is FailureKind.COLLECTIVE_ALLOCATION_FAILED:
        return _of_collective(failure)
    if failure is not None and is_capacity_failure(failure):
        shares = device_shares(failure)
        if shares is not None and failure.total_bytes is not None:
            if shares.own_bytes is not None:
                return _of_figures(failure, shares.own_bytes, failure.total_bytes)
            return _of_undivided(failure, shares.undivided_bytes, failure.total_bytes, log)
    return _of_ledger(ledger, failure, record, log)


def _of_collective(failure: Failure) -> Finding:
    return Finding(
        statement="NCCL asked the driver for memory and was refused: the device was full, and PyTorch cannot give its cache back for a "
        "library's request.",
        severity=severity_of(failure),
        confidence=0.85,
        observations=(plain_fact(f'the collective library reports it: "{quoted(failure.message)}"', failure.source),),
        actions=(
            Action(
                title="Leave NCCL room",
                change="torch.cuda.empty_cache()  # before new process groups are made; or "
                "torch.cuda.set_per_process_memory_fraction(0.95)",
                cost="some milliseconds once; or 5% less memory for tensors",
            ),
            *_fewer_communicators(),
        ),
        settles=_settles(),
        supersedes=("MEM607",),
    )


def _of_figures(failure: Failure, own: int, total: int) -> Finding | None:
    if own <= CONTEXT_BYTES or own < DEVICE_RATIO * total:
        return None
    decides = _decides(failure, own - CONTEXT_BYTES)
    text = f"this process holds {bytes_text(own)} outside PyTorch's allocator, {ratio_text(own / total)} of the device"
    return _finding(failure, own, bytes_fact(text, own, failure.source), score=0.8 if decides else 0.5)


def _of_undivided(failure: Failure, outside: int | None, total: int, log: LogText | None) -> Finding | None:
    if outside is None or (failure.requested_bytes or 0) > total or not _may_be_libraries(outside, total):
        return None  # no room would help a request beyond the whole device
    text = f"{bytes_text(outside)} is outside PyTorch's allocator; the message does not tell whether this process or another one holds it"
    return _finding(failure, outside, bytes_fact(text, outside, failure.source), score=_undivided_score(log))


def _may_be_libraries(outside: int, total: int) -> bool:
    """Whether memory of an unknown owner is more than a context, and not more than libraries ever take: half a device."""
    return max(OUTSIDE_BYTES, OUTSIDE_RATIO * total) <= outside <= total // 2


def _undivided_score(log: LogText | None) -> float:
    distributed = log is not None and ((log.world_size or 1) > 1 or bool(DISTRIBUTED & set(log.frameworks)))
    return 0.45 if distributed else 0.3


def _of_ledger(ledger: MemoryLedger | None, failure: Failure | None, record: AllocatorRecord | None, log: LogText | None) -> Finding | None:
    if ledger is None or not is_attributed(ledger) or not ledger.device_bytes:
        return None
    own = ledger.entry("non_pytorch")
    if own > CONTEXT_BYTES and own >= DEVICE_RATIO * ledger.device_bytes:
        text = f"{bytes_text(own)} is this process's and outside PyTorch's allocator"
        return _finding(failure, own, bytes_fact(text, own, ledger.source), score=0.6, failed=ledger.at is Moment.OOM)
    shortage = shortage_of(ledger, None, record)
    if shortage is None or own or not shortage.is_outside or not _may_be_libraries(shortage.outside, shortage.device):
        return None
    outside = shortage.outside
    text = f"{bytes_text(outside)} is outside PyTorch's allocator; the snapshot does not tell whether this process or another one holds it"
    return _finding(failure, outside, bytes_fact(text, outside, ledger.source), score=_undivided_score(log), failed=True)


def _decides(failure: Failure, excess: int) -> bool:
    """Whether the request would have fitted with a context alone outside the allocator."""
    if failure.requested_bytes is None or failure.free_bytes is None:
        return False
    return failure.free_bytes < failure.requested_bytes <= failure.free_bytes + excess


def _finding(failure: Failure | None, held: int, fact: Observation, *, score: float, failed: bool = False) -> Finding:
    excess = held - CONTEXT_BYTES
    return Finding(
        statement=f"{bytes_text(held)} of the device is outside PyTorch's allocator; a context with its libraries takes at most "
        f"{bytes_text(CONTEXT_BYTES)}. NCCL's communicators are the usual owner of the rest, {bytes_text(excess)}.",
        severity=Severity.ERROR if failed and failure is None else severity_of(failure),
        confidence=score,
        observations=(fact,),
        actions=_fewer_communicators(),
        settles=_settles(),
        impact=Impact(recoverable_bytes=excess),
    )


def _fewer_communicators() -> tuple[Action, ...]:
    return (
        Action(
            title="Make fewer and smaller communicators",
            change="NCCL_BUFFSIZE=1048576 NCCL_MAX_NCHANNELS=8  # in the environment; destroy_process_group(group) for groups not used "
            "any more",
            cost="large messages may be slower",
        ),
        Action(
            title="Load libraries when they are needed",
            change="CUDA_MODULE_LOADING=LAZY  # default since CUDA 12.2",
        ),
    )


def _settles() -> Action:
    return Action(
        title="Compare the driver's view with PyTorch's",
        change="free, total = torch.cuda.mem_get_info(); print(total - free - torch.cuda.memory_reserved())  "
        "# before and after the process groups are made; NCCL_DEBUG=INFO names its buffers",
    )


def fires() -> Case:
    """Forty communicators: 9 GiB of this process are outside the allocator."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            free_bytes=300 * MIB,
            allocated_bytes=68 * GIB,
            reserved_unallocated_bytes=1 * GIB,
            process_bytes=78 * GIB,
        )
    )


def clean() -> Case:
    """A context with cuBLAS, cuDNN and one communicator: 1.5 GiB."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            free_bytes=300 * MIB,
            allocated_bytes=76 * GIB,
            reserved_unallocated_bytes=1 * GIB,
            process_bytes=int(78.5 * GIB),
        )
    )
