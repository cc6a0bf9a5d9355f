"""Measures of a trace: what its kernels do, how they are launched, and what its operators cost."""

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence
from advisor.model.step_time import Bound, OperatorCost

KERNEL_KINDS = (
    "matmul",
    "convolution",
    "attention",
    "elementwise",
    "normalization",
    "softmax",
    "reduction",
    "copy",
    "embedding",
    "optimizer",
    "communication",
    "generated",
    "other",
)
"""What a kernel does, by its name; "copy" is a copy, a conversion of type or layout, or a
concatenation, "generated" what a compiler fused (other than matrix products)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """All launches of one kernel.

    Attributes:
        name: as the profiler recorded it.
        kind: one of KERNEL_KINDS.
        count: launches.
        device_seconds: the sum of their durations.
    """

    name: str
    kind: str
    count: int
    device_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMix(Evidence):
    """What the kernels of one device do. Seconds are sums of durations, so kernels side by side count twice.

    Attributes:
        device_index: the device.
        device_name / capability: as the trace's device properties say ("8.0", "gfx942"); empty where they do not.
        window_seconds: of the device's breakdown.
        step_count: 0 where no step is marked.
        kernel_count: kernels, copies not counted.
        device_seconds: the sum of their durations.
        median_kernel_seconds: without collectives.
        seconds: by kind, those that occur.
        counts: by kind, those that occur.
        fp32_matmul_seconds / fp32_matmul_count: matrix products and convolutions that the name
            shows to run in
            fp32 on the ordinary units.
        tensor_core_seconds: those that the name shows to run on tensor or matrix cores.
        tiny_matmul_seconds / tiny_matmul_count: matrix products shorter than `TINY_MATMUL_SECONDS`.
        layout_seconds / layout_count: conversions between NCHW and NHWC and transpositions, part of "copy".
        fused_attention_count: fused attention kernels.
        bf16_seconds / bf16_count: matrix products and convolutions that the name shows to be in
            bf16.
        backward_ratio: share of the kernels whose names show a backward pass.
        top: the kernels that take most time, at most 20.
    """

    device_index: int
    device_name: str = ""
    capability: str = ""
    window_seconds: float
    step_count: int
    kernel_count: int
    device_seconds: float
    median_kernel_seconds: float
    seconds: tuple[tuple[str, float], ...]
    counts: tuple[tuple[str, int], ...]
    fp32_matmul_seconds: float = 0.0
    fp32_matmul_count: int = 0
    tensor_core_seconds: float = 0.0
    tiny_matmul_seconds: float = 0.0
    tiny_matmul_count: int = 0
    layout_seconds: float = 0.0
    layout_count: int = 0
    fused_attention_count: int = 0
    bf16_seconds: float = 0.0
    bf16_count: int = 0
    backward_ratio: float = 0.0
    top: tuple[KernelRow, ...] = ()

    def seconds_of(self, *kinds: str) -> float:
        """Device seconds of some kinds together."""
        return sum(seconds for kind, seconds in self.seconds if kind in kinds)

    def count_of(self, *kinds: str) -> int:
        """Launches of some kinds together."""
        return sum(count for kind, count in self.counts if kind in kinds)

    @property
    def computing_seconds(self) -> float:
        """Device seconds of all kernels that are no collectives."""
        return self.device_seconds - self.seconds_of("communication")

    def share_of(self, *kinds: str) -> float:
        """Those seconds over all kernels' seconds, 0 to 1."""
        return self.seconds_of(*kinds) / self.device_seconds if self.device_seconds else 0.0


TINY_MATMUL_SECONDS = 10e-6
"""A matrix product shorter than two launches (about 5 µs each) cannot keep a device busy by
itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchProfile(Evidence):
    """How the kernels of one device were issued; only where launches are recorded and joined.

    Attributes:
        device_index: the device.
        window_seconds / step_count: of the breakdown.
        kernel_count: kernels with a recorded launch.
        launch_count: host calls that launched them; far fewer where graphs are replayed.
        graph_launch_count: replays of CUDA or HIP graphs.
        graph_kernel_ratio: share of the kernels that came out of graphs.
        median_kernel_seconds: duration.
        median_launch_seconds: the host's call.
        median_launch_interval_seconds: between launches of one thread within a burst.
        median_queue_seconds: from the launch call to the kernel's start.
        starved_ratio: share of the kernels whose launch call began after the device had run out
            of work.
        starved_seconds: idle time of the device that ends in such a kernel.
        short_gap_seconds: of that, in gaps shorter than a millisecond; what makes longer ones is no
            launch, but what the host did instead.
        profiler_seconds: of the short gaps, about what the profiler took to record the host's events in them.
        unlaunched_count: kernels without a recorded launch.
        has_python: Python frames were recorded, which slows the host down.
    """

    device_index: int
    window_seconds: float
    step_count: int
    kernel_count: int
    launch_count: int
    graph_launch_count: int = 0
    graph_kernel_ratio: float = 0.0
    median_kernel_seconds: float
    median_launch_seconds: float
    median_launch_interval_seconds: float | None = None
    median_queue_seconds: float
    starved_ratio: float
    starved_seconds: float
    short_gap_seconds: float
    profiler_seconds: float = 0.0
    unlaunched_count: int = 0
    has_python: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionMix(Evidence):
    """Attention as it was computed.

    Attributes:
        unfused_count: times that a softmax stood between two batched matrix products.
        unfused_seconds: device time of those softmaxes and products, or CPU time in a trace
            without a device.
        fused_count: calls of a fused attention operator or kernel.
        math_count: of the unfused, those of scaled_dot_product_attention's math backend.
        scores_bytes: the largest matrix of scores; None without shapes.
        device_seconds: of everything that computes, for the share.
    """

    unfused_count: int
    unfused_seconds: float
    fused_count: int
    math_count: int
    scores_bytes: int | None
    device_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulShape:
    """All calls of one operator with one shape and dtype.

    Attributes:
        operator: "aten::mm", "aten::addmm", "aten::bmm", ...
        batch_count / rows / columns / inner: batch, M, N and K of the product.
        dtype: "bf16", "fp16", "fp32", "tf32", "fp64", "fp8", "int8"; "tf32" where the kernel shows it.
        calls: how often.
        device_seconds: of its kernels.
        flops / moved_bytes: of all calls.
        attained_ratio: FLOP/s over the roofline's attainable FLOP/s; None where the device is
            unknown.
        bound: by its intensity; UNKNOWN where the device is unknown.
    """

    operator: str
    batch_count: int
    rows: int
    columns: int
    inner: int
    dtype: str
    calls: int
    device_seconds: float
    flops: float
    moved_bytes: float
    attained_ratio: float | None = None
    bound: Bound = Bound.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCosts(Evidence):
    """Operators by device time (CPU self time where no device was recorded), with FLOPs and bytes where shapes tell.

    Attributes:
        is_device_time: False where the seconds are CPU self time.
        device_name: for which the ratios were computed; empty where unknown.
        window_seconds / step_count: of the breakdown.
        total_seconds: of all operators, the listed and the rest.
        modelled_seconds: of those whose FLOPs are known.
        flops: of all modelled operators; None where none is.
        operators: at most 20, by time.
        matmuls: matrix products by shape, at most 40, by time.
        unshaped_count: operators with a cost model whose shapes were not recorded.
        peak_flops: dense peak of the dtype in which most FLOPs were done; None where unknown.
        peak_dtype: that dtype.
        peak_source: where the peak comes from.
    """

    is_device_time: bool
    device_name: str
    window_seconds: float
    step_count: int
    total_seconds: float
    modelled_seconds: float
    flops: float | None
    operators: tuple[OperatorCost, ...]
    matmuls: tuple[MatmulShape, ...] = ()
    unshaped_count: int = 0
    peak_flops: float | None = None
    peak_dtype: str = ""
    peak_source: str = ""

    @property
    def mfu_ratio(self) -> float | None:
        """FLOPs by the recorded shapes over the dense peak for the whole window; None where unknown.

        Recomputed forward passes count as useful: with activation checkpointing it is an upper bound.
        """
        if not self.is_device_time or not self.flops or not self.peak_flops or not self.window_seconds:
            return None
        return self.flops / (self.window_seconds * self.peak_flops)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSigns(Evidence):
    """What shows that a trace holds token generation, one token a sequence at a time.

    Attributes:
        mark: the annotation that says so ("step[DECODE bs=32]"); empty without one.
        sequence_count: sequences in a step, by the annotation or by the rows of the products;
            None where neither tells.
        step_count: decode steps marked; 0 without a mark.
        has_prefill: a mark says that prompts are processed in the same window.
        paged_attention_count: attention kernels that read a paged KV cache.
        vector_matmul_seconds: of matrix-vector products and of products with at most 64 rows.
        matmul_seconds: of all matrix products.
        attention_seconds: of attention kernels.
        device_seconds: of all kernels.
    """

    mark: str
    sequence_count: int | None
    step_count: int
    has_prefill: bool
    paged_attention_count: int
    vector_matmul_seconds: float
    matmul_seconds: float
    attention_seconds: float
    device_seconds: float
