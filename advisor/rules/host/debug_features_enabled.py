"""A debugging aid is switched on for the whole training.

## What it means

Anomaly detection records a stack for every operator and checks every gradient; a profiler that is never stopped records every operator.
Both are meant for a few steps and slow down all of them, often by a factor.

## How it is recognized

attach() looks at torch's own switches every few steps. The rule fires where one was on in at least half of the steps.

## What to do

Switch it off once the error is found: it costs in every step and finds nothing more.

## What it is confused with

A schedule of the profiler that is on for a few steps. Deterministic algorithms are a choice, and are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.samples_loop import a_loop
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.run import LoopTimes

LEAST_RATIO = 0.5
"""Of the steps: a schedule switches a profiler on for a few of many."""

OFF = {
    "anomaly_mode": ("anomaly detection", "remove torch.autograd.set_detect_anomaly(True), and detect_anomaly=True in trainers"),
    "profiler_running": ("a profiler", "stop it after a few steps: schedule=torch.profiler.schedule(wait=5, warmup=1, active=3, repeat=1)"),
}
"""Switches by the ring's names: what each is called, and how it is switched off."""


@rule("HST107", "debug-features-enabled")
def debug_features_enabled(loop: LoopTimes) -> Finding | None:
    """Fire where a debugging aid is on in most steps."""
    shares = loop.flags or {}
    on = [(name, shares[name]) for name in OFF if shares.get(name, 0.0) >= LEAST_RATIO]
    if not on:
        return None
    names = " and ".join(OFF[name][0] for name, _ in on)
    return Finding(
        statement=f"{names[0].upper()}{names[1:]} is on while the model trains, and slows down every step.",
        severity=Severity.WARNING,
        confidence=0.95,
        observations=tuple(
            Observation(
                statement=f"{OFF[name][0]} was on in {ratio_text(share)} of the steps",
                value=share,
                unit="ratio",
                source=loop.source,
            )
            for name, share in on
        ),
        actions=tuple(
            Action(title=f"Switch {OFF[name][0]} off", change=OFF[name][1], cost="none once the error is found") for name, _ in on
        ),
    )


def fires() -> Case:
    """Anomaly detection was left on."""
    return a_case(a_loop(flags={"anomaly_mode": 1.0}))


def clean() -> Case:
    """A profiler's schedule is active in a few steps."""
    return a_case(a_loop(flags={"profiler_running": 0.05}))
