"""A GPU's PCIe link runs slower or narrower than card and slot can, while the card works.

## What it means

All that moves between host and card, batches, offloaded states, checkpoints, and between cards
without NVLink, passes this link. At half of its lanes or its generation it carries half. A job
that copies little does not notice.

## How it is recognized

Under load only: to save power an idle link falls back to generation 1 and some cards to fewer
lanes, and both return with the work. Under load the rule compares generation and width with the
highest that card and slot share. A quarter of the bandwidth and below is a warning by itself; half
of it is one where a trace shows copies that the job waits for, else a note, since many boards give
two cards eight lanes each by design.

## What to do

Reseat the card, check riser and slot, then the firmware's settings of the slot.

## What it is confused with

An idle GPU's link, and a slot that has fewer lanes than its shape. Slow copies from pageable
memory (INP103) look the same from inside the job and are far more common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.analysis.device_load import Load, link_bandwidth, link_ratio, load_of
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.model.node import GpuReading, KernelEventKind, KernelLog, NodeReading
from advisor.rules.facts import plain_fact
from advisor.rules.gpu_facts import MOST_FACTS, gpu_source, gpus_text
from advisor.rules.rule import rule
from advisor.rules.samples import a_case
from advisor.rules.step_evidence import step_impact
from advisor.rules.wording import ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.step_time import StepBreakdown

FULL_RATIO = 0.99
"""Bandwidth over the best: from here on the link is whole; generations and widths differ by far
more."""

SEVERE_RATIO = 0.26
"""Bandwidth over the best: a quarter, with the margin of line coding between generations."""

EXPOSED_COPY_RATIO = 0.05
"""Of the window: from a twentieth on, copies that the job waits for make half a link a loss."""

LINK_EVENTS = (KernelEventKind.PCIE_ERROR, KernelEventKind.PCIE_LINK)


@rule("DEV107", "pcie-link-degraded")
def pcie_link_degraded(reading: NodeReading, kernel: KernelLog | None, breakdown: StepBreakdown | None) -> Finding | None:
    """Fire on loaded GPUs whose link is below its best."""
    degraded = sorted(
        (gpu for gpu in reading.gpus if _is_degraded(gpu)),
        key=lambda gpu: (link_ratio(gpu) or 0.0, gpu.index),
    )
    if not degraded:
        return None
    worst = degraded[0]
    ratio = link_ratio(worst) or 0.0
    copies = breakdown.parts.get("exposed_copies", 0.0) if breakdown is not None else 0.0
    is_loss = ratio <= SEVERE_RATIO or copies >= EXPOSED_COPY_RATIO
    events = [event for event in kernel.events if event.kind in LINK_EVENTS] if kernel else []
    return Finding(
        statement=(
            f"{gpus_text(degraded)}: the PCIe link runs at "
            f"{_link_text(worst.pcie_generation, worst.pcie_width)} of "
            f"{_link_text(worst.max_pcie_generation, worst.max_pcie_width)}, {ratio_text(ratio)} "
            "of its bandwidth, "
            "while the card works."
        ),
        severity=Severity.WARNING if is_loss else Severity.INFO,
        confidence=0.9 if events else 0.8 if ratio <= SEVERE_RATIO else 0.65,
        observations=(
            *(_fact(reading, gpu) for gpu in degraded[:MOST_FACTS]),
            *(
                plain_fact(f"the kernel says: {event.text[:120]}", kernel.source.at(f"line {event.line}"))
                for event in events[:3]
                if kernel is not None
            ),
        ),
        actions=(
            Action(
                title="Reseat the card and check riser, cable and slot",
                change=(f"sudo lspci -vv -s {worst.bus_id or 'BUS_ID'} | grep -E 'LnkCap|LnkSta', before and after"),
                cost="work at the machine",
            ),
            Action(
                title="Check what the firmware and the board give the slot",
                change=("the slot's generation (Auto) and bifurcation in the firmware; lanes in the board's manual"),
                cost="a reboot",
            ),
        ),
        settles=Action(
            title="Measure the link",
            change=(
                "nvbandwidth -t host_to_device_memcpy_ce; meanwhile nvidia-smi -l 1 --format=csv "
                "--query-gpu=pcie.link.gen.current,pcie.link.width.current"
            ),
        ),
        impact=_impact(breakdown, ratio),
    )


def _is_degraded(gpu: GpuReading) -> bool:
    ratio = link_ratio(gpu)
    return load_of(gpu) is Load.LOADED and ratio is not None and ratio < FULL_RATIO


def _link_text(generation: int | None, width: int | None) -> str:
    return f"generation {generation} x{width}"


def _fact(reading: NodeReading, gpu: GpuReading) -> Observation:
    now = link_bandwidth(gpu.pcie_generation, gpu.pcie_width) or 0.0
    best = link_bandwidth(gpu.max_pcie_generation, gpu.max_pcie_width) or 0.0
    return Observation(
        statement=f"GPU {gpu.index}: {now / 1e9:.1f} of {best / 1e9:.1f} GB/s each way",
        value=link_ratio(gpu),
        unit="ratio",
        source=gpu_source(reading, gpu),
    )


def _impact(breakdown: StepBreakdown | None, ratio: float) -> Impact:
    """Exposed copies would take their time times the ratio of the bandwidths."""
    if breakdown is None or "exposed_copies" not in breakdown.seconds:
        return Impact()
    return step_impact(breakdown, breakdown.seconds["exposed_copies"] * (1.0 - ratio))


def fires() -> Case:
    """A loaded card on four of its sixteen lanes."""
    from advisor.rules.samples_node import a_gpu, a_node_reading

    return a_case(a_node_reading(a_gpu(pcie_width=4)))


def clean() -> Case:
    """An idle card whose link sleeps at generation 1, beside a loaded one at full speed."""
    from advisor.rules.samples_node import a_gpu, a_node_reading, an_idle_gpu

    return a_case(a_node_reading(an_idle_gpu(), a_gpu(index=1)))
