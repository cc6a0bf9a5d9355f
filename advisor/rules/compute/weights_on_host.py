"""Some of the model's layers live in host memory: each step computes them there or fetches them.

## What it means

A model that does not fit on the device can be split: layers that are left in host memory are
computed by the CPU, or copied to the device each time they are needed. Either way the link and
the host's memory, some thirty times slower than the device's own, set the pace.

## How it is recognized

In a trace, by copies to the device of more than a gibibyte a step, in many large pieces, of which
at least 20% of the time is exposed. In a log, by what the loading libraries say: accelerate that
parameters were offloaded to the CPU, llama.cpp that only part of the layers went to the GPU.

## What to do

Make the model fit: quantize it, take a smaller one, or use more devices.

## What it is confused with

Large input batches: those are few copies of equal size, INP104. An optimizer that is deliberately
kept on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText, Mention
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.waits import CopyProfile

LEAST_BYTES_A_STEP = GIB
"""Bytes copied to the device a step: batches of images or tokens are far below."""

FEWEST_LARGE_COPIES_A_STEP = 16
"""Copies of 8 MiB and more a step: weights come tensor by tensor, a batch comes in one or two."""

LEAST_RATIO = 0.20
"""Of the window, exposed."""

ACTIONS = (
    Action(
        title="Quantize the model until it fits",
        change=(
            "BitsAndBytesConfig(load_in_4bit=True), an AWQ or GPTQ checkpoint, or a GGUF of fewer "
            "bits; then all layers on the GPU (device_map={'': 0}, -ngl 99)"
        ),
        cost="accuracy; measure on your own evaluation",
    ),
    Action(
        title="Take a smaller model, or a shorter context",
        change="advisor-cli estimate --device NAME --model MODEL",
        cost="quality",
    ),
    Action(
        title="Use a device with more memory, or several",
        change="tensor_parallel_size=2, or device_map='auto' over the GPUs",
        cost="hardware",
    ),
)


@rule("CMP119", "weights-on-host")
def weights_on_host(
    breakdown: StepBreakdown | None,
    copies: CopyProfile | None,
    mix: KernelMix | None,
    log: LogText | None,
    failure: Failure | None,
) -> Finding | None:
    """Fire on weights that stream to the device each step, or on a loader that says so."""
    if breakdown is not None and copies is not None:
        found = _by_trace(breakdown, copies, mix)
        if found is not None:
            return found
    return _by_log(log) if log is not None and failure is None else None


def _by_trace(breakdown: StepBreakdown, copies: CopyProfile, mix: KernelMix | None) -> Finding | None:
    groups = copies.direction("HtoD")
    steps = max(1, breakdown.step_count)
    moved = sum(group.moved_bytes or 0 for group in groups)
    large = sum(group.large_count for group in groups)
    exposed = sum(group.exposed_seconds for group in groups)
    if moved < LEAST_BYTES_A_STEP * steps or large < FEWEST_LARGE_COPIES_A_STEP * steps or exposed < LEAST_RATIO * breakdown.window_seconds:
        return None
    return Finding(
        statement=(
            f"{bytes_text(moved / steps)} go from host memory to the device in each step, in "
            f"{large / steps:,.0f} large copies: weights are streamed, and the device waits "
            f"{per_step_text(breakdown, exposed)}."
        ),
        severity=Severity.WARNING,
        confidence=certainty(0.75, breakdown, mix),
        observations=(
            Observation(
                statement=(f"{count_text(large, 'copy', 'copies')} of 8 MiB and more, {bytes_text(moved)} in all"),
                value=float(moved),
                unit="bytes",
                source=copies.source,
            ),
            Observation(
                statement=f"nothing else ran for {seconds_text(exposed)} of their time",
                value=exposed,
                unit="seconds",
                source=copies.source,
            ),
        ),
        actions=(
            Action(
                title=ACTIONS[0].title,
                change=ACTIONS[0].change,
                cost=ACTIONS[0].cost,
                predicted=step_without(breakdown, exposed),
            ),
            *ACTIONS[1:],
        ),
        impact=step_impact(breakdown, exposed),
        supersedes=("INP104", "INP103"),
    )


def _by_log(log: LogText) -> Finding | None:
    mention = log.mentioned("layers-on-host")
    weak = log.mentioned("seconds-per-token")
    found, confidence = (mention, 0.85) if mention is not None else (weak, 0.4)
    if found is None:
        return None
    return _finding(log, found, confidence)


def _finding(log: LogText, mention: Mention, confidence: float) -> Finding:
    is_said = mention.topic == "layers-on-host"
    return Finding(
        statement=(
            "The log says that part of the model is kept in host memory: those layers set the pace."
            if is_said
            else "Tokens come as slowly as where part of the model lies in host memory; the log does not say where it lies."
        ),
        severity=Severity.WARNING,
        confidence=confidence,
        observations=(
            Observation(
                statement=f"the log says: {mention.text.strip()}",
                source=log.source.at(f"line {mention.line}"),
            ),
        ),
        actions=ACTIONS,
        settles=Action(
            title="See where the layers are",
            change="print(model.hf_device_map), or the loader's line 'offloaded N/M layers to GPU'",
        ),
    )


def fires() -> Case:
    """A model of 26 GB on a card of 24: half a gigabyte for each of the last layers, each step."""
    from advisor.rules.samples_time import a_copy_group, a_copy_profile

    return a_case(
        a_breakdown(exposed_copies=0.6),
        a_copy_profile(
            a_copy_group(
                name="Memcpy HtoD (Pageable -> Device)",
                is_pageable=True,
                count=600,
                device_seconds=0.65,
                exposed_seconds=0.6,
                moved_bytes=40 * GIB,
                largest_bytes=200_000_000,
                large_count=560,
            )
        ),
    )


def clean() -> Case:
    """Ten batches of video, 1.2 GiB each: few copies, all of one size."""
    from advisor.rules.samples_time import a_copy_group, a_copy_profile

    return a_case(
        a_breakdown(exposed_copies=0.25),
        a_copy_profile(
            a_copy_group(
                device_seconds=0.5,
                exposed_seconds=0.25,
                moved_bytes=12 * GIB,
                largest_bytes=GIB,
                large_count=20,
            )
        ),
    )
