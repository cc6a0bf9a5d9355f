"""Shared memory (/dev/shm) was full, so a data-loading worker or a communicator could not write to it.

## What it means

Workers hand batches to the trainer through /dev/shm. Containers give it 64 MiB unless told otherwise. When
it is full, a write ends in a bus error, which kills the worker. NCCL uses it between the ranks of a node too.

## How it is recognized

A refused segment with its size, or "no space left" on something in shared memory. A bus error in a worker is
weaker: PyTorch adds that shared memory is possible whatever caused it. It counts for more where the log speaks of
/dev/shm or of a container besides, for less where it speaks of mapped files, and for little without a worker.

## What to do

A larger /dev/shm (--shm-size, --ipc=host, an emptyDir of medium Memory), fewer workers or a smaller
prefetch, or sharing by file_system.

## What it is confused with

Host memory (MEM801) ends with "Killed". A bus error without any worker comes from a mapped file (MEM709), and
so can one with workers, when /dev/shm is large and empty. Too many open files is a limit of its own (MEM709).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind, LogText
from advisor.model.finding import Action, Finding, Observation
from advisor.rules.capacity import severity_of
from advisor.rules.clues import quoted
from advisor.rules.facts import bytes_fact, count_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import a_case, a_failure
from advisor.rules.wording import bytes_text, count_text
from advisor.rules.worker_words import has_no_workers, mapped_file, names_worker, worker_count

if TYPE_CHECKING:
    from advisor.model.case import Case

SCORES = {"NCCL segment": 0.92, "torch segment": 0.9, "no space left": 0.9}
"""By wordings that name shared memory's own failure."""

OTHER_SCORE = 0.75

WORKER_SCORE = 0.75
"""Of a bus error in a worker: shared memory is the usual cause, a mapped data file that is cut or damaged gives the same signal."""

SHARED_MEMORY_NAMED_SCORE = 0.85
"""The same where the log speaks of /dev/shm or a container's limit outside of the message itself."""

MAPPED_FILE_SCORE = 0.5
"""The same where the log speaks of mapped files."""

BARE_SCORE = 0.4
"""Of a bus error that names no worker: any program can end so."""

NO_WORKERS_SCORE = 0.3
"""Score of a bus error where no worker processes exist."""


@rule("MEM802", "shared-memory-exhausted")
def shared_memory_exhausted(failure: Failure, log: LogText | None) -> Finding | None:
    """A worker or NCCL could not write to shared memory."""
    if failure.kind is not FailureKind.SHARED_MEMORY_EXHAUSTED:
        return None
    is_bus_error = failure.generation == "bus error"
    score = _bus_error_score(failure, log) if is_bus_error else SCORES.get(failure.generation, OTHER_SCORE)
    return Finding(
        statement=_said(failure),
        severity=severity_of(failure),
        confidence=score,
        observations=_facts(failure, log),
        actions=_actions(),
        settles=Action(
            title="Watch it fill",
            change="df -h /dev/shm  # at the start and shortly before the failure; empty at the failure: look at mapped data files instead",
        ),
    )


def _said(failure: Failure) -> str:
    if failure.generation == "NCCL segment":
        return "Shared memory was full: NCCL could not create a segment in /dev/shm."
    if failure.generation != "bus error":
        return "Shared memory was full: a data-loading worker could not hand its batch over, and ended."
    if names_worker(failure):
        return (
            "Shared memory was probably full: a data-loading worker ended with a bus error, as it does when it cannot hand its batch over."
        )
    return "Shared memory may have been full: the program ended with a bus error, and does not say where."


def _bus_error_score(failure: Failure, log: LogText | None) -> float:
    if has_no_workers(failure, log) is not None:
        return NO_WORKERS_SCORE
    if not names_worker(failure):
        return BARE_SCORE
    if mapped_file(log) is not None:
        return MAPPED_FILE_SCORE
    around = [] if log is None else [each for each in log.mentions if each.topic == "shared-memory" and each.line != failure.line]
    return SHARED_MEMORY_NAMED_SCORE if around else WORKER_SCORE


def _facts(failure: Failure, log: LogText | None) -> tuple[Observation, ...]:
    facts = [plain_fact(f'the log: "{quoted(failure.message)}"', failure.source)]
    if failure.requested_bytes is not None:
        text = f"a segment of {bytes_text(failure.requested_bytes)} was refused"
        facts.append(bytes_fact(text, failure.requested_bytes, failure.source))
    workers = worker_count(log)
    mapped = mapped_file(log) if failure.generation == "bus error" else None
    if mapped is not None and log is not None:
        facts.append(plain_fact(f'the log speaks of mapped files: "{quoted(mapped.text)}"', log.source.at(f"line {mapped.line}")))
    if workers is not None and log is not None:
        facts.append(count_fact(f"the log shows {count_text(workers, 'worker')}", workers, log.source))
    return tuple(facts)


def _actions() -> tuple[Action, ...]:
    return (
        Action(
            title="Give the container more shared memory",
            change="docker run --shm-size=16g (or --ipc=host); Kubernetes: an emptyDir with medium: Memory mounted at /dev/shm",
            cost="counts against the host's memory as it is used",
        ),
        Action(
            title="Fewer workers, smaller prefetch",
            change="DataLoader(..., num_workers=2, prefetch_factor=2)",
            cost="data may arrive more slowly",
        ),
        Action(
            title="Share by files instead of descriptors",
            change='torch.multiprocessing.set_sharing_strategy("file_system")',
            cost="segments of killed processes stay behind until they are removed",
        ),
    )


def fires() -> Case:
    """A worker dies of a bus error."""
    return a_case(
        a_failure(
            kind=FailureKind.SHARED_MEMORY_EXHAUSTED,
            message="RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error.",
            generation="bus error",
            backend="host",
            total_bytes=None,
        )
    )


def clean() -> Case:
    """A worker that the kernel killed: host memory, not shared memory."""
    return a_case(
        a_failure(
            kind=FailureKind.HOST_OUT_OF_MEMORY,
            message="RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.",
            generation="DataLoader worker killed",
            backend="host",
            total_bytes=None,
        )
    )
