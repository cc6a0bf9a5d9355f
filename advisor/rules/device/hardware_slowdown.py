"""The hardware cuts a GPU's clock, and neither heat nor the power brake is named as the cause.

## What it means

Beside software, a circuit on the board can cut the clock to half or less at once: against heat,
against a brake signal of the supply, or against a draw that rises too fast. Where the first two
are not reported, the third is left, or an older card that does not tell them apart. A job on such
a card runs at half speed or less.

## How it is recognized

The reason `hw_slowdown` is set under load, no thermal and no brake reason is set beside it, and
the clock is at 60% of its maximum or below. A clock near its maximum means that the flag was
caught while the card changed its state, which drivers report as a slowdown for a moment.

## What to do

Take the card out of service and look at its power cables, its cooling and its log of Xids; a card
that slows down alone among equals in the same chassis is exchanged.

## What it is confused with

Heat (DEV101), the power brake (DEV102), a change of clocks caught in the act, and the low clock of
an idle GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.device_load import Load, clock_ratio, load_of
from advisor.model.finding import Action, Finding, Observation, RuledOut, Severity
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

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.node import GpuReading, NodeReading
    from advisor.model.step_time import StepBreakdown

CUT_CLOCK_RATIO = 0.6
"""SM clock over its maximum: the circuit divides the clock by two or more (NVML), the rest is
margin."""

NAMED_CAUSES = frozenset({"hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake"})


@rule("DEV103", "hardware-slowdown")
def hardware_slowdown(reading: NodeReading, breakdown: StepBreakdown | None) -> Finding | None:
    """Fire on an unexplained hardware slowdown that the clock confirms, or does not contradict."""
    cut = slowest_first([gpu for gpu in reading.gpus if _is_cut(gpu)])
    if not cut:
        return None
    worst = cut[0]
    return Finding(
        statement=(
            f"{gpus_text(cut)}: the hardware holds the clock down and names neither heat nor the "
            "power brake; "
            f"{clock_text(worst)}, {power_text(worst)}."
        ),
        severity=Severity.WARNING,
        confidence=0.8 if clock_ratio(worst) is not None else 0.5,
        observations=(
            *(
                Observation(
                    statement=f"GPU {gpu.index}: reason hw_slowdown alone",
                    source=gpu_source(reading, gpu),
                )
                for gpu in cut[:MOST_FACTS]
            ),
            *clock_facts(reading, cut),
        ),
        actions=(
            Action(
                title="Take the card out of service and inspect it",
                change=(
                    f"keep jobs off GPU {worst.index} (CUDA_VISIBLE_DEVICES, or drain the node), "
                    "check its power cables "
                    "and sudo dmesg | grep -i xid, then run dcgmi diag -r 3"
                ),
                cost="one card less meanwhile",
            ),
        ),
        settles=Action(
            title="See whether it lasts, and whether equal cards in the node show it",
            change="nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE -l 1",
        ),
        impact=clock_impact(worst, breakdown),
        ruled_out=(
            RuledOut(code="DEV101", because="no thermal reason is set"),
            RuledOut(code="DEV102", because="no brake reason is set"),
        ),
        supersedes=("DEV104",),
    )


def _is_cut(gpu: GpuReading) -> bool:
    reasons = set(gpu.clock_event_reasons or ())
    clock = clock_ratio(gpu)
    return (
        "hw_slowdown" in reasons
        and not reasons.intersection(NAMED_CAUSES)
        and load_of(gpu) is Load.LOADED
        and (clock is None or clock <= CUT_CLOCK_RATIO)
    )


def fires() -> Case:
    """A loaded card at a third of its clock, cool and below its power limit."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(a_node_reading(a_gpu(sm_clock_mhz=660.0, power_watts=210.0, clock_event_reasons=("hw_slowdown",))))


def clean() -> Case:
    """The flag caught while the card changed its state: the clock is at its maximum."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(a_node_reading(a_gpu(clock_event_reasons=("hw_slowdown",))))
