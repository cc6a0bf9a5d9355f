"""The answer of `advisor-cli roofline` as text."""

from collections.abc import Iterator

from rich.console import RenderableType

from advisor.analysis.dtype_sizes import BYTES_PER_ELEMENT
from advisor.analysis.roofline import (
    Phase,
    RooflinePoint,
    Scenario,
    optimizer_step_seconds,
    resident_bytes,
    roofline,
    three_digits,
    turning_batch,
)
from advisor.analysis.roofline_changes import compare, kv_bytes_per_token, part_costs
from advisor.analysis.transformer_parameters import lookup_parameter_count
from advisor.cli.answer_page import (
    flops_text,
    gigabytes,
    heading,
    line,
    milliseconds,
    precise_gigabytes,
    rate_text,
    table,
    write_page,
)
from advisor.cli.model_option import beyond_context
from advisor.model.ceilings import DeviceCeilings, Figure

KILO = 1e3
TERA = 1e12
GOOD_MFU_RATIO = (0.4, 0.5)
"""Model FLOPs utilization that well-tuned training of transformers reaches."""
FLOOR_NOTE = (
    "A floor for this algorithm and precision, weights read cold once a step. Quantized weights, "
    "speculative decoding "
    "or a card of more bandwidth go below it."
)


def write_as_text(before: Scenario, after: Scenario | None, changes: tuple[str, ...]) -> None:
    """Print the page."""
    write_page([*_page(before), *(_comparison(before, after, changes) if after else ())])


def _page(scenario: Scenario) -> Iterator[RenderableType]:
    points = roofline(scenario)
    yield heading(_verdict(scenario, points))
    for gap in gaps_of(scenario):
        yield line(gap)
    yield table(("ceiling", ""), _ceilings(scenario), left=2)
    yield line(_sources(scenario), "dim")
    yield line(_weights_line(scenario, points[0]))
    yield table(*_points_table(scenario, points), left=0)
    for note in notes_of(scenario, points):
        yield line(note)


def gaps_of(scenario: Scenario) -> tuple[str, ...]:
    """What is not certain about the device or the model, in sentences."""
    shape = scenario.model.shape
    if shape is None:
        return scenario.device.gaps
    return (*scenario.device.gaps, *shape.gaps, *beyond_context(shape, scenario.context_tokens))


def _verdict(scenario: Scenario, points: tuple[RooflinePoint, ...]) -> str:
    bounds = {point.bound.value.lower() for point in points}
    bound = f"{bounds.pop()}-bound" if len(bounds) == 1 else "memory-bound, then compute-bound as the batch grows"
    what = {Phase.DECODE: "decode", Phase.PREFILL: "prefill", Phase.TRAIN: "training"}[scenario.phase]
    return f"{what} of {scenario.model.name} on {scenario.device.name}: {bound}"


def _ceilings(scenario: Scenario) -> list[tuple[str, str]]:
    dtype = scenario.compute_dtype
    return [
        (f"peak compute, {dtype} dense", rate_text(scenario.peak)),
        ("memory bandwidth", f"{scenario.bandwidth / TERA:.4g} TB/s"),
        (
            "ridge point",
            f"{scenario.ridge:.0f} FLOP/byte: above it compute binds, below it bandwidth",
        ),
    ]


def _sources(scenario: Scenario) -> str:
    device, dtype = scenario.device, scenario.compute_dtype
    peak, bandwidth = _cited(device.dense_peaks[dtype]), _cited(device.bandwidth)
    if peak == bandwidth:
        return f"Both from: {peak}."
    return f"Peak from: {peak}. Bandwidth from: {bandwidth}."


def _cited(figure: Figure | None) -> str:
    if figure is None:
        return ""
    return figure.source if figure.verified or figure.source == "command line" else f"{figure.source} (not verified)"


def _weights_line(scenario: Scenario, point: RooflinePoint) -> str:
    model = scenario.model
    total = three_digits(model.parameter_count)
    text = f"{total / 1e9:.3g}e9 parameters, {precise_gigabytes(resident_weight_bytes(scenario))} in {scenario.weights_dtype}"
    if model.active_parameter_count != model.parameter_count:
        text += f"; a token passes {three_digits(model.active_parameter_count) / 1e9:.3g}e9 of them"
    if point.really_read_bytes is not None and model.shape and lookup_parameter_count(model.shape):
        passes = "over three passes" if scenario.phase is Phase.TRAIN else "in a step"
        text += (
            f". Really read {passes}: {precise_gigabytes(point.really_read_bytes)}, since an "
            "embedding is only looked up; "
            "the table counts it whole"
        )
    return text + "."


def resident_weight_bytes(scenario: Scenario) -> float:
    """Weights as the page counts them: the rounded number of parameters by the bytes of each."""
    return three_digits(scenario.model.parameter_count) * BYTES_PER_ELEMENT[scenario.weights_dtype]


def _points_table(scenario: Scenario, points: tuple[RooflinePoint, ...]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    if scenario.phase is Phase.DECODE:
        columns: tuple[str, ...] = (
            "batch",
            "bandwidth time",
            "compute time",
            "bound",
            "throughput",
        )
        return columns, [
            (
                f"{point.batch_count:,}",
                milliseconds(point.bandwidth_seconds),
                milliseconds(point.compute_seconds),
                point.bound.value.lower(),
                f"{point.tokens_per_second:,.0f} token/s",
            )
            for point in points
        ]
    columns = (
        "batch",
        "tokens",
        "work",
        "bandwidth time",
        "compute time",
        "with attention",
        "bound",
    )
    return columns, [
        (
            f"{point.batch_count:,}",
            f"{point.token_count:,}",
            flops_text(point.flops),
            milliseconds(point.bandwidth_seconds),
            milliseconds(point.compute_seconds),
            "unknown" if point.with_attention_seconds is None else milliseconds(point.with_attention_seconds),
            point.bound.value.lower(),
        )
        for point in points
    ]


def notes_of(scenario: Scenario, points: tuple[RooflinePoint, ...]) -> Iterator[str]:
    """What the reader must know, in sentences."""
    first = points[0]
    yield (
        f"At batch {first.batch_count:,} a byte read is used for {first.intensity:,.0f} FLOP: the "
        "attainable rate is "
        f"{rate_text(first.attainable_flops_per_second)}, {first.peak_ratio:.1%} of the peak."
    )
    if scenario.phase is Phase.DECODE:
        yield from _decode_notes(scenario, points)
        yield FLOOR_NOTE
    elif scenario.phase is Phase.TRAIN:
        yield from _training_notes(scenario, points)
    if any(figure and not figure.verified for figure in _used(scenario.device, scenario.compute_dtype)):
        yield ("A figure marked as not verified is recalled, computed or declared: measure before you rely on it.")
    if measured := scenario.device.measured_peaks.get(scenario.compute_dtype):
        ratio = measured.value / scenario.peak
        yield (
            f"The datasheet's peak is used. The best measured one is {rate_text(measured.value)}, "
            f"{ratio:.0%} of it "
            f"({measured.source}): compute times grow accordingly."
        )
    if scenario.device.notes:
        yield scenario.device.notes


def _decode_notes(scenario: Scenario, points: tuple[RooflinePoint, ...]) -> Iterator[str]:
    turn = turning_batch(scenario)
    if turn is None:
        yield ("No batch makes it compute-bound: the caches to read grow with the batch as the work does.")
    else:
        free = "" if scenario.context_tokens else "; until then a larger batch costs next to no time"
        yield f"Compute takes over at batch {turn:,}{free}."
    per_token = kv_bytes_per_token(scenario)
    if scenario.context_tokens and per_token is not None:
        cache = points[0].cache_bytes or 0.0
        yield (
            f"KV cache: {per_token / KILO:.0f} KB a token; {scenario.context_tokens:,} tokens of "
            "context are "
            f"{gigabytes(cache / points[0].batch_count)} for each sequence, read with each token."
        )
    elif scenario.context_tokens:
        yield "The KV cache is not counted: of this model only the number of parameters is known."
    elif per_token is not None:
        yield (f"With a short KV cache ({per_token / KILO:.0f} KB a token, not counted); --context N counts it.")
    shape = scenario.model.shape
    if shape and shape.experts:
        yield ("A mixture of experts: all experts stay resident; the bytes read are of those that the batch touches.")
    for point in points:
        held = resident_bytes(scenario, point.batch_count)
        capacity = scenario.device.memory_bytes
        if held is not None and capacity is not None and held > capacity:
            yield (f"Batch {point.batch_count:,} needs {gigabytes(held)} for weights and cache: more than this device has.")
            return


def _training_notes(scenario: Scenario, points: tuple[RooflinePoint, ...]) -> Iterator[str]:
    step = points[0].with_attention_seconds or points[0].step_seconds
    low, high = GOOD_MFU_RATIO
    yield (
        f"At an MFU of {low:.0%} to {high:.0%}, which is good, the step takes "
        f"{milliseconds(step / high)} to "
        f"{milliseconds(step / low)}; the rest goes to communication, data loading, small "
        "operators and waiting."
    )
    yield (
        f"A fused AdamW step adds at least {milliseconds(optimizer_step_seconds(scenario))} for "
        "full fine-tuning, "
        "whatever the batch: it is bound by bandwidth."
    )
    if scenario.weights_dtype not in ("bf16", "fp16", "fp32", "tf32"):
        yield (
            f"{scenario.weights_dtype} weights win next to nothing here; and weights and gradients "
            "that are being updated "
            "cannot be kept so. QLoRA keeps the frozen base in 4 bits, for memory."
        )


def _comparison(before: Scenario, after: Scenario, changes: tuple[str, ...]) -> Iterator[RenderableType]:
    effects = compare(before, after)
    yield heading(f"\nafter {', '.join(changes)}")
    for gap in after.device.gaps if after.device != before.device else ():
        yield line(gap)
    rows = [
        (
            _batches(effect.before.batch_count, effect.after.batch_count),
            milliseconds(effect.before.step_seconds),
            milliseconds(effect.after.step_seconds),
            f"× {effect.step_ratio:.2f}",
            effect.before_limit,
            effect.after_limit,
        )
        for effect in effects
    ]
    yield table(("batch", "before", "after", "step time", "limit before", "limit after"), rows, left=0)
    heading_of_parts = f"part (batch {before.batches[0]:,})"
    yield table((heading_of_parts, "parameters", "FLOPs", "time to read"), _part_rows(before, after))
    old, new = kv_bytes_per_token(before), kv_bytes_per_token(after)
    if old and new and old != new:
        yield line(f"KV cache a token: {old / KILO:.0f} KB before, {new / KILO:.0f} KB after.")
    shape = after.model.shape
    if shape and shape.experts:
        yield line("All experts are resident; at batch 1 only the chosen ones are read, at a large batch nearly all.")


def _batches(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,} → {after:,}"


def _part_rows(before: Scenario, after: Scenario) -> list[tuple[str, ...]]:
    old = {cost.part: cost for cost in part_costs(before, before.batches[0])}
    new = {cost.part: cost for cost in part_costs(after, after.batches[0])}
    rows = []
    for part, cost in old.items():
        changed = new.get(part)
        if changed is None:
            continue
        ratios = (
            _ratio(cost.parameter_count, changed.parameter_count),
            _ratio(cost.flops, changed.flops),
            _ratio(cost.read_seconds, changed.read_seconds),
        )
        rows.append((part.value, *(f"× {ratio:.2f}" if ratio is not None else "" for ratio in ratios)))
    return rows


def _ratio(before: float, after: float) -> float | None:
    return after / before if before else None


def _used(device: DeviceCeilings, dtype: str) -> tuple[Figure | None, ...]:
    return (device.dense_peaks.get(dtype), device.bandwidth)
