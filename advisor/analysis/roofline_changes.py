"""Before and after a change of the model, the batch, the context, the precision or the card."""

from collections.abc import Callable

from advisor.analysis.dtype_sizes import BYTES_PER_ELEMENT, COMPUTE_DTYPE, dtype_named
from advisor.analysis.model_size import size_of
from advisor.analysis.roofline import Phase, RooflinePoint, Scenario, roofline
from advisor.analysis.transformer_costs import (
    FLOPS_PER_WEIGHT,
    kv_elements_per_token,
    read_ratio,
)
from advisor.analysis.transformer_parameters import Part, weights
from advisor.model.dataclass import dataclass, replace
from advisor.model.errors import WrongUsage
from advisor.model.transformer import Experts, TransformerShape

LARGEST_NUMBER = 10**9
"""A width, a count or a length beyond this is a slip of the keyboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCost:
    """What one part of the model costs in a forward step.

    Attributes:
        part: where the weights belong; routed and shared experts count as feed-forward.
        parameter_count: resident.
        active_parameter_count: that one token passes.
        flops: of the step.
        read_bytes: of the step.
        read_seconds / compute_seconds: at the ceilings.
    """

    part: Part
    parameter_count: int
    active_parameter_count: float
    flops: float
    read_bytes: float
    read_seconds: float
    compute_seconds: float


def part_costs(scenario: Scenario, batch: int) -> tuple[PartCost, ...]:
    """The parts of a forward step, exactly counted; empty where the shape is unknown."""
    shape = scenario.model.shape
    if shape is None:
        return ()
    tokens = batch if scenario.phase is Phase.DECODE else batch * scenario.context_tokens
    element_bytes = BYTES_PER_ELEMENT[scenario.weights_dtype]
    sums: dict[Part, list[float]] = {}
    for weight in weights(shape):
        part = Part.FFN if weight.part in (Part.EXPERT, Part.SHARED_EXPERT, Part.ROUTER) else weight.part
        whole = weight.element_count * weight.copy_count
        active = whole * _active_ratio(shape, weight.part)
        looked_up = weight.part is Part.EMBEDDING
        row = sums.setdefault(part, [0.0, 0.0, 0.0, 0.0])
        row[0] += weight.parameter_count
        row[1] += active
        row[2] += 0.0 if looked_up else FLOPS_PER_WEIGHT * active * tokens
        row[3] += whole * read_ratio(shape, weight, tokens) * element_bytes
    return tuple(
        PartCost(
            part=part,
            parameter_count=int(count),
            active_parameter_count=active,
            flops=flops,
            read_bytes=read,
            read_seconds=read / scenario.bandwidth,
            compute_seconds=flops / scenario.peak,
        )
        for part, (count, active, flops, read) in sums.items()
    )


def _active_ratio(shape: TransformerShape, part: Part) -> float:
    if part is Part.EXPERT and shape.experts:
        return shape.experts.active_count / shape.experts.expert_count
    return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEffect:
    """One batch before and after.

    Attributes:
        before / after: the points.
        step_ratio: step time after over before.
        before_limit / after_limit: what takes the time: "reading weights", "reading the KV cache",
            "matrix products".
    """

    before: RooflinePoint
    after: RooflinePoint
    step_ratio: float
    before_limit: str
    after_limit: str


def compare(before: Scenario, after: Scenario) -> tuple[ChangeEffect, ...]:
    """Each batch of `before` with the one in the same place of `after`."""
    pairs = zip(roofline(before), roofline(after), strict=True)
    return tuple(
        ChangeEffect(
            before=old,
            after=new,
            step_ratio=new.step_seconds / old.step_seconds,
            before_limit=limit_of(old),
            after_limit=limit_of(new),
        )
        for old, new in pairs
    )


def limit_of(point: RooflinePoint) -> str:
    """What takes the time, in words."""
    if point.compute_seconds >= point.bandwidth_seconds:
        return "matrix products"
    if (point.cache_bytes or 0.0) > point.weight_bytes:
        return "reading the KV cache"
    return "reading weights"


def kv_bytes_per_token(scenario: Scenario) -> float | None:
    """Bytes of the KV cache of one token; None where the shape is unknown."""
    if scenario.model.shape is None:
        return None
    return kv_elements_per_token(scenario.model.shape) * BYTES_PER_ELEMENT[scenario.kv_dtype]


def apply_change(scenario: Scenario, key: str, value: str) -> Scenario:
    """The scenario with one thing changed.

    Args:
        scenario: the question before.
        key: one of CHANGES.
        value: a number ("28672"), a factor ("x2"), or a name; for experts "8/2" (the FFN cut into
            8, of which a token passes 2) or "8x14336/2" (8 experts of that width).

    Raises:
        WrongUsage: unknown key, unreadable value, or a change that the model cannot have.
    """
    if key not in CHANGES:
        raise WrongUsage(f"unknown change {key[:40]!r}", f"known: {', '.join(CHANGES)}")
    try:
        return CHANGES[key](scenario, value.strip())
    except ValueError as error:
        raise WrongUsage(f"--change {key}={value}: {error}"[:200]) from error


def _number(text: str, old: int) -> int:
    """A number, or a factor of the old one."""
    if not text.lower().startswith("x"):
        return _whole(text)
    factor = float(text[1:])
    if not 0 < old * factor <= LARGEST_NUMBER:
        raise ValueError(f"{text[:20]!r} is out of range")
    return max(1, round(old * factor))


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:12]) <= LARGEST_NUMBER or len(text) > len(str(LARGEST_NUMBER)):
        raise ValueError(f"{text[:20]!r} is no number from 1 to {LARGEST_NUMBER:,}")
    return int(text)


def _reshaped(scenario: Scenario, shape: TransformerShape) -> Scenario:
    return replace(scenario, model=size_of(shape))


def _shape(scenario: Scenario) -> TransformerShape:
    if scenario.model.shape is None:
        raise ValueError("only the number of parameters is known of this model")
    return scenario.model.shape


def _ffn(scenario: Scenario, text: str) -> Scenario:
    shape = _shape(scenario)
    experts = shape.experts
    if experts:
        width = _number(text, experts.expert_ffn_size)
        return _reshaped(scenario, replace(shape, experts=replace(experts, expert_ffn_size=width)))
    return _reshaped(scenario, replace(shape, ffn_size=_number(text, shape.ffn_size)))


def _n_kv(scenario: Scenario, text: str) -> Scenario:
    shape = _shape(scenario)
    if shape.latent:
        raise ValueError("a model with latent attention has no key and value heads to count")
    return _reshaped(scenario, replace(shape, kv_head_count=_number(text, shape.kv_head_count)))


def _layers(scenario: Scenario, text: str) -> Scenario:
    shape = _shape(scenario)
    layers = _number(text, shape.layer_count)
    windowed = round(shape.windowed_layer_count * layers / shape.layer_count)
    return _reshaped(scenario, replace(shape, layer_count=layers, windowed_layer_count=windowed))


def _experts(scenario: Scenario, text: str) -> Scenario:
    shape = _shape(scenario)
    many, separator, active = text.partition("/")
    count, _, width = many.lower().partition("x")
    if not separator:
        raise ValueError("write it like 8/2, or 8x14336/2 with the experts' width")
    moe, expert_count = shape.experts, _whole(count)
    resident = moe.expert_count * moe.expert_ffn_size if moe else shape.ffn_size
    size = _whole(width) if width else resident // expert_count
    if size < 1:
        raise ValueError("the experts would have no width")
    new = Experts(expert_count=expert_count, active_count=_whole(active), expert_ffn_size=size)
    if moe:
        new = replace(moe, expert_count=expert_count, active_count=new.active_count, expert_ffn_size=size)
    return _reshaped(scenario, replace(shape, experts=new))


def _weights(scenario: Scenario, text: str) -> Scenario:
    dtype = dtype_named(text)
    computed = COMPUTE_DTYPE[dtype]
    if BYTES_PER_ELEMENT[dtype] < BYTES_PER_ELEMENT[computed]:
        computed = scenario.compute_dtype  # quantized weights are widened to whatever the products ran in before
    return replace(scenario, weights_dtype=dtype, compute_dtype=computed)


def _device(scenario: Scenario, text: str) -> Scenario:
    from advisor.hardware.catalogue import require  # noqa: PLC0415 - reads the catalogue

    return replace(scenario, device=require(text))


CHANGES: dict[str, Callable[[Scenario, str], Scenario]] = {
    "batch": lambda scenario, text: replace(scenario, batches=tuple(_number(text, batch) for batch in scenario.batches)),
    "context": lambda scenario, text: replace(scenario, context_tokens=_number(text, scenario.context_tokens)),
    "weights": _weights,
    "compute": lambda scenario, text: replace(scenario, compute_dtype=dtype_named(text)),
    "kv": lambda scenario, text: replace(scenario, kv_dtype=dtype_named(text)),
    "ffn": _ffn,
    "n_kv": _n_kv,
    "layers": _layers,
    "experts": _experts,
    "device": _device,
}
"""What can be changed, and how."""
