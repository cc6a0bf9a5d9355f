"""A power limit or the power supply holds a GPU's clock below what the card is made for.

## What it means

A card may draw only so many watts. At full load every healthy card touches that limit and lowers
its clock a little to stay within it: that is how it is made, and nothing is wrong. It is a loss
where the limit was set below the card's default, where the node's power supply pulls the brake, or
where the clock is held although the card is far from its own limit: then something else in the
chassis allots less.

## How it is recognized

Under load only. A brake reason fires at once. The software power cap fires where the enforced
limit is below the default, or where the card draws far less than its limit and its clock is down
all the same. With the default limit in force it is said as a note, and only where the clock has
fallen to 60% of its maximum and below.

## What to do

Restore the limit (`nvidia-smi -pl`), or ask who set it and why. A brake or a hidden allotment is a
matter of power supplies, cables and the chassis' own power policy.

## What it is confused with

The card's normal work at its limit, which no setting improves; heat (DEV101); locked clocks
(DEV104). A small card such as an L4 or a T4 is at its 70 W under any load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.device_load import Load, clock_ratio, limit_ratio, load_of, power_ratio
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.rules.gpu_facts import (
    MOST_FACTS,
    clock_facts,
    clock_impact,
    clock_text,
    gpu_source,
    gpus_text,
    power_text,
    slowest_first,
)
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.node import GpuReading, NodeReading
    from advisor.model.step_time import StepBreakdown

LOWERED_RATIO = 0.98
"""Enforced over default limit: below it the limit was lowered; above it is rounding."""

AT_LIMIT_RATIO = 0.95
"""Power over limit: from here on a lowered limit binds, where the reading has no reasons."""

FAR_FROM_LIMIT_RATIO = 0.75
"""Power over limit: a card that is capped draws its limit within a few percent; at three quarters
another limit binds."""

HELD_CLOCK_RATIO = 0.85
"""SM clock over its maximum: with the cap active and power left, a clock below it is held back."""

LOW_CLOCK_RATIO = 0.6
"""SM clock over its maximum: large matrix products bring healthy cards to 0.65-0.9 of it at their
default limit."""


@rule("DEV102", "power-cap")
def power_cap(reading: NodeReading, breakdown: StepBreakdown | None) -> Finding | None:
    """Fire on the brake, a lowered limit, a hidden one, a clock far down: in this order."""
    for test, describe in (
        (_is_braked, _brake),
        (_is_lowered, _lowered),
        (_is_capped_early, _capped_early),
        (_is_far_down, _far_down),
    ):
        held = slowest_first([gpu for gpu in reading.gpus if test(gpu)])
        if held:
            return describe(reading, held, clock_impact(held[0], breakdown))
    return None


def _is_braked(gpu: GpuReading) -> bool:
    return "hw_power_brake" in (gpu.clock_event_reasons or ())


def _is_lowered(gpu: GpuReading) -> bool:
    lowered, power = limit_ratio(gpu), power_ratio(gpu)
    if load_of(gpu) is not Load.LOADED or lowered is None or lowered >= LOWERED_RATIO:
        return False
    if gpu.clock_event_reasons is None:
        return power is not None and power >= AT_LIMIT_RATIO
    return "sw_power_cap" in gpu.clock_event_reasons


def _is_capped(gpu: GpuReading) -> bool:
    return load_of(gpu) is Load.LOADED and "sw_power_cap" in (gpu.clock_event_reasons or ())


def _is_capped_early(gpu: GpuReading) -> bool:
    power, clock = power_ratio(gpu), clock_ratio(gpu)
    return _is_capped(gpu) and power is not None and power <= FAR_FROM_LIMIT_RATIO and clock is not None and clock <= HELD_CLOCK_RATIO


def _is_far_down(gpu: GpuReading) -> bool:
    clock = clock_ratio(gpu)
    return _is_capped(gpu) and clock is not None and clock <= LOW_CLOCK_RATIO


def _brake(reading: NodeReading, held: list[GpuReading], impact: Impact) -> Finding:
    worst = held[0]
    return Finding(
        statement=(
            f"{gpus_text(held)}: the power supply pulls the brake and cuts the clock to half or "
            "less; "
            f"{clock_text(worst)}, {power_text(worst)}."
        ),
        severity=Severity.WARNING,
        confidence=0.9 if load_of(worst) is Load.LOADED else 0.55,
        observations=_facts(reading, held, "reason hw_power_brake"),
        actions=(
            Action(
                title="Repair the power supply of the node",
                change=(
                    "check power supplies and their redundancy, cables to the card and the "
                    "chassis' power limit in "
                    "the management controller (ipmitool sdr; dcmi power reading)"
                ),
                cost="work at the machine; drain it first",
            ),
        ),
        settles=_watch(worst),
        impact=impact,
        supersedes=("DEV103",),
    )


def _lowered(reading: NodeReading, held: list[GpuReading], impact: Impact) -> Finding:
    worst = held[0]
    default = worst.default_power_limit_watts or 0.0
    return Finding(
        statement=(
            f"{gpus_text(held)}: the power limit is set to {worst.power_limit_watts:.0f} W, "
            f"{ratio_text(limit_ratio(worst) or 0.0)} of the card's default {default:.0f} W, and "
            "it binds: "
            f"{power_text(worst)}, {clock_text(worst)}."
        ),
        severity=Severity.WARNING,
        confidence=0.85 if worst.clock_event_reasons is not None else 0.6,
        observations=_facts(reading, held, "power limit below the default"),
        actions=(
            Action(
                title="Restore the default power limit",
                change=f"sudo nvidia-smi -i {worst.index} -pl {default:.0f}",
                cost=("power and heat; ask first who lowered it, cooling or the rack's supply may need it"),
            ),
        ),
        settles=_watch(worst),
        impact=impact,
    )


def _capped_early(reading: NodeReading, held: list[GpuReading], impact: Impact) -> Finding:
    worst = held[0]
    return Finding(
        statement=(
            f"{gpus_text(held)}: the clock is held by a power cap at {power_text(worst)}: "
            "something other than "
            f"the card's own limit allots less; {clock_text(worst)}."
        ),
        severity=Severity.WARNING,
        confidence=0.6,
        observations=_facts(reading, held, "reason sw_power_cap far below the limit"),
        actions=(
            Action(
                title="Look for the allotment outside the card",
                change=(
                    "the management controller's power policy, a card that the server maker does "
                    "not list, a missing "
                    "supply or cable; nvidia-smi -q -d POWER also shows a limit of the whole module"
                ),
                cost="work at the machine",
            ),
        ),
        settles=_watch(worst),
        impact=impact,
    )


def _far_down(reading: NodeReading, held: list[GpuReading], _: Impact) -> Finding:
    worst = held[0]
    return Finding(
        statement=(
            f"{gpus_text(held)}: at its power limit ({power_text(worst)}) the card keeps "
            f"{ratio_text(clock_ratio(worst) or 0.0)} of its highest clock. The limit is the "
            "card's own, "
            "so this is what it can do under such a load."
        ),
        severity=Severity.INFO,
        confidence=0.6,
        observations=_facts(reading, held, "reason sw_power_cap"),
        actions=(
            Action(
                title="Judge the job by this clock, not by the datasheet's",
                change=("compare with a card of a higher power class, or lower the work per result (precision, fusion)"),
            ),
        ),
        settles=_watch(worst),
    )


def _facts(reading: NodeReading, held: list[GpuReading], what: str) -> tuple[Observation, ...]:
    facts = tuple(
        Observation(
            statement=f"GPU {gpu.index}: {what}, {power_text(gpu)}",
            value=power_ratio(gpu),
            unit="ratio",
            source=gpu_source(reading, gpu),
        )
        for gpu in held[:MOST_FACTS]
    )
    return (*facts, *clock_facts(reading, held))


def _watch(worst: GpuReading) -> Action:
    return Action(
        title="Watch power, limit and reasons while the job runs",
        change=f"nvidia-smi -i {worst.index} -q -d POWER,PERFORMANCE,CLOCK -l 1",
    )


def fires() -> Case:
    """A card set to 400 of its 700 W, and bound by it."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(
        a_node_reading(
            a_gpu(
                power_watts=398.0,
                power_limit_watts=400.0,
                sm_clock_mhz=1215.0,
                clock_event_reasons=("sw_power_cap",),
            )
        )
    )


def clean() -> Case:
    """A card at its default limit: the cap is active, as on every card at full load."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(a_node_reading(a_gpu(power_watts=699.0, sm_clock_mhz=1665.0, clock_event_reasons=("sw_power_cap",))))
