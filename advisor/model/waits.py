"""Measures of a trace: what its device waits for, and what its steps are made of."""

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class SynchronizationSite:
    """One way in which the host waited for the device.

    Attributes:
        operator: the PyTorch operator that waited ("aten::item"); empty where the call stood alone.
        call: the runtime call ("cudaStreamSynchronize", "cudaMemcpyAsync").
        line: "file.py(12): train" where the trace has Python frames; empty otherwise.
        count: calls.
        host_seconds: time spent in them.
        exposed_seconds: of that, and of what followed until the next launch, the time in which
            the device idled.
    """

    operator: str
    call: str
    line: str
    count: int
    host_seconds: float
    exposed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Synchronizations(Evidence):
    """Waits of the host for the device inside the steps; the profiler's own last wait is not among them.

    Attributes:
        window_seconds / step_count: of the breakdown.
        count / host_seconds / exposed_seconds: of all sites.
        sites: those that cost most, at most 20.
    """

    window_seconds: float
    step_count: int
    count: int
    host_seconds: float
    exposed_seconds: float
    sites: tuple[SynchronizationSite, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyGroup:
    """All copies of one kind.

    Attributes:
        name: as recorded: "Memcpy HtoD (Pageable -> Device)".
        direction: "HtoD", "DtoH", "DtoD", "PtoP" or "HtoH"; empty where the name does not tell.
        is_pageable: the host side is ordinary memory; None where the name does not tell (AMD).
        count: copies.
        device_seconds: the sum of their durations.
        exposed_seconds: while nothing else ran on the device.
        moved_bytes: None where not recorded.
        largest_bytes: of one copy.
        large_count: copies of 8 MiB and more.
        blocked_seconds: time that the host spent inside the calls that issued them.
        stalled_seconds: of that, the time in which the device did nothing at all.
    """

    name: str
    direction: str
    is_pageable: bool | None
    count: int
    device_seconds: float
    exposed_seconds: float
    moved_bytes: int | None = None
    largest_bytes: int | None = None
    large_count: int = 0
    blocked_seconds: float = 0.0
    stalled_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProfile(Evidence):
    """Copies from, to and on one device."""

    device_index: int
    window_seconds: float
    step_count: int
    groups: tuple[CopyGroup, ...]

    def direction(self, direction: str) -> tuple[CopyGroup, ...]:
        """The groups of one direction."""
        return tuple(group for group in self.groups if group.direction == direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputWait(Evidence):
    """Waits of the training loop for its next batch, by the marks that PyTorch's DataLoader leaves.

    Attributes:
        loader: the iterator's name ("_SingleProcessDataLoaderIter"), or the annotation that says it.
        is_single_process: the batches are made in the training process itself; None where the
            name does not tell.
        count: batches fetched.
        wait_seconds: host time inside the iterator.
        exposed_seconds: of that, the time in which the device idled; None without device activity.
        longest_seconds: the longest single wait.
        window_seconds / step_count: of the breakdown.
        steady_step_count / steady_window_seconds: the steps behind leading slow ones, and their time together; None where no step
            leads that is slow, so that the whole window is steady.
        steady_lost_seconds: of that, the time in which the device had run dry inside the iterator; without a device, inside it at all.
    """

    loader: str
    is_single_process: bool | None
    count: int
    wait_seconds: float
    exposed_seconds: float | None
    longest_seconds: float
    window_seconds: float
    step_count: int
    steady_step_count: int | None = None
    steady_window_seconds: float | None = None
    steady_lost_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveGroup:
    """All calls of one collective.

    Attributes:
        name: "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast", or the kernel's name.
        count: kernels.
        device_seconds: the sum of their durations, waiting for other ranks included.
        exposed_seconds: while nothing else ran on the device.
        moved_bytes: sent by this rank; None where not recorded.
    """

    name: str
    count: int
    device_seconds: float
    exposed_seconds: float
    moved_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication(Evidence):
    """Collectives of one device.

    Attributes:
        device_index: the device.
        world_size: of the job; None where not recorded.
        window_seconds / step_count: of the breakdown.
        device_seconds / exposed_seconds: union over time, so neither exceeds the window.
        groups: by exposed time, largest first.
    """

    device_index: int
    world_size: int | None
    window_seconds: float
    step_count: int
    device_seconds: float
    exposed_seconds: float
    groups: tuple[CollectiveGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes(Evidence):
    """The steps one by one.

    Attributes:
        marked_by: "ProfilerStep" or "Optimizer.step".
        durations_seconds: in order.
        median_seconds: of all of them.
        first_excess_seconds: how much the leading slow steps took beyond the median, summed.
        slow_first_count: leading steps that took clearly longer than the median of the rest.
        warm_up_marks: what happened in them and not later: ("cudaMalloc", 24), ("compilation", 2).
    """

    marked_by: str
    durations_seconds: tuple[float, ...]
    median_seconds: float
    first_excess_seconds: float = 0.0
    slow_first_count: int = 0
    warm_up_marks: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverAllocations(Evidence):
    """Driver allocations of device memory that PyTorch's cache did not save.

    Attributes:
        window_seconds / step_count: of the breakdown.
        alloc_count / free_count: cudaMalloc and cudaFree (hipMalloc, hipFree) in the window.
        steady_step_count: steps after the first.
        steady_alloc_count / steady_free_count: those within them; None where no step is marked.
        steady_seconds: host time inside them; None where no step is marked.
        steady_exposed_seconds: of that, the time in which the device did nothing; None where no step is marked or no device recorded.
        steady_steps_hit: steps after the first with at least one of them.
        seconds: host time of all.
    """

    window_seconds: float
    step_count: int
    alloc_count: int
    free_count: int
    seconds: float
    steady_step_count: int = 0
    steady_alloc_count: int | None = None
    steady_free_count: int | None = None
    steady_seconds: float | None = None
    steady_exposed_seconds: float | None = None
    steady_steps_hit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerSteps(Evidence):
    """What `Optimizer.step` costs.

    Attributes:
        name: the optimizer's class.
        count: steps of the outermost marks.
        host_seconds: inside the marks.
        device_seconds: of the kernels launched inside them; None without joined launches.
        exposed_seconds: idle time of the device inside them; None without device activity.
        kernel_count: kernels launched inside them; operators of the optimizer in a trace without
            a device.
        multi_tensor_count: of these, kernels that take many tensors at once (foreach or fused).
        fused_count: of these, fused optimizer kernels.
        window_seconds / step_count: of the breakdown.
    """

    name: str
    count: int
    host_seconds: float
    device_seconds: float | None
    exposed_seconds: float | None
    kernel_count: int
    multi_tensor_count: int
    fused_count: int
    window_seconds: float
    step_count: int
