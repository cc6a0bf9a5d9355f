"""A GPU lowers its clock because it is too hot.

## What it means

A chip that reaches its temperature limit protects itself by running slower, in small steps by
software or to half and less by hardware. The job goes on, only slower, and usually slower and
slower over minutes. In a data-parallel job every other GPU waits for the hot one.

## How it is recognized

The driver says why a clock is held: the rule fires where the reasons read under load name software
or hardware thermal slowdown. Where a reading has no reasons, a temperature at or above the card's
own slowdown threshold counts, with less confidence. An idle GPU that reports the reason while it
is far from its threshold is left alone: the reason lingers.

## What to do

Cool the card: fans, filters, the air in front of the rack. Until that is done a lower power limit
is faster than throttling, since it avoids the swings between full speed and half.

## What it is confused with

The power limit (DEV102), which holds clocks at any temperature; locked or application clocks
(DEV104); and the low clock of an idle GPU, which is healthy. A memory chip can be hot while the
GPU is cool: the reason is set all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.device_load import Load, load_of
from advisor.model.finding import Action, Finding, Observation, RuledOut, Severity
from advisor.rules.gpu_facts import (
    MOST_FACTS,
    clock_facts,
    clock_impact,
    clock_text,
    gpu_source,
    gpus_text,
    slowest_first,
)
from advisor.rules.rule import rule
from advisor.rules.samples import a_case

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.node import GpuReading, NodeReading
    from advisor.model.step_time import StepBreakdown

THERMAL_REASONS = ("hw_thermal_slowdown", "sw_thermal_slowdown")

NEAR_CELSIUS = 10.0
"""Degrees below the slowdown threshold within which an idle GPU's thermal reason is believed."""

EASED_RATIO = 0.85
"""Of the power limit: what the second action proposes; clocks fall by far less than power near the
limit."""


@rule("DEV101", "thermal-throttle")
def thermal_throttle(reading: NodeReading, breakdown: StepBreakdown | None) -> Finding | None:
    """Fire on thermal reasons, or on a temperature at the threshold where reasons are not read."""
    hot = slowest_first([gpu for gpu in reading.gpus if _is_slowed(gpu) or _is_at_threshold(gpu)])
    if not hot:
        return None
    worst = hot[0]
    return Finding(
        statement=(f"{gpus_text(hot)}: slowed down by heat, {_temperature_text(worst)}; {clock_text(worst)}."),
        severity=Severity.WARNING,
        confidence=_confidence(worst),
        observations=(
            *(_fact(reading, gpu) for gpu in hot[:MOST_FACTS]),
            *clock_facts(reading, hot),
        ),
        actions=_actions(worst),
        settles=Action(
            title="Watch temperature, reasons and clock while the job runs",
            change=f"nvidia-smi -i {worst.index} -q -d TEMPERATURE,PERFORMANCE,CLOCK -l 1",
        ),
        impact=clock_impact(worst, breakdown),
        ruled_out=_ruled_out(worst),
        supersedes=("DEV104",),
    )


def _is_slowed(gpu: GpuReading) -> bool:
    if not set(THERMAL_REASONS).intersection(gpu.clock_event_reasons or ()):
        return False
    if load_of(gpu) is not Load.IDLE:
        return True
    known = gpu.temperature_celsius is not None and gpu.slowdown_celsius is not None
    return known and _margin(gpu) <= NEAR_CELSIUS


def _is_at_threshold(gpu: GpuReading) -> bool:
    return (
        gpu.clock_event_reasons is None and gpu.temperature_celsius is not None and gpu.slowdown_celsius is not None and _margin(gpu) <= 0
    )


def _margin(gpu: GpuReading) -> float:
    """Degrees to the slowdown threshold."""
    return (gpu.slowdown_celsius or 0.0) - (gpu.temperature_celsius or 0.0)


def _confidence(gpu: GpuReading) -> float:
    if gpu.clock_event_reasons is None:
        return 0.6
    return {Load.LOADED: 0.9, Load.UNKNOWN: 0.7, Load.IDLE: 0.5}[load_of(gpu)]


def _temperature_text(gpu: GpuReading) -> str:
    if gpu.temperature_celsius is None:
        return "its temperature is not in the reading"
    at = f"at {gpu.temperature_celsius:.0f} °C"
    if gpu.slowdown_celsius is None:
        return at
    return f"{at} (slowdown begins at {gpu.slowdown_celsius:.0f} °C)"


def _fact(reading: NodeReading, gpu: GpuReading) -> Observation:
    named = [reason for reason in THERMAL_REASONS if reason in (gpu.clock_event_reasons or ())]
    why = f"reason {', '.join(named)}" if named else "no reasons in the reading"
    return Observation(
        statement=f"GPU {gpu.index}: {why}, {_temperature_text(gpu)}",
        value=gpu.temperature_celsius,
        unit="celsius",
        source=gpu_source(reading, gpu),
    )


def _actions(worst: GpuReading) -> tuple[Action, ...]:
    cooling = Action(
        title="Cool the card",
        change=(
            "check fans and fan speed, dust and filters, blanking panels and the air's "
            "temperature in front of the "
            "node; compare with the node's other GPUs: nvidia-smi -q -d TEMPERATURE (GPU "
            f"{worst.index} first)"
        ),
        cost="work at the machine",
    )
    if worst.power_limit_watts is None:
        return (cooling,)
    lower = f"{worst.power_limit_watts * EASED_RATIO:.0f}"
    return (
        cooling,
        Action(
            title="Lower the power limit until the reason goes",
            change=f"sudo nvidia-smi -i {worst.index} -pl {lower}",
            cost="a lower peak clock, steady instead of swinging; undo it once the card is cool",
        ),
    )


def _ruled_out(worst: GpuReading) -> tuple[RuledOut, ...]:
    reasons = worst.clock_event_reasons
    if reasons is None:
        return ()
    found = []
    if not {"sw_power_cap", "hw_power_brake"}.intersection(reasons):
        found.append(RuledOut(code="DEV102", because="no power reason is set"))
    if "applications_clocks" not in reasons:
        found.append(RuledOut(code="DEV104", because="no clock setting holds the clock"))
    return tuple(found)


def fires() -> Case:
    """A loaded card at its threshold, slowed by software."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(
        a_node_reading(
            a_gpu(
                temperature_celsius=88.0,
                sm_clock_mhz=1290.0,
                clock_event_reasons=("sw_thermal_slowdown",),
            )
        )
    )


def clean() -> Case:
    """A warm card under load without a reason, beside an idle one with a low clock."""
    from advisor.rules.samples_node import a_gpu, a_node_reading, an_idle_gpu

    return a_case(a_node_reading(a_gpu(temperature_celsius=78.0), an_idle_gpu(index=1)))
