"""The roofline of a model on a device (Williams et al., 2009).

Attainable FLOP/s = min(peak, bandwidth × intensity).

Parameter counts are rounded to three digits here, as the ceilings are: nothing is known to more. A
step reads every weight once and does 2N FLOPs a token; attention's own products and the KV cache
are counted apart.
"""

import enum

from advisor.analysis.dtype_sizes import BYTES_PER_ELEMENT
from advisor.analysis.model_size import ModelSize
from advisor.analysis.transformer_costs import (
    BACKWARD_RATIO,
    decode_attention_flops,
    forward_weight_flops,
    kv_cache_bytes,
    prefill_attention_flops,
    read_parameter_count,
    touched_expert_ratio,
    training_weight_flops,
)
from advisor.analysis.transformer_parameters import expert_parameter_count
from advisor.model.ceilings import DeviceCeilings
from advisor.model.dataclass import dataclass
from advisor.model.errors import WrongUsage
from advisor.model.step_time import Bound

SIGNIFICANT_DIGITS = 3
TRAINING_WEIGHT_PASSES = 3
"""Training reads the weights forward and backward and writes a gradient for each."""
ADAMW_STEP_BYTES = 28
"""Moved for each parameter by a fused AdamW step in mixed precision: gradient 2, master and moments
12 in and 12 out, weight 2."""
LARGEST_BATCH = 2**20


class Phase(enum.Enum):
    """What is being done."""

    DECODE = "decode"
    PREFILL = "prefill"
    TRAIN = "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One question to the roofline.

    Attributes:
        device: its ceilings.
        model: the model.
        phase: decode, prefill or training.
        batches: sequences at a time, one answer each.
        context_tokens: decode: tokens already in the cache of each sequence (0: a short cache, not
            counted); prefill and training: tokens of a sequence.
        weights_dtype: what weights are stored and read in.
        compute_dtype: what the matrix units compute in; the peak is taken for it.
        kv_dtype: precision of the cache.
        recomputes: training with checkpointing: the forward pass is done twice.
    """

    device: DeviceCeilings
    model: ModelSize
    phase: Phase
    batches: tuple[int, ...]
    context_tokens: int = 0
    weights_dtype: str = "bf16"
    compute_dtype: str = "bf16"
    kv_dtype: str = "bf16"
    recomputes: bool = False

    @property
    def peak(self) -> float:
        """Dense peak for the compute precision, FLOP/s.

        Raises:
            WrongUsage: the catalogue has none.
        """
        figure = self.device.dense_peaks.get(self.compute_dtype)
        if figure is None:
            known = ", ".join(self.device.dense_peaks) or "none"
            raise WrongUsage(
                f"no {self.compute_dtype} peak is known for {self.device.name}",
                f"choose --compute among: {known}",
            )
        return figure.value

    @property
    def bandwidth(self) -> float:
        """Bytes per second of device memory.

        Raises:
            WrongUsage: unknown.
        """
        if self.device.bandwidth is None:
            raise WrongUsage(f"no bandwidth is known for {self.device.name}", "give it, like 500TFLOPS,2TB/s")
        return self.device.bandwidth.value

    @property
    def ridge(self) -> float:
        """FLOP per byte above which compute is the bound."""
        return self.peak / self.bandwidth


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """One step at one batch.

    Attributes:
        batch_count: sequences.
        token_count: tokens that pass through the model in the step.
        flops: 2N a token (6N in training, 8N with recomputation).
        attention_flops: scores and weighted values on top; None where the shape is unknown.
        weight_bytes: weights read, by the usual count: all of them, of routed experts those
            touched.
        really_read_bytes: the same without tables of which only rows are looked up; None where the
            shape is unknown.
        cache_bytes: KV cache read; None where the shape is unknown and a context was asked for.
        bandwidth_seconds / compute_seconds: the two floors; the step takes the larger.
        attention_seconds: attention's products at the peak; None as above.
        step_seconds: the floor of the step.
        bound: what sets it.
        intensity: FLOP per byte.
        attainable_flops_per_second: min(peak, bandwidth × intensity).
        peak_ratio: that over the peak.
        tokens_per_second: at the floor.
    """

    batch_count: int
    token_count: int
    flops: float
    attention_flops: float | None
    weight_bytes: float
    really_read_bytes: float | None
    cache_bytes: float | None
    bandwidth_seconds: float
    compute_seconds: float
    attention_seconds: float | None
    step_seconds: float
    bound: Bound
    intensity: float
    attainable_flops_per_second: float
    peak_ratio: float
    tokens_per_second: float

    @property
    def with_attention_seconds(self) -> float | None:
        """The floor with attention's own products; None where they are unknown."""
        if self.attention_seconds is None:
            return None
        return max(self.bandwidth_seconds, self.compute_seconds + self.attention_seconds)


def three_digits(value: float) -> float:
    """Rounded to three significant digits, as ceilings and parameter counts are quoted."""
    return float(f"{value:.{SIGNIFICANT_DIGITS - 1}e}")


def roofline(scenario: Scenario) -> tuple[RooflinePoint, ...]:
    """One point for each batch.

    Raises:
        WrongUsage: the device has no peak for the precision, or no bandwidth.
    """
    return tuple(_point(scenario, batch) for batch in scenario.batches)


def turning_batch(scenario: Scenario) -> int | None:
    """The smallest batch at which compute takes at least as long as reading.

    Returns:
        The batch, or None where no batch does (long caches).
    """
    if _is_compute_bound(scenario, 1):
        return 1
    if not _is_compute_bound(scenario, LARGEST_BATCH):
        return None
    low, high = 1, LARGEST_BATCH
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_compute_bound(scenario, middle) else (middle, high)
    return high


def optimizer_step_seconds(scenario: Scenario) -> float:
    """The floor of a fused AdamW step in mixed precision, which no batch shortens.

    It moves 28 bytes for each parameter.
    """
    return ADAMW_STEP_BYTES * three_digits(scenario.model.parameter_count) / scenario.bandwidth


def _is_compute_bound(scenario: Scenario, batch: int) -> bool:
    point = _point(scenario, batch)
    return point.compute_seconds >= point.bandwidth_seconds


def _point(scenario: Scenario, batch: int) -> RooflinePoint:
    tokens = batch if scenario.phase is Phase.DECODE else batch * scenario.context_tokens
    flops = _flops(scenario, tokens)
    attention = _attention_flops(scenario, batch)
    weight_bytes, really_read = _weight_bytes(scenario, tokens)
    cache = _cache_bytes(scenario, batch)
    moved = weight_bytes + (cache or 0.0)
    bandwidth_seconds, compute_seconds = moved / scenario.bandwidth, flops / scenario.peak
    step_seconds = max(bandwidth_seconds, compute_seconds)
    intensity = flops / moved
    attainable = min(scenario.peak, scenario.bandwidth * intensity)
    return RooflinePoint(
        batch_count=batch,
        token_count=tokens,
        flops=flops,
        attention_flops=attention,
        weight_bytes=weight_bytes,
        really_read_bytes=really_read,
        cache_bytes=cache,
        bandwidth_seconds=bandwidth_seconds,
        compute_seconds=compute_seconds,
        attention_seconds=None if attention is None else attention / scenario.peak,
        step_seconds=step_seconds,
        bound=Bound.COMPUTE if compute_seconds >= bandwidth_seconds else Bound.MEMORY,
        intensity=intensity,
        attainable_flops_per_second=attainable,
        peak_ratio=attainable / scenario.peak,
        tokens_per_second=tokens / step_seconds,
    )


def _flops(scenario: Scenario, tokens: int) -> float:
    active = three_digits(scenario.model.active_parameter_count)
    if scenario.phase is Phase.TRAIN:
        return training_weight_flops(active, tokens, recomputed=scenario.recomputes)
    return forward_weight_flops(active, tokens)


def _attention_flops(scenario: Scenario, batch: int) -> float | None:
    shape = scenario.model.shape
    if shape is None:
        return None
    if scenario.phase is Phase.DECODE:
        return batch * decode_attention_flops(shape, scenario.context_tokens)
    forward = batch * prefill_attention_flops(shape, scenario.context_tokens)
    if scenario.phase is Phase.PREFILL:
        return forward
    return forward * (1 + BACKWARD_RATIO + (1 if scenario.recomputes else 0))


def _weight_bytes(scenario: Scenario, tokens: int) -> tuple[float, float | None]:
    element_bytes = BYTES_PER_ELEMENT[scenario.weights_dtype]
    passes = TRAINING_WEIGHT_PASSES if scenario.phase is Phase.TRAIN else 1
    model = scenario.model
    if model.shape is None:
        return three_digits(model.parameter_count) * element_bytes * passes, None
    untouched = expert_parameter_count(model.shape) * (1 - touched_expert_ratio(model.shape, tokens))
    counted = three_digits(model.parameter_count - untouched) * element_bytes * passes
    return counted, read_parameter_count(model.shape, tokens) * element_bytes * passes


def _cache_bytes(scenario: Scenario, batch: int) -> float | None:
    if scenario.phase is not Phase.DECODE or not scenario.context_tokens:
        return 0.0
    if scenario.model.shape is None:
        return None
    return kv_cache_bytes(
        scenario.model.shape,
        batch_count=batch,
        context_tokens=scenario.context_tokens,
        element_bytes=BYTES_PER_ELEMENT[scenario.kv_dtype],
    )


def resident_bytes(scenario: Scenario, batch: int) -> float | None:
    """Weights and KV cache that must lie on the device in decode.

    Returns:
        Bytes, or None where the cache is unknown.
    """
    cache = _cache_bytes(scenario, batch)
    if cache is None:
        return None
    return scenario.model.parameter_count * BYTES_PER_ELEMENT[scenario.weights_dtype] + cache
