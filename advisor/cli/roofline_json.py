"""The answer of `advisor-cli roofline` as JSON; times in seconds, sizes in bytes."""

from typing import Any

from advisor.analysis.roofline import (
    Phase,
    RooflinePoint,
    Scenario,
    optimizer_step_seconds,
    roofline,
    three_digits,
    turning_batch,
)
from advisor.analysis.roofline_changes import compare, kv_bytes_per_token, part_costs
from advisor.cli.answer_page import write_json
from advisor.cli.roofline_answer import gaps_of, notes_of, resident_weight_bytes
from advisor.model.ceilings import Figure


def write_as_json(before: Scenario, after: Scenario | None, changes: tuple[str, ...]) -> None:
    """Print one JSON object."""
    answer = _as_json(before)
    if after is not None:
        effects = compare(before, after)
        answer["change"] = {
            "changes": list(changes),
            "after": _as_json(after),
            "effects": [
                {
                    "batch": effect.before.batch_count,
                    "batch_after": effect.after.batch_count,
                    "step_ratio": effect.step_ratio,
                    "limit_before": effect.before_limit,
                    "limit_after": effect.after_limit,
                }
                for effect in effects
            ],
        }
    write_json(answer)


def _as_json(scenario: Scenario) -> dict[str, Any]:
    points = roofline(scenario)
    device, model = scenario.device, scenario.model
    return {
        "device": {
            "name": device.name,
            "matched_name": device.matched_name,
            "peak": _figure(device.dense_peaks.get(scenario.compute_dtype)),
            "bandwidth": _figure(device.bandwidth),
            "measured_peak": _figure(device.measured_peaks.get(scenario.compute_dtype)),
            "ridge_flops_per_byte": scenario.ridge,
            "notes": device.notes,
        },
        "model": {
            "name": model.name,
            "parameters": model.parameter_count,
            "active_parameters": model.active_parameter_count,
            "rounded_parameters": three_digits(model.parameter_count),
            "weight_bytes": resident_weight_bytes(scenario),
            "kv_bytes_per_token": kv_bytes_per_token(scenario),
        },
        "gaps": list(gaps_of(scenario)),
        "phase": scenario.phase.value,
        "context_tokens": scenario.context_tokens,
        "weights_dtype": scenario.weights_dtype,
        "compute_dtype": scenario.compute_dtype,
        "kv_dtype": scenario.kv_dtype,
        "turning_batch": turning_batch(scenario) if scenario.phase is Phase.DECODE else None,
        "optimizer_step_seconds": optimizer_step_seconds(scenario) if scenario.phase is Phase.TRAIN else None,
        "points": [_point(point) for point in points],
        "parts": [
            {
                "part": cost.part.value,
                "parameters": cost.parameter_count,
                "flops": cost.flops,
                "read_bytes": cost.read_bytes,
                "read_seconds": cost.read_seconds,
                "compute_seconds": cost.compute_seconds,
            }
            for cost in part_costs(scenario, scenario.batches[0])
        ],
        "notes": list(notes_of(scenario, points)),
    }


def _point(point: RooflinePoint) -> dict[str, Any]:
    return {
        "batch": point.batch_count,
        "tokens": point.token_count,
        "flops": point.flops,
        "attention_flops": point.attention_flops,
        "weight_bytes": point.weight_bytes,
        "really_read_bytes": point.really_read_bytes,
        "cache_bytes": point.cache_bytes,
        "bandwidth_seconds": point.bandwidth_seconds,
        "compute_seconds": point.compute_seconds,
        "step_seconds": point.step_seconds,
        "with_attention_seconds": point.with_attention_seconds,
        "bound": point.bound.value,
        "intensity": point.intensity,
        "attainable_flops_per_second": point.attainable_flops_per_second,
        "peak_ratio": point.peak_ratio,
        "tokens_per_second": point.tokens_per_second,
    }


def _figure(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {"value": figure.value, "source": figure.source, "verified": figure.verified}
