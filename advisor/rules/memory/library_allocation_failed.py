"""A library could not get device memory for its handle or workspace: out of memory, in disguise.

## What it means

cuBLAS, cuDNN and their kin take memory directly from the driver when they are first used, and for
workspaces. If PyTorch's cache has the device, they fail, with a status that does not say "out of memory".

## How it is recognized

A status of theirs that says that an allocation failed; or one that is known to disguise it: "not
initialized" or "internal error" when a handle is created, "unable to find a valid cuDNN algorithm".
Some mean less: "insufficient resources" of a sparse product is mostly a bound of its algorithm, a
batched call of hipBLAS can outgrow its fixed workspace, and a compiler at run time (NVRTC) fails for
want of host memory.

## What to do

Leave some hundred MiB free when the library is first used: a smaller batch, a memory fraction below 1,
or use the library once before the memory fills.

## What it is confused with

"Not initialized" also follows an earlier error on the device (an index out of range), and a driver that does
not fit the CUDA version (MEM709). Then the first error above it is the real one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind
from advisor.model.finding import Action, Finding, Observation
from advisor.rules.capacity import severity_of
from advisor.rules.clues import quoted
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import MIB, a_case, a_failure
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.node import NodeReading

ROOM_BYTES = 1024 * MIB
"""Free memory from which a handle and its workspace (8 to 300 MiB) should have been possible."""

SCORES = {
    "allocation failed": 0.88,
    "host allocation failed": 0.8,
    "disguised as no algorithm": 0.65,
    "disguised as not initialized": 0.65,
    "disguised as internal error": 0.55,
    "fixed workspace": 0.5,
    "insufficient resources": 0.35,
}
"""By the wording; another error on the device gives the disguised ones too, and the last two are said on empty devices as well."""

DEVICE_STATEMENT = (
    "could not get device memory for its handle or workspace. It asks the driver, which had none left, and cannot use what PyTorch keeps "
    "in its cache."
)
STATEMENTS = {
    "host allocation failed": "could not get memory of the host, not of the device.",
    "fixed workspace": "was refused memory in a batched call: either the device was full, or the batch outgrew the fixed workspace that "
    "PyTorch gives the library, which happens on an empty device too.",
    "insufficient resources": "lacked resources for this call: mostly a bound of its algorithm, whose buffers grow with all intermediate "
    "products, and only sometimes a full device.",
}
"""What it means, where it is not the device's memory alone."""

COLLECTIVE_SCORE = 0.6
"""NCCL's own words are about memory; MEM602 says more about it."""

OTHER_SCORE = 0.6

ROOM_FACTOR = 0.5
"""Factor where a reading of the device shows room: then memory may not be what was missing."""


@rule("MEM607", "library-allocation-failed")
def library_allocation_failed(failure: Failure, failures: tuple[Failure, ...], reading: NodeReading | None) -> Finding | None:
    """A library reports that it was refused memory."""
    if failure.kind is FailureKind.COLLECTIVE_ALLOCATION_FAILED:
        score = COLLECTIVE_SCORE
    elif failure.kind is FailureKind.LIBRARY_ALLOCATION_FAILED:
        score = SCORES.get(failure.generation, OTHER_SCORE)
    else:
        return None
    before = _earlier_error(failure, failures)
    if before is not None and failure.generation.startswith("disguised"):
        return None
    facts: list[Observation] = [
        plain_fact(
            f'{failure.backend or "a library"} reports: "{quoted(failure.detail or failure.message)}"',
            failure.source,
        )
    ]
    free = _free_bytes(failure, reading)
    if free is not None and reading is not None:
        facts.append(
            bytes_fact(
                f"nvidia-smi shows {bytes_text(free)} free (not necessarily at that moment)",
                free,
                reading.source,
            )
        )
        if free >= ROOM_BYTES:
            score *= ROOM_FACTOR
    return Finding(
        statement=f"{failure.backend or 'A library'} {STATEMENTS.get(failure.generation, DEVICE_STATEMENT)}",
        severity=severity_of(failure),
        confidence=round(score, 3),
        observations=tuple(facts),
        actions=_actions(failure),
        settles=Action(
            title="See what was free, and whether an earlier error hides behind it",
            change="print(torch.cuda.mem_get_info())  # before the call; and run once with CUDA_LAUNCH_BLOCKING=1",
            cost="CUDA_LAUNCH_BLOCKING=1 makes the run slower",
        ),
    )


def _actions(failure: Failure) -> tuple[Action, ...]:
    room = (
        Action(
            title="Leave the library room",
            change="torch.cuda.set_per_process_memory_fraction(0.95)  # or a slightly smaller batch",
            cost="5% less for tensors",
        ),
        Action(
            title="Let it take its memory before the rest does",
            change="torch.cuda.current_blas_handle(); torch.backends.cudnn.is_available()  # right after the start, on the device used",
            cost="some hundred MiB are taken early",
        ),
        Action(
            title="Use a device with room",
            change="nvidia-smi; CUDA_VISIBLE_DEVICES=<one that is free>",
        ),
    )
    if failure.generation == "host allocation failed":
        return (Action(title="Free memory of the host", change="free -h; fewer workers, fewer processes a node, smaller caches"),)
    if failure.generation in {"fixed workspace", "insufficient resources"}:
        pieces = Action(
            title="Do it in smaller pieces",
            change="for part in x.split(n): ...  # a smaller batch of matrices, or fewer rows of a sparse product at a time",
            cost="more launches",
        )
        return (pieces, *room[:1])
    return room


def _earlier_error(failure: Failure, failures: tuple[Failure, ...]) -> Failure | None:
    """Another kind of error above it in the log, whose consequence it may be."""
    return next(
        (other for other in failures if other.kind is FailureKind.NOT_OUT_OF_MEMORY and other.line < failure.line),
        None,
    )


def _free_bytes(failure: Failure, reading: NodeReading | None) -> int | None:
    if reading is None:
        return None
    index = failure.device_index if failure.device_index is not None else 0
    if failure.device_index is None and len(reading.gpus) != 1:
        return None
    return next((gpu.free_bytes for gpu in reading.gpus if gpu.index == index), None)


def fires() -> Case:
    """CuBLAS cannot create its handle in the first matrix product of a backward pass."""
    return a_case(
        a_failure(
            kind=FailureKind.LIBRARY_ALLOCATION_FAILED,
            message="CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            backend="cuBLAS",
            generation="allocation failed",
            total_bytes=None,
        )
    )


def clean() -> Case:
    """A handle that is "not initialized" after a device-side assert: the assert is the error."""
    return a_case(
        a_failure(
            kind=FailureKind.LIBRARY_ALLOCATION_FAILED,
            message="CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
            backend="cuBLAS",
            generation="disguised as not initialized",
            line=130,
            total_bytes=None,
        ),
        a_failure(
            kind=FailureKind.NOT_OUT_OF_MEMORY,
            message="CUDA error: device-side assert triggered",
            generation="device-side assert",
            line=120,
            total_bytes=None,
        ),
    )
