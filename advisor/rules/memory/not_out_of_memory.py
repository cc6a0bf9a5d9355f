"""The text looks like a lack of memory, and the error is another one.

## What it means

Errors on the device surface late, at the next call that waits for it, which is often an allocation.
A size that is negative or garbage becomes a request of more than an exabyte. A bus error in a data loader
without workers has nothing to do with shared memory.

## How it is recognized

By the wording: a device-side assert, an illegal address, a missing kernel image, a collective's
timeout, too many open files, a full disk, a kernel that needs more of a multiprocessor than there is, or
a request of more than 1 EB.

## What to do

Make the error appear where it happens (CUDA_LAUNCH_BLOCKING=1), and read the first error of the log
rather than the last.

## What it is confused with

Real out-of-memory messages print a request and a capacity. A cuBLAS handle that is "not initialized"
can be either (MEM607).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass, replace
from advisor.model.failure import Failure, FailureKind, LogText
from advisor.model.finding import Action, Finding, Observation
from advisor.rules.capacity import severity_of
from advisor.rules.clues import quoted
from advisor.rules.facts import plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import a_case, a_failure
from advisor.rules.worker_words import has_no_workers, mapped_file

if TYPE_CHECKING:
    from advisor.model.case import Case

EXABYTE_BYTES = 2**60
"""No machine has that much: such a size is negative or garbage."""

_BLOCKING = Action(
    title="Make the error appear where it happens",
    change="CUDA_LAUNCH_BLOCKING=1 python train.py  # then read the first error, not the last",
    cost="slower; for this run only",
)
_SANITIZE = Action(
    title="Find the access",
    change="compute-sanitizer python train.py  # on a small input",
    cost="ten to a hundred times slower",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Other:
    """What the error is, and what to do first."""

    what: str
    actions: tuple[Action, ...]
    score: float = 0.88


def _said(what: str, title: str, change: str, cost: str = "", *, score: float = 0.88) -> _Other:
    return _Other(what=what, actions=(Action(title=title, change=change, cost=cost),), score=score)


_INDEX = _Other(
    what="a kernel's own check failed, mostly an index or a label out of range",
    actions=(
        Action(
            title="Check indices and labels against their sizes",
            change="assert ids.max() < embedding.num_embeddings and labels.max() < class_count  # or run one batch on the CPU",
        ),
        _BLOCKING,
    ),
    score=0.92,
)
_ACCESS = _Other(what="a kernel read or wrote outside its memory", actions=(_BLOCKING, _SANITIZE), score=0.9)
_LAUNCH = _Other(what="a kernel could not be launched or was ended", actions=(_BLOCKING, _SANITIZE))

OTHERS = {
    "device-side assert": _INDEX,
    "index out of range": _INDEX,
    "illegal memory access": _ACCESS,
    "misaligned address": _ACCESS,
    "illegal instruction": _ACCESS,
    "launch failure": _LAUNCH,
    "invalid configuration": _LAUNCH,
    "launch resources": _LAUNCH,
    "invalid device": _said(
        "a device number does not exist",
        "Compare numbers with devices",
        "nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES",
    ),
    "no kernel image": _said(
        "this build of PyTorch has no code for the device",
        "Install a build for the device's architecture",
        "python -c 'import torch; print(torch.cuda.get_arch_list(), torch.cuda.get_device_capability())'",
    ),
    "driver too old": _said(
        "the driver is older than this build of PyTorch needs",
        "Update the driver, or install an older build",
        "nvidia-smi  # compare its CUDA version with torch.version.cuda",
    ),
    "uncorrectable memory error": _said(
        "the device's memory is faulty",
        "Take the device out of service",
        "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
    ),
    "execution failed": _Other(
        what="a library's kernel failed; mostly an earlier error on the device, or a shape or type that it does not support",
        actions=(_BLOCKING,),
        score=0.7,
    ),
    "collective timeout": _said(
        "a collective did not finish: one rank did not arrive",
        "Find the rank that did not arrive",
        "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1  # and look at every rank's log: the one without a timeout is it",
    ),
    "engine timeout": _said(
        "the engine's worker did not answer",
        "Read the worker's log above it",
        "look for the first error of the worker, and for Xid in dmesg",
        score=0.75,
    ),
    "kernel resources": _said(
        "a Triton kernel needs more of a multiprocessor than it has",
        "Use smaller blocks or fewer stages",
        "BLOCK sizes halved, num_stages=2 in the kernel's configuration",
        "the kernel may be slower",
    ),
    "file descriptors": _said(
        "the limit of open files is reached",
        "Share tensors by files, or raise the limit",
        'torch.multiprocessing.set_sharing_strategy("file_system")  # or: ulimit -n 65536',
    ),
    "disk full": _said("a disk is full", "Free space where it writes", "df -h; du -sh /tmp", score=0.75),
    "more than 1EB": _said(
        "the size asked for is negative or garbage, as after a failed or timed-out exchange of sizes between ranks",
        "Read the first error of the log, and check the size that is computed",
        "print the shape before the allocation; look for an NCCL timeout above",
        score=0.92,
    ),
}
"""By the wording of the message (`Failure.generation`)."""

UNKNOWN = _Other(what="another error on the device", actions=(_BLOCKING,), score=0.6)

NO_WORKERS = _Other(
    what="a bus error without worker processes does not come from their shared memory; a file that is mapped and was cut or "
    "lies on a full disk gives it too",
    actions=(
        Action(
            title="Check the mapped files",
            change="mdb_stat -e PATH (lmdb), or read every sample once; df -h for the file system that it lies on",
        ),
    ),
    score=0.7,
)

MAPPED_FILE = replace(
    NO_WORKERS,
    what="a bus error comes from a mapped file that was cut, is damaged or lies on a full disk as well as from shared memory",
    score=0.45,
)


@rule("MEM709", "not-out-of-memory")
def not_out_of_memory(failure: Failure, log: LogText | None) -> Finding | None:
    """The wording belongs to another error."""
    other = _other(failure)
    facts: list[Observation] = [plain_fact(f'the message: "{quoted(failure.message)}"', failure.source)]
    if other is None and failure.kind is FailureKind.SHARED_MEMORY_EXHAUSTED and failure.generation == "bus error":
        clue = has_no_workers(failure, log)
        if clue is not None:
            other = NO_WORKERS
            facts.append(clue.observation("there are no worker processes"))
        elif (mapped := mapped_file(log)) is not None and log is not None:
            other = MAPPED_FILE
            facts.append(plain_fact(f'the log speaks of mapped files: "{quoted(mapped.text)}"', log.source.at(f"line {mapped.line}")))
    if other is None:
        return None
    return Finding(
        statement=f"This {'may be no' if other is MAPPED_FILE else 'is not a'} lack of memory: {other.what}.",
        severity=severity_of(failure),
        confidence=other.score,
        observations=tuple(facts),
        actions=other.actions,
        settles=_BLOCKING if other.score < OTHERS["file descriptors"].score and other not in (NO_WORKERS, MAPPED_FILE) else None,
        supersedes=("MEM802",) if other is NO_WORKERS else (),
    )


def _other(failure: Failure) -> _Other | None:
    if failure.requested_bytes is not None and failure.requested_bytes >= EXABYTE_BYTES:
        return OTHERS["more than 1EB"]
    if failure.kind is not FailureKind.NOT_OUT_OF_MEMORY:
        return None
    return OTHERS.get(failure.generation, UNKNOWN)


def fires() -> Case:
    """An index beyond the embedding's rows, reported at the next allocation."""
    return a_case(
        a_failure(
            kind=FailureKind.NOT_OUT_OF_MEMORY,
            message="RuntimeError: CUDA error: device-side assert triggered",
            generation="device-side assert",
            total_bytes=None,
        )
    )


def clean() -> Case:
    """A real lack of memory."""
    return a_case(a_failure(requested_bytes=2**31, free_bytes=2**28))
