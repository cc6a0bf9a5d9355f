"""Batches are copied to the device from ordinary, pageable host memory, and the step waits for it.

## What it means

A device can only fetch by itself what lies in page-locked ("pinned") host memory. From ordinary
memory the driver first copies piece by piece into a pinned buffer of its own: the copy is slower,
the program stands still inside it, and it cannot run beside the computation.

## How it is recognized

By the copies' own name in a trace, `Memcpy HtoD (Pageable -> Device)`, where at least 1% of the
time is spent in them, or in the calls that issue them, while the device does nothing else. AMD's
tools do not record which kind of memory a copy came from; the rule then says nothing. In a log it
recognizes the advice of Nsight Systems about pageable copies.

## What to do

Let the DataLoader pin its batches, and copy them without blocking.

## What it is confused with

Pageable copies of a few bytes (a scalar, a learning rate), which cost nothing. Copies that are
slow because there is much to copy: see INP104.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.waits import CopyGroup, CopyProfile

LEAST_RATIO = 0.01
"""Of the window, exposed: pinning is one argument, so it is worth naming from a hundredth on."""

WARNING_RATIO = 0.03
"""Of the window: from here on it costs more than the noise between runs (1-3%)."""

PIN = "DataLoader(..., pin_memory=True) and batch.to(device, non_blocking=True)"


@rule("INP103", "pageable-host-copies")
def pageable_host_copies(
    breakdown: StepBreakdown | None,
    copies: CopyProfile | None,
    mix: KernelMix | None,
    log: LogText | None,
    failure: Failure | None,
) -> Finding | None:
    """Fire on exposed copies whose name says "Pageable", else on a log that says so."""
    if breakdown is not None and copies is not None:
        return _by_trace(breakdown, copies, mix)
    return _by_log(log) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown, copies: CopyProfile, mix: KernelMix | None) -> Finding | None:
    pageable = [group for group in copies.direction("HtoD") if group.is_pageable]
    # From pageable memory the call itself copies: the device waits for the host to get on with it.
    exposed = sum(group.exposed_seconds + group.stalled_seconds for group in pageable)
    if not pageable or exposed < LEAST_RATIO * breakdown.window_seconds:
        return None
    alone = sum(group.exposed_seconds for group in pageable)
    every = sum(group.exposed_seconds for group in copies.direction("HtoD"))
    count = sum(group.count for group in pageable)
    blocked = sum(group.blocked_seconds for group in pageable)
    stalled = sum(group.stalled_seconds for group in pageable)
    is_costly = exposed >= WARNING_RATIO * breakdown.window_seconds
    return Finding(
        statement=(
            f"{count_text(count, 'copy', 'copies')} from ordinary host memory take "
            f"{per_step_text(breakdown, exposed)} while the device does nothing else; from pinned "
            "memory they could run beside the computation."
        ),
        severity=Severity.WARNING if is_costly else Severity.INFO,
        confidence=certainty(0.9, breakdown, mix),
        observations=(
            Observation(
                statement=_sizes(pageable, count),
                value=exposed,
                unit="seconds",
                source=copies.source,
            ),
            Observation(
                statement=(
                    f"the host stood inside the calls for {seconds_text(blocked)}, the device idle for {seconds_text(stalled)} of it"
                ),
                value=blocked,
                unit="seconds",
                source=copies.source,
            ),
        ),
        actions=(
            Action(
                title="Pin the batches and copy them without blocking",
                change=PIN,
                cost="page-locked host memory of num_workers times prefetch_factor batches",
                predicted=step_without(breakdown, exposed),
            ),
        ),
        impact=step_impact(breakdown, exposed),
        supersedes=("INP104",) if alone >= every / 2 else (),
    )


def _sizes(pageable: list[CopyGroup], count: int) -> str:
    sizes = [group.moved_bytes for group in pageable if group.moved_bytes is not None]
    of_bytes = f" of {bytes_text(sum(sizes))} in all" if sizes else ""
    taken = sum(group.device_seconds for group in pageable)
    return f"{pageable[0].name}: {count}{of_bytes}, {seconds_text(taken)} on the device"


def _by_log(log: LogText) -> Finding | None:
    mention = log.mentioned("pageable-memory")
    if mention is None or "pageable" not in mention.text.lower():
        return None
    return Finding(
        statement="The log reports copies to the device from pageable host memory, which block.",
        severity=Severity.WARNING,
        confidence=0.8,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=(
            Action(
                title="Pin the host memory and copy without blocking",
                change=f"{PIN}; with ONNX Runtime: IO binding",
                cost="page-locked host memory",
            ),
        ),
        settles=Action(
            title="Record a trace to see whether the device waits for these copies",
            change="torch.profiler with activities=[CPU, CUDA] around a few steps",
        ),
    )


def fires() -> Case:
    """Each batch of 60 MB takes 12 ms from pageable memory, and nothing runs meanwhile."""
    from advisor.rules.samples_time import a_copy_group, a_copy_profile

    return a_case(
        a_breakdown(exposed_copies=0.12),
        a_copy_profile(
            a_copy_group(
                name="Memcpy HtoD (Pageable -> Device)",
                is_pageable=True,
                device_seconds=0.12,
                exposed_seconds=0.12,
                blocked_seconds=0.13,
            )
        ),
    )


def clean() -> Case:
    """Many pageable copies, of scalars: together a millisecond in a second."""
    from advisor.rules.samples_time import a_copy_group, a_copy_profile

    return a_case(
        a_breakdown(exposed_copies=0.001),
        a_copy_profile(
            a_copy_group(
                name="Memcpy HtoD (Pageable -> Device)",
                is_pageable=True,
                count=400,
                device_seconds=0.001,
                exposed_seconds=0.001,
                moved_bytes=3_200,
                largest_bytes=8,
                large_count=0,
            ),
            a_copy_group(),
        ),
    )
