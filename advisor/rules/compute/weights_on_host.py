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

import re
from typing import TYPE_CHECKING

from advisor.ingest.lazy_pattern import LazyPattern
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

SLOW_TOKEN_SECONDS = 0.1
"""Seconds: the weights of a model that fits a device are read in less (80 GB at 2 TB/s take 0.04)."""

_OF_LAYERS = LazyPattern(r"(?P<here>\d{1,4}) ?/ ?(?P<all>\d{1,4}) (?:\w{1,12} )?layers?\b", re.IGNORECASE)
_NONE_ON_HOST = LazyPattern(
    r"\bn[_-]gpu[_-]layers\W{1,4}(?:-1|99\d{0,3})\b|\bngl\W{1,4}(?:-1|99\d{0,3})\b|offload\w{0,4}\W{1,4}(?:false|none|off|no|disabled)\b"
    r"|\b(?:no|without|not)\b[^.;\n]{0,30}\boffload",
    re.IGNORECASE,
)
_NUMBER = r"(?<!\d)(\d{1,9}(?:,\d{3}){0,4}(?:\.\d{1,9})?)"
_PER_TOKEN = LazyPattern(rf"{_NUMBER} ?(ms|s|secs?|seconds?) ?(?:/|per) ?tok", re.IGNORECASE)
_TOKEN_TAKES = LazyPattern(rf"\bper token (?:\w+ ){{0,3}}~?{_NUMBER} ?(ms|s|secs?|seconds?)\b", re.IGNORECASE)
_RATE = LazyPattern(rf"{_NUMBER} ?tok(?:en)?s? ?(?:/|per) ?s", re.IGNORECASE)
_RATE_IS = LazyPattern(rf"\btok(?:en)?s?/s\w{{0,5}}\W{{1,3}}{_NUMBER}", re.IGNORECASE)

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
    told = (mention for mention in log.mentions if mention.topic == "layers-on-host" and not _keeps_all_on_device(mention.text))
    mention = next(told, None)
    if mention is not None:
        return _finding(log, mention, 0.85)
    slow = (mention for mention in log.mentions if mention.topic == "seconds-per-token" and _is_slow(mention.text))
    mention = next(slow, None)
    return _finding(log, mention, 0.4) if mention is not None else None


def _keeps_all_on_device(text: str) -> bool:
    """Whether a line about layers says that none is left on the host."""
    counted = _OF_LAYERS.search(text)
    if counted is not None:
        return int(counted["here"]) >= int(counted["all"])
    return _NONE_ON_HOST.search(text) is not None


def _is_slow(text: str) -> bool:
    """Whether a line prints a time for a token, or a rate, as no model in device memory has."""
    taken = [
        float(found[1].replace(",", "")) * (1e-3 if found[2].lower() == "ms" else 1.0)
        for found in (*_PER_TOKEN.finditer(text), *_TOKEN_TAKES.finditer(text))
    ]
    # "norm 0.8 tokens/s 41000": where numbers stand on both sides the larger is the rate.
    rate = max((float(number.replace(",", "")) for number in (*_RATE.findall(text), *_RATE_IS.findall(text))), default=0.0)
    return max((*taken, 1.0 / rate if rate else 0.0)) >= SLOW_TOKEN_SECONDS


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
