"""A setting holds a GPU's clock below its maximum while it works.

## What it means

Administrators can fix a card's clocks: application clocks (`nvidia-smi -ac`), locked clocks
(`-lgc`, `-lmc`), a sync boost group. It makes measurements repeatable and saves power, and
computing is slower by as much as the clock is lower.

## How it is recognized

Under load, and only where neither heat nor power nor the hardware holds the clock. Surest is the
driver's own reason (application clocks, sync boost) with a clock at 95% of its maximum or below.
Without any reason, a clock at half of its maximum on a card that is busy all the time looks
locked: said with less confidence. So does a memory clock at 80% and below.

## What to do

Ask who set the clocks and why, then reset them: `nvidia-smi -rac`, `-rgc`, `-rmc`.

## What it is confused with

The maximum that nvidia-smi prints is what the clock generator can do, and consumer cards do not
reach it under any load: a clock at 85% of it without a reason is healthy. An idle or half idle GPU
saves power. Application clocks that are lower than the maximum and not named as a reason do not
hold anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.device_load import Load, clock_ratio, load_of, memory_clock_ratio
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
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.node import GpuReading, NodeReading
    from advisor.model.step_time import StepBreakdown

SET_CLOCK_RATIO = 0.95
"""SM clock over its maximum: a setting that costs less than a twentieth is not worth a finding."""

LOCKED_CLOCK_RATIO = 0.5
"""SM clock over its maximum without any reason: busy cards keep well above it unless their clock
is locked."""

LOCKED_MEMORY_RATIO = 0.8
"""Memory clock over its maximum: computing on consumer cards costs them up to 0.14 of it (state
P2), not more."""

BUSY_RATIO = 0.9
"""Utilization from which on a low clock without a reason cannot be the card's own saving."""

SETTING_REASONS = frozenset({"applications_clocks", "sync_boost"})

OTHER_CAUSES = frozenset({"sw_power_cap", "hw_slowdown", "hw_thermal_slowdown", "hw_power_brake", "sw_thermal_slowdown"})


@rule("DEV104", "clock-below-max")
def clock_below_max(reading: NodeReading, breakdown: StepBreakdown | None) -> Finding | None:
    """Fire on a setting that the driver names, then on clocks that look locked."""
    for test, describe in (
        (_is_set, _named),
        (_looks_locked, _unnamed),
        (_has_slow_memory, _memory),
    ):
        held = slowest_first([gpu for gpu in reading.gpus if _is_free_otherwise(gpu) and test(gpu)])
        if held:
            return describe(reading, held, breakdown)
    return None


def _is_free_otherwise(gpu: GpuReading) -> bool:
    return load_of(gpu) is Load.LOADED and not OTHER_CAUSES.intersection(gpu.clock_event_reasons or ())


def _is_set(gpu: GpuReading) -> bool:
    clock = clock_ratio(gpu)
    named = SETTING_REASONS.intersection(gpu.clock_event_reasons or ())
    return bool(named) and clock is not None and clock <= SET_CLOCK_RATIO


def _looks_locked(gpu: GpuReading) -> bool:
    clock = clock_ratio(gpu)
    return _is_busy(gpu) and clock is not None and clock <= LOCKED_CLOCK_RATIO


def _has_slow_memory(gpu: GpuReading) -> bool:
    clock = memory_clock_ratio(gpu)
    return _is_busy(gpu) and clock is not None and clock <= LOCKED_MEMORY_RATIO


def _is_busy(gpu: GpuReading) -> bool:
    """Busy all the time, in a state for computing, with reasons read and none of them set."""
    return (
        gpu.clock_event_reasons is not None
        and (gpu.gpu_utilization_ratio or 0.0) >= BUSY_RATIO
        and gpu.performance_state in ("P0", "P1", "P2")
    )


def _is_factory_setting(gpu: GpuReading) -> bool:
    setting, factory = gpu.applications_sm_clock_mhz, gpu.default_applications_sm_clock_mhz
    return setting is not None and setting == factory


def _named(reading: NodeReading, held: list[GpuReading], breakdown: StepBreakdown | None) -> Finding:
    worst = held[0]
    reasons = sorted(SETTING_REASONS.intersection(worst.clock_event_reasons or ()))
    is_factory = _is_factory_setting(worst) and reasons == ["applications_clocks"]
    what, verb = ("its factory application clocks", "hold") if is_factory else ("a clock setting", "holds")
    return Finding(
        statement=(f"{gpus_text(held)}: {what} ({', '.join(reasons)}) {verb} the clock; {clock_text(worst)}."),
        severity=Severity.INFO if is_factory else Severity.WARNING,
        confidence=0.85,
        observations=(
            *(
                Observation(
                    statement=f"GPU {gpu.index}: reason {', '.join(gpu.clock_event_reasons or ())}",
                    source=gpu_source(reading, gpu),
                )
                for gpu in held[:MOST_FACTS]
            ),
            *clock_facts(reading, held),
        ),
        actions=_reset(worst),
        impact=clock_impact(worst, breakdown),
        ruled_out=_ruled_out(),
    )


def _unnamed(reading: NodeReading, held: list[GpuReading], breakdown: StepBreakdown | None) -> Finding:
    worst = held[0]
    return Finding(
        statement=(
            f"{gpus_text(held)}: busy {ratio_text(worst.gpu_utilization_ratio or 0.0)} of the "
            "time at "
            f"{ratio_text(clock_ratio(worst) or 0.0)} of its highest clock, without any reason "
            "named: "
            f"the clock looks locked; {clock_text(worst)}."
        ),
        severity=Severity.WARNING,
        confidence=0.5,
        observations=clock_facts(reading, held),
        actions=_reset(worst),
        settles=Action(
            title="Reset the locked clocks and read again under the same load",
            change=(f"sudo nvidia-smi -i {worst.index} -rgc; nvidia-smi -i {worst.index} -q -d CLOCK,PERFORMANCE"),
        ),
        impact=clock_impact(worst, breakdown),
        ruled_out=_ruled_out(),
    )


def _memory(reading: NodeReading, held: list[GpuReading], _: StepBreakdown | None) -> Finding:
    worst = held[0]
    ratio = memory_clock_ratio(worst) or 0.0
    return Finding(
        statement=(
            f"{gpus_text(held)}: the memory runs at {worst.memory_clock_mhz:,.0f} of at most "
            f"{worst.max_memory_clock_mhz:,.0f} MHz ({ratio_text(ratio)}) while the card is busy: "
            "its clock looks locked, and kernels bound by memory are slower by as much."
        ),
        severity=Severity.WARNING,
        confidence=0.5,
        observations=tuple(
            Observation(
                statement=f"GPU {gpu.index}: memory clock over its maximum",
                value=memory_clock_ratio(gpu),
                unit="ratio",
                source=gpu_source(reading, gpu),
            )
            for gpu in held[:MOST_FACTS]
        ),
        actions=(
            Action(
                title="Reset locked memory clocks",
                change=f"sudo nvidia-smi -i {worst.index} -rmc",
                cost="power and heat; ask first who locked them",
            ),
        ),
        settles=Action(
            title="Read the clocks again under load after the reset",
            change=f"nvidia-smi -i {worst.index} -q -d CLOCK,PERFORMANCE",
        ),
    )


def _reset(worst: GpuReading) -> tuple[Action, ...]:
    return (
        Action(
            title="Reset application and locked clocks",
            change=f"sudo nvidia-smi -i {worst.index} -rac; sudo nvidia-smi -i {worst.index} -rgc",
            cost="power and heat; measurements vary more. Ask first who set them",
        ),
    )


def _ruled_out() -> tuple[RuledOut, ...]:
    return (
        RuledOut(code="DEV101", because="no thermal reason is set"),
        RuledOut(code="DEV102", because="no power reason is set"),
    )


def fires() -> Case:
    """Application clocks lowered to 1,200 MHz on a card of 1,980."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(
        a_node_reading(
            a_gpu(
                sm_clock_mhz=1200.0,
                applications_sm_clock_mhz=1200.0,
                clock_event_reasons=("applications_clocks",),
            )
        )
    )


def clean() -> Case:
    """A consumer card at work: 85% of a maximum that it never reaches, no reason set."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(
        a_node_reading(
            a_gpu(
                name="NVIDIA GeForce RTX 4090",
                sm_clock_mhz=2640.0,
                max_sm_clock_mhz=3105.0,
                memory_clock_mhz=10251.0,
                max_memory_clock_mhz=10501.0,
                applications_sm_clock_mhz=None,
                default_applications_sm_clock_mhz=None,
                performance_state="P2",
            )
        )
    )
