"""The device waits for exchanges with other ranks that no computation hides.

## What it means

Ranks exchange gradients, parameters or activations in collectives. Those that run beside the
computation are free; what is left over, the exposed part, lengthens every step. It holds the
transfer itself and the wait for ranks that come later.

## How it is recognized

Collective kernels are alone on the device for at least 10% of the time.

## What to do

Start the exchange earlier and in suitable pieces, so that the backward pass hides it; exchange
less; check the link.

## What it is confused with

Waiting for a slow rank: in the trace of one rank that looks the same. With the traces of several
ranks, the rank on which the same collective is short is the late one. Collectives that run beside
the computation are long and cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.model.step_time import Bound, StepBreakdown
from advisor.rules.rule import rule
from advisor.rules.samples import a_breakdown, a_case
from advisor.rules.step_evidence import certainty, per_step_text, step_impact, step_without
from advisor.rules.wording import bytes_text, count_text, ratio_text, seconds_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.kernels import KernelMix
    from advisor.model.waits import CollectiveGroup, Communication

LEAST_RATIO = 0.10
"""Of the window, exposed: well overlapped data-parallel jobs stay below a tenth."""

NAMED_GROUPS = 3
"""Collectives that the finding lists."""


@rule("COM101", "exposed-communication")
def exposed_communication(breakdown: StepBreakdown, communication: Communication | None, mix: KernelMix | None) -> Finding | None:
    """Fire where collectives are alone on the device for a tenth of the time."""
    if not breakdown.is_of_device:
        return None
    exposed = breakdown.seconds["exposed_communication"]
    if exposed < LEAST_RATIO * breakdown.window_seconds:
        return None
    groups = communication.groups if communication is not None else ()
    most = f", most of it in {groups[0].name}" if groups else ""
    return Finding(
        statement=(f"Exchanges with other ranks hold the device up {per_step_text(breakdown, exposed)}{most}; no computation hides them."),
        severity=Severity.WARNING,
        confidence=certainty(0.85, breakdown, mix),
        observations=(
            Observation(
                statement=f"collectives alone on the device: {seconds_text(exposed)}",
                value=exposed,
                unit="seconds",
                source=breakdown.source,
            ),
            *(
                Observation(
                    statement=_group_text(group),
                    value=group.exposed_seconds,
                    unit="seconds",
                    source=communication.source,
                )
                for group in groups[:NAMED_GROUPS]
                if communication is not None
            ),
        ),
        actions=_actions(groups, breakdown, exposed),
        settles=Action(
            title="Tell a slow link from a late rank",
            change=(
                "trace all ranks over the same steps and diagnose the folder: the rank on which the "
                "collective is short is the one that the others wait for"
            ),
        ),
        impact=step_impact(breakdown, exposed),
    )


def _group_text(group: CollectiveGroup) -> str:
    hidden = 1.0 - group.exposed_seconds / group.device_seconds if group.device_seconds else 0.0
    size = f", {bytes_text(group.moved_bytes)} sent" if group.moved_bytes else ""
    return (
        f"{group.name}: {count_text(group.count, 'kernel')}, {seconds_text(group.device_seconds)}, "
        f"{ratio_text(max(0.0, hidden))} of it hidden{size}"
    )


def _actions(groups: tuple[CollectiveGroup, ...], breakdown: StepBreakdown, exposed: float) -> tuple[Action, ...]:
    """The remedies that suit the collective that costs most."""
    predicted = step_without(breakdown, exposed)
    by_name = {
        "all_reduce": Action(
            title="Let the backward pass hide the gradients' exchange",
            change=(
                "DistributedDataParallel(model, bucket_cap_mb=50, gradient_as_bucket_view=True, "
                "static_graph=True); with gradient accumulation: with model.no_sync(): on all but "
                "the last micro-batch"
            ),
            cost="larger buckets start later; try 25, 50, 100",
            predicted=predicted,
        ),
        "all_gather": Action(
            title="Fetch parameters before they are needed",
            change=("FSDP: forward_prefetch=True, backward_prefetch=BACKWARD_PRE, limit_all_gathers=True, wrap by transformer block"),
            cost="device memory of one more block of parameters",
            predicted=predicted,
        ),
        "all_to_all": Action(
            title="Run the exchange of tokens or embeddings beside other computation",
            change=(
                "start it asynchronously (async_op=True) and wait where its result is used; balance the tables or experts over the ranks"
            ),
            cost="work on the model's code",
            predicted=predicted,
        ),
    }
    same = {"reduce_scatter": "all_gather", "send_recv": "all_to_all"}
    names = [same.get(group.name, group.name) for group in groups]
    chosen = next((by_name[name] for name in names if name in by_name), by_name["all_reduce"])
    fewer = Action(
        title="Exchange less",
        change=("more micro-batches a step (gradient accumulation); bf16 gradients (default_hooks.bf16_compress_hook)"),
        cost="a larger effective batch, or fewer bits in the sum",
    )
    link = Action(
        title="Check the link",
        change="NCCL_DEBUG=INFO, nccl-tests all_reduce_perf, nvidia-smi topo -m",
    )
    return (chosen, fewer, link)


def fires() -> Case:
    """An all-reduce of all gradients at the end of backward."""
    from advisor.model.waits import CollectiveGroup
    from advisor.rules.samples_time import a_communication

    return a_case(
        a_breakdown(exposed_communication=0.25, bound=Bound.COMMUNICATION),
        a_communication(
            exposed_seconds=0.25,
            groups=(
                CollectiveGroup(
                    name="all_reduce",
                    count=40,
                    device_seconds=0.3,
                    exposed_seconds=0.25,
                    moved_bytes=28_000_000_000,
                ),
            ),
        ),
    )


def clean() -> Case:
    """The same exchange, in buckets that the backward pass hides."""
    from advisor.model.waits import CollectiveGroup
    from advisor.rules.samples_time import a_communication

    return a_case(
        a_breakdown(exposed_communication=0.02),
        a_communication(
            exposed_seconds=0.02,
            groups=(
                CollectiveGroup(
                    name="all_reduce",
                    count=40,
                    device_seconds=0.3,
                    exposed_seconds=0.02,
                    moved_bytes=28_000_000_000,
                ),
            ),
        ),
    )
