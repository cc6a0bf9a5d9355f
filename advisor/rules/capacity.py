"""What the figures of a refused request say, shared by the rules about capacity.

A message without figures, or with figures that only say "full", carries no cause: rules then name candidates, none above
`GENERIC_CEILING`, and say what would tell them apart.
"""

from advisor.model.failure import BLOCK_LIMIT, Failure, FailureKind, LogText, Phase
from advisor.model.finding import Action, Observation, RuledOut, Severity
from advisor.rules.wording import GIB, bytes_text

CAPACITY_KINDS = frozenset(
    {
        FailureKind.DEVICE_OUT_OF_MEMORY,
        FailureKind.XLA_RESOURCE_EXHAUSTED,
        FailureKind.TENSORFLOW_OUT_OF_MEMORY,
    }
)
"""Messages that only say that device memory ran out; the others name their cause in their own wording."""

GENERIC_CEILING = 0.6
"""Highest score of a cause that neither text nor arithmetic carries: it is a prior, not a finding."""

OTHER_CAUSE_FACTOR = 0.5
"""Factor on a generic candidate where the figures already point to another cause."""

CONTEXT_BYTES = int(1.8 * GIB)
"""Most that a CUDA context with its libraries takes of a device (0.3-1.8 GiB)."""

OUTSIDE_BYTES = int(2.5 * GIB)
"""Memory outside PyTorch's allocator beyond what a context and its libraries take (0.3-1.8 GiB, with a margin)."""

OUTSIDE_RATIO = 0.1
"""Share of the device below which memory outside the allocator does not decide whether a job fits."""

IDLE_RATIO = 0.04
"""Share of the device that must be reserved and unused where its gaps are the cause: less would only
postpone the failure, by one batch in twenty-five."""

NEAR_RATIO = 0.05
"""Free over request, less 1, below which granularity and the moment between failing and asking may explain it."""

CROWDED_RATIO = 0.05
"""Free over the device's total below which the device counts as full all the same: the driver needs pages of its own, and the figure
is read after the failure, when other threads have already given memory back."""

SMALL_DEVICE_BYTES = int(4.5 * GIB)
"""A device on which training's states already fill most: the smallest usual transformer (110 M
parameters at 16 bytes, 1.8 GB) and a context (up to 1.8 GiB) leave a quarter of 4.5 GiB."""

TRAINING_ONLY_PHASES = frozenset({Phase.LOSS, Phase.BACKWARD, Phase.OPTIMIZER_STEP})
"""Phases that inference does not have."""

SERVING_FRAMEWORKS = frozenset({"vllm", "sglang", "tgi", "tensorrt-llm", "llama.cpp"})
"""Engines that only serve."""

TRAINING_FRAMEWORKS = frozenset({"trl", "verl", "openrlhf", "deepspeed", "fsdp", "lightning", "peft", "unsloth", "axolotl"})
"""Frameworks of training, which may use an engine."""


def is_capacity_failure(failure: Failure | None) -> bool:
    """Whether the message says that device memory ran out and nothing else."""
    return failure is not None and failure.kind in CAPACITY_KINDS and failure.generation != BLOCK_LIMIT


def severity_of(failure: Failure | None) -> Severity:
    """ERROR for what ended the job, WARNING for what it survived or what has not failed yet."""
    return Severity.ERROR if failure is not None and not failure.recovered else Severity.WARNING


def outside_bytes(failure: Failure) -> int | None:
    """Bytes of the device that are neither free nor reserved by this process's allocator; None where unknown."""
    if failure.total_bytes is None or failure.free_bytes is None:
        return None
    reserved = reserved_bytes(failure)
    if reserved is None or reserved > failure.total_bytes:
        return None  # Windows lends host memory: no sum closes
    return max(0, failure.total_bytes - failure.free_bytes - reserved)


def reserved_bytes(failure: Failure) -> int | None:
    """What the allocator had reserved: printed, or allocated plus reserved-but-unallocated."""
    if failure.reserved_bytes is not None:
        return failure.reserved_bytes
    if failure.allocated_bytes is None or failure.reserved_unallocated_bytes is None:
        return None
    return failure.allocated_bytes + failure.reserved_unallocated_bytes


def idle_reserved_bytes(failure: Failure) -> int | None:
    """Reserved by the allocator and not live; None where the message does not tell."""
    if failure.reserved_unallocated_bytes is not None:
        return failure.reserved_unallocated_bytes
    if failure.reserved_bytes is None or failure.allocated_bytes is None:
        return None
    return max(0, failure.reserved_bytes - failure.allocated_bytes)


def figures_point_elsewhere(failure: Failure) -> str | None:
    """The code of a rule whose arithmetic on the printed figures explains the failure without any block being large."""
    request, total, free = failure.requested_bytes, failure.total_bytes, failure.free_bytes
    idle, outside = idle_reserved_bytes(failure), outside_bytes(failure)
    if request is not None and total is not None and request > total:
        return "MEM701"
    if failure.allowed_bytes is not None and total is not None and failure.allowed_bytes < total:
        return "MEM605"
    if request is not None and free is not None and free >= request:
        return "MEM708"
    if request is not None and idle is not None and idle >= request and _is_worth_having(idle, total):
        return "MEM401"
    if outside is not None and total is not None:
        mostly_others = failure.allocated_bytes is not None and outside > max(failure.allocated_bytes, CONTEXT_BYTES)
        if mostly_others or (outside >= OUTSIDE_BYTES and outside >= OUTSIDE_RATIO * total):
            return "MEM601"
    return None


def _is_worth_having(idle: int, total: int | None) -> bool:
    return total is None or idle >= IDLE_RATIO * total


def generic(score: float, failure: Failure) -> float:
    """A prior as a score: capped, and lowered where the figures point to another cause."""
    capped = min(score, GENERIC_CEILING)
    return round(capped * OTHER_CAUSE_FACTOR if figures_point_elsewhere(failure) else capped, 3)


def ruled_out_by_figures(failure: Failure) -> tuple[RuledOut, ...]:
    """The look-alikes that the printed figures exclude."""
    request, idle, outside = (
        failure.requested_bytes,
        idle_reserved_bytes(failure),
        outside_bytes(failure),
    )
    out = []
    if request is not None and idle is not None and idle < request:
        out.append(
            RuledOut(
                code="MEM401",
                because=f"only {bytes_text(idle)} is reserved and unused, less than the {bytes_text(request)} asked for: "
                "without any fragmentation it would have failed too",
            )
        )
    if (
        outside is not None
        and failure.total_bytes
        and outside < min(OUTSIDE_BYTES, OUTSIDE_RATIO * failure.total_bytes)
        and (failure.allocated_bytes is None or outside < failure.allocated_bytes)
    ):
        out.append(
            RuledOut(
                code="MEM601",
                because=f"only {bytes_text(outside)} of the device is outside this process's allocator",
            )
        )
    if request is not None and failure.free_bytes is not None and failure.free_bytes < request:
        out.append(
            RuledOut(
                code="MEM708",
                because=f"{bytes_text(failure.free_bytes)} was free, less than what was asked for",
            )
        )
    return tuple(out)


def failure_fact(failure: Failure) -> Observation:
    """The refused request as one fact, with what the message tells of it."""
    request, total = failure.requested_bytes, failure.total_bytes
    words = f"{bytes_text(request)} was refused" if request is not None else "device memory ran out"
    if failure.phase is not Phase.UNKNOWN:
        words += f" ({failure.phase.value})"
    parts = [
        f"{bytes_text(size)} {name}"
        for size, name in (
            (failure.allocated_bytes, "was live"),
            (idle_reserved_bytes(failure), "reserved and unused"),
            (failure.free_bytes, "free"),
        )
        if size is not None
    ]
    if parts:
        words += ": " + ", ".join(parts)
    if total is not None:
        words += f"; the device has {bytes_text(total)}"
    return Observation(
        statement=words,
        source=failure.source,
        value=float(request) if request is not None else None,
        unit="bytes" if request is not None else None,
    )


def serves_only(failure: Failure | None, log: LogText | None) -> bool:
    """Whether the log is a serving engine's, which keeps nothing for a backward pass."""
    if log is None or (failure is not None and failure.phase in TRAINING_ONLY_PHASES):
        return False
    frameworks = set(log.frameworks)
    return bool(frameworks & SERVING_FRAMEWORKS) and not frameworks & TRAINING_FRAMEWORKS


def smallest_batch() -> Action:
    """The cheapest experiment that tells activations from everything that does not depend on the batch."""
    return Action(
        title="Try a micro-batch of one",
        change="per_device_train_batch_size=1  # if it still fails in the same place, it is not the batch",
        cost="one short run",
    )


def live_after_loading() -> Action:
    """What is live before the first step: weights and nothing else."""
    return Action(
        title="Print what is live once the model is loaded, before the first step",
        change="print(torch.cuda.memory_allocated() / 2**30)",
        cost="one short run",
    )


def what_would_settle(failure: Failure | None) -> Action:
    """What to collect in order to see which block fills the device."""
    if failure is not None and failure.backend in {"XLA", "JAX"}:
        return Action(
            title="Record what the device holds just before the failure",
            change='jax.profiler.save_device_memory_profile("memory.prof")  # then: pprof memory.prof',
        )
    if failure is not None and failure.kind is FailureKind.TENSORFLOW_OUT_OF_MEMORY:
        return Action(
            title="Record what the device holds just before the failure",
            change='tf.profiler.experimental.start("profile")  # then the memory viewer of TensorBoard',
        )
    return Action(
        title="Record where the memory goes, and let it fail once more",
        change="torch.cuda.memory._record_memory_history(max_entries=100_000)  # before the model is built\n"
        "torch.cuda.memory._dump_snapshot('snapshot.pickle')  # where the exception is caught",
        cost="a few percent of time; a file of some tens of MB",
    )
