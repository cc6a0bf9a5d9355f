"""The device waits for copies of its input from the host.

## What it means

What a step needs from the host crosses a link (PCIe) that is some thirty to a hundred times
slower than the device's own memory. Where the copy is not issued early enough to run beside the
previous step's work, the device waits for it.

## How it is recognized

Copies from host to device take at least 10% of the time in which nothing else runs on the device,
from pinned or pageable memory.

## What to do

Send fewer bytes, and send them earlier. Images as uint8 are a quarter of the same images as
float32: cast and normalize on the device. Copy the next batch on a second stream while the
current one computes.

## What it is confused with

Copies from pageable memory: pinning is then the first step (INP103). Weights that are streamed
from the host in each step because they do not fit: see CMP119.
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
    from advisor.model.kernels import KernelMix
    from advisor.model.step_time import StepBreakdown
    from advisor.model.waits import CopyProfile

LEAST_RATIO = 0.10
"""Of the window, exposed: less than a tenth is hidden by prefetching one batch."""


@rule("INP104", "host-to-device-bound")
def host_to_device_bound(breakdown: StepBreakdown, copies: CopyProfile, mix: KernelMix | None) -> Finding | None:
    """Fire where copies to the device, alone on it, take a tenth of the time."""
    groups = copies.direction("HtoD")
    exposed = sum(group.exposed_seconds for group in groups)
    if exposed < LEAST_RATIO * breakdown.window_seconds or not exposed:
        return None
    count = sum(group.count for group in groups)
    taken = sum(group.device_seconds for group in groups)
    sizes = [group.moved_bytes for group in groups if group.moved_bytes is not None]
    return Finding(
        statement=(f"The device waits {per_step_text(breakdown, exposed)} for copies of its input from the host."),
        severity=Severity.WARNING,
        confidence=certainty(0.85, breakdown, mix),
        observations=(
            Observation(
                statement=(
                    f"{count_text(count, 'copy', 'copies')} to the device took "
                    f"{seconds_text(taken)}, {seconds_text(exposed)} of it with nothing beside"
                ),
                value=exposed,
                unit="seconds",
                source=copies.source,
            ),
            *(
                Observation(
                    statement=(f"they moved {bytes_text(total)}, {bytes_text(total / taken)} a second"),
                    value=float(total),
                    unit="bytes",
                    source=copies.source,
                )
                for total in ([sum(sizes)] if sizes and taken else [])
            ),
        ),
        actions=(
            Action(
                title="Send fewer bytes",
                change=("copy images as uint8 and token ids as int32, then on the device: batch = batch.to(torch.float32).div_(255)"),
                cost="a small kernel on the device",
            ),
            Action(
                title="Copy the next batch while this one computes",
                change=(
                    "pin_memory=True, and on a second stream: with torch.cuda.stream(copies): "
                    "following = batch.to(device, non_blocking=True); before its use: "
                    "torch.cuda.current_stream().wait_stream(copies)"
                ),
                cost="device memory of one more batch",
                predicted=step_without(breakdown, exposed),
            ),
        ),
        impact=step_impact(breakdown, exposed),
    )


def fires() -> Case:
    """Pinned copies of large volumes, issued when they are needed."""
    from advisor.rules.samples_time import a_copy_group, a_copy_profile

    return a_case(
        a_breakdown(exposed_copies=0.2),
        a_copy_profile(a_copy_group(device_seconds=0.2, exposed_seconds=0.2)),
    )


def clean() -> Case:
    """The same copies, on a second stream beside the computation."""
    from advisor.rules.samples_time import a_copy_group, a_copy_profile

    return a_case(
        a_breakdown(exposed_copies=0.01),
        a_copy_profile(a_copy_group(device_seconds=0.2, exposed_seconds=0.01)),
    )
