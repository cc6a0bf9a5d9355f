"""Host memory ran out: the kernel, a container's limit or a scheduler killed the process, or it was refused memory.

## What it means

The machine's own memory, not the GPU's, was full. The kernel then kills a process without a word in its log: all
that is left is an exit code 137 or -9, "Killed", or a line in the kernel's log. Usual causes are checkpoints that
every rank loads in full, many data-loading workers with large batches, and pinned memory.

## How it is recognized

A kernel line that names the killed process; the words of a container's or scheduler's limit; a refused
allocation on the CPU with its size. An exit code 137 or a bare "Killed" alone only says SIGKILL, which
people and schedulers send as well: less confidence.

## What to do

Load checkpoints on one rank, or memory-mapped. Fewer workers, smaller prefetch. Raise the container's limit
where the machine has more.

## What it is confused with

SIGKILL by a scheduler's time limit or a person. Shared memory (MEM802) ends with a bus error. Device memory
prints "CUDA out of memory".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Source
from advisor.model.failure import Failure, FailureKind, Phase
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.model.node import KernelEvent, KernelEventKind, KernelLog
from advisor.rules.capacity import severity_of
from advisor.rules.clues import quoted
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case

SCORES = {
    "cgroup OOM killer": 0.95,
    "OOM killer": 0.92,
    "cgroup limit": 0.85,
    "Slurm": 0.95,
    "Kubernetes": 0.95,
    "Ray memory monitor": 0.95,
    "numpy": 0.92,
    "DefaultCPUAllocator": 0.95,
    "Ollama": 0.95,
    "MemoryError": 0.9,
    "errno 12": 0.8,
    "std::bad_alloc": 0.8,
    "shared mapping": 0.75,
    "DataLoader worker killed": 0.8,
    "DataLoader worker exited": 0.5,
    "SIGKILL": 0.6,
    "Killed": 0.6,
}
"""By the wording: those that name memory are nearly always right; SIGKILL is memory in some six of ten cases."""

OTHER_SCORE = 0.6

KERNEL_SCORE = 0.95
"""The kernel names a process of this job's kind, and the log of the job ends in a kill."""

UNRELATED_SCORE = 0.5
"""The kernel killed something, and nothing shows that it was this job."""

TRAINERS = (
    "python",
    "pt_",
    "torchrun",
    "ray",
    "vllm",
    "sglang",
    "jax",
    "deepspeed",
    "accelerate",
    "mpirun",
    "java",
)
"""Beginnings of the names of processes that train, serve or load data."""

BARE_WORDINGS = frozenset({"SIGKILL", "Killed", "DataLoader worker exited"})
"""Wordings that do not mention memory."""

_OOM_KINDS = (KernelEventKind.OOM_KILL, KernelEventKind.CGROUP_OOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kill:
    """What the kernel said."""

    event: KernelEvent
    source: Source
    is_trainer: bool


@rule("MEM801", "host-memory-exhausted")
def host_memory_exhausted(failure: Failure | None, kernel: KernelLog | None) -> Finding | None:
    """The host refused memory, or something was killed for it."""
    is_host = failure is not None and failure.kind is FailureKind.HOST_OUT_OF_MEMORY
    kill = _kill(kernel)
    if failure is None or not is_host:
        if kill is None:
            return None
        return _finding(None, kill, score=_kernel_score(kill, alone=True), severity=_alone_severity(kill))
    score = SCORES.get(failure.generation, OTHER_SCORE)
    if kill is not None and kill.is_trainer:
        score = max(score, KERNEL_SCORE)
    return _finding(failure, kill, score=score, severity=severity_of(failure))


def _kill(kernel: KernelLog | None) -> _Kill | None:
    """The last kill, those of trainers before others."""
    if kernel is None:
        return None
    kills = [event for event in kernel.events if event.kind in _OOM_KINDS]
    if not kills:
        return None
    chosen = max(kills, key=lambda event: (_is_trainer(event), event.line))
    return _Kill(event=chosen, source=kernel.source.at(f"line {chosen.line}"), is_trainer=_is_trainer(chosen))


def _is_trainer(event: KernelEvent) -> bool:
    return (event.process or "").lower().startswith(TRAINERS)


def _kernel_score(kill: _Kill, *, alone: bool) -> float:
    if not kill.is_trainer:
        return UNRELATED_SCORE
    return 0.85 if alone else KERNEL_SCORE


def _alone_severity(kill: _Kill) -> Severity:
    return Severity.ERROR if kill.is_trainer else Severity.WARNING


def _finding(failure: Failure | None, kill: _Kill | None, *, score: float, severity: Severity) -> Finding:
    facts = [*_failure_facts(failure), *_kernel_facts(kill)]
    bare = failure is not None and failure.generation in BARE_WORDINGS and (kill is None or not kill.is_trainer)
    return Finding(
        statement=_statement(failure, kill, bare=bare),
        severity=severity,
        confidence=score,
        observations=tuple(facts),
        actions=_actions(failure),
        settles=_settles() if bare or kill is None else None,
    )


def _statement(failure: Failure | None, kill: _Kill | None, *, bare: bool) -> str:
    if bare:
        return (
            "The process was killed (SIGKILL), and a lack of host memory is the usual reason; this text alone does not say so: "
            "a scheduler's time limit or a person sends the same signal."
        )
    if failure is not None and failure.requested_bytes is not None:
        return f"The host refused {bytes_text(failure.requested_bytes)}: its own memory was full, not the GPU's."
    victim = kill.event.process if kill is not None else None
    if failure is None and kill is not None and not kill.is_trainer:
        return f"The kernel ran out of memory and killed {victim or 'a process'}; whether that belongs to your job only its name tells."
    size = kill.event.rss_bytes if kill is not None else None
    of = f", which held {bytes_text(size)}" if size is not None else ""
    return (
        "The machine's memory (or the container's limit) was used up, and "
        f"{victim or 'the process'}{of} was killed or refused memory for it."
    )


def _failure_facts(failure: Failure | None) -> list[Observation]:
    if failure is None:
        return []
    facts = [plain_fact(f'the log: "{quoted(failure.message)}"', failure.source)]
    if failure.requested_bytes is not None:
        facts.append(
            bytes_fact(
                f"{bytes_text(failure.requested_bytes)} of host memory was refused",
                failure.requested_bytes,
                failure.source,
            )
        )
    if failure.allowed_bytes is not None:
        facts.append(
            bytes_fact(
                f"the limit is {bytes_text(failure.allowed_bytes)}",
                failure.allowed_bytes,
                failure.source,
            )
        )
    facts.extend(
        bytes_fact(
            f"{one.name or one.pid} held {bytes_text(one.used_bytes)}",
            one.used_bytes,
            failure.source,
        )
        for one in failure.other_processes
        if one.used_bytes is not None
    )
    return facts


def _kernel_facts(kill: _Kill | None) -> list[Observation]:
    if kill is None:
        return []
    event = kill.event
    who = f"{event.process or 'a process'}" + (f" (pid {event.pid})" if event.pid is not None else "")
    where = "its cgroup's limit" if event.kind is KernelEventKind.CGROUP_OOM else "the machine's memory"
    if event.rss_bytes is None:
        facts = [plain_fact(f"the kernel killed {who} for {where}", kill.source)]
    else:
        text = f"the kernel killed {who} for {where}; it held {bytes_text(event.rss_bytes)}"
        facts = [bytes_fact(text, event.rss_bytes, kill.source)]
    if event.limit_bytes is not None:
        facts.append(
            bytes_fact(
                f"the cgroup's limit is {bytes_text(event.limit_bytes)}",
                event.limit_bytes,
                kill.source,
            )
        )
    return facts


def _actions(failure: Failure | None) -> tuple[Action, ...]:
    loading = Action(
        title="Load checkpoints once, or memory-mapped",
        change='torch.load(path, map_location="cpu", mmap=True, weights_only=True)  # or on rank 0 alone, then broadcast; '
        "transformers: low_cpu_mem_usage=True",
    )
    workers = Action(
        title="Fewer workers and a smaller prefetch",
        change="DataLoader(..., num_workers=2, prefetch_factor=2, persistent_workers=False); no large Python lists in the dataset "
        "(each worker copies what it touches)",
        cost="data may arrive more slowly",
    )
    limit = Action(
        title="Raise the limit where the machine has more",
        change="Kubernetes resources.limits.memory; docker run --memory=...; Slurm --mem=...",
        cost="less for others on the machine",
    )
    is_loading = failure is not None and failure.phase in {Phase.LOADING, Phase.CHECKPOINT}
    is_worker = failure is not None and (failure.phase is Phase.DATA or failure.generation.startswith("DataLoader"))
    if is_worker:
        return workers, loading, limit
    return (loading, workers, limit) if is_loading else (limit, loading, workers)


def _settles() -> Action:
    return Action(
        title="Ask the kernel and the cgroup",
        change="dmesg -T | grep -i -E 'oom|killed process'; cat /sys/fs/cgroup/memory.events; sacct -j JOB --format=State,MaxRSS",
        cost="dmesg may need an administrator",
    )


def fires() -> Case:
    """PyTorch's CPU allocator is refused 48 GiB while a checkpoint is loaded."""
    return a_case(
        a_failure(
            kind=FailureKind.HOST_OUT_OF_MEMORY,
            message="DefaultCPUAllocator: not enough memory: you tried to allocate 51539607552 bytes.",
            generation="DefaultCPUAllocator",
            backend="host",
            requested_bytes=48 * GIB,
            total_bytes=None,
            phase=Phase.LOADING,
        )
    )


def clean() -> Case:
    """The device's memory ran out, and the host's did not."""
    return a_case(
        a_failure(requested_bytes=2 * GIB, free_bytes=1 * GIB, allocated_bytes=76 * GIB),
        KernelLog(source=Source(path="dmesg.txt"), events=(), line_count=900, counts={}),
    )
