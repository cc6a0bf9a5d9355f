"""Scratch memory of a library's algorithm (convolution, matrix product, autotuning) makes the peak.

## What it means

cuDNN and MIOpen choose among algorithms of which the fastest want gigabytes of scratch; cuBLAS keeps a workspace
a stream; Triton's autotuning runs every configuration with buffers of its own. All of it is freed again,
so it does not show between steps.

## How it is recognized

A snapshot whose largest sites at the peak are in autotuning, or the words of such a library in the message.
A convolution's frame where the request failed is only a candidate: its output is allocated there too.

## What to do

Bound the workspace, or turn the search for the fastest algorithm off.

## What it is confused with

A convolution's output and what is kept for backward (MEM201). A handle that could not be made (MEM607).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.model.memory import AllocationSite, AllocatorRecord, MemoryLedger, Moment
from advisor.rules.capacity import generic, is_capacity_failure, severity_of, what_would_settle
from advisor.rules.clues import in_frames, in_words, words
from advisor.rules.facts import bytes_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, SNAPSHOT, a_case, a_ledger
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure, LogText

DEVICE_RATIO = 0.05
"""Share of the device (or, where that is unknown, of what is live) that scratch must have to decide."""

INNERMOST_FRAMES = 4
"""A convolution further out than this did not make the request."""

_SCRATCH = re.compile(
    r"autotun|benchmark_all_configs|do_bench|cudnn_workspace|cublas\w*workspace|MIOpen.{0,20}workspace|select_algorithm\.py",
    re.IGNORECASE,
)
_WORDS = words(
    "workspace|autotun|cudnn.benchmark|miopen",
    r"\bworkspace\b|autotun|cudnn\.benchmark|\bMIOpen\b",
)
_CONVOLUTION = words(
    "conv",
    r"\bconv(?:_transpose)?[123]d\b|_conv_forward|convolution",
)


@rule("MEM706", "library-workspace-spike")
def library_workspace_spike(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """Scratch of a library is a good part of the peak."""
    sites = _scratch_sites(ledger)
    if ledger is not None and sites:
        return told_of_refusal(_of_sites(ledger, sites, failure), ledger, failure, record)
    if failure is None or not is_capacity_failure(failure):
        return None
    words = in_words(_WORDS, failure, log)
    frame = in_frames(_CONVOLUTION, failure, innermost=INNERMOST_FRAMES)
    clue = words or frame or in_words(_CONVOLUTION, failure, None)
    if clue is None:
        return None
    return Finding(
        statement="The request may have been scratch memory of a library: "
        + (
            "the text speaks of workspaces or autotuning."
            if words
            else "it was refused in a convolution, whose fastest algorithms want much of it."
        ),
        severity=severity_of(failure),
        confidence=generic(0.55 if words else 0.3, failure),
        observations=(clue.observation("the place of the request"),),
        actions=_actions(),
        settles=what_would_settle(failure),
    )


def _scratch_sites(ledger: MemoryLedger | None) -> tuple[AllocationSite, ...]:
    if ledger is None or ledger.at is Moment.DUMP:
        return ()
    sites = tuple(site for site in ledger.sites if any(_SCRATCH.search(frame) for frame in (site.label, *site.stack)))
    reference = ledger.device_bytes or ledger.allocated_bytes or 0
    return sites if sum(site.live_bytes for site in sites) >= max(1.0, DEVICE_RATIO * reference) else ()


def _of_sites(ledger: MemoryLedger, sites: tuple[AllocationSite, ...], failure: Failure | None) -> Finding:
    held = sum(site.live_bytes for site in sites)
    facts: list[Observation] = [
        bytes_fact(f"{bytes_text(site.live_bytes)} at {site.label}", site.live_bytes, ledger.source) for site in sites[:3]
    ]
    failed = ledger.at is Moment.OOM or is_capacity_failure(failure)
    share = f" ({ratio_text(held / ledger.device_bytes)} of the device)" if ledger.device_bytes else ""
    return Finding(
        statement=f"{bytes_text(held)}{share} at the peak is scratch of autotuning or of a library's workspace, freed right after.",
        severity=Severity.ERROR if failed else Severity.WARNING,
        confidence=0.75,
        observations=tuple(facts),
        actions=_actions(),
        impact=Impact(recoverable_bytes=held),
    )


def _actions() -> tuple[Action, ...]:
    return (
        Action(
            title="Do not search for the fastest algorithm",
            change="torch.backends.cudnn.benchmark = False; torch.compile(mode='default') instead of max-autotune",
            cost="convolutions or matrix products may be slower",
        ),
        Action(
            title="Bound the workspaces",
            change="CUBLAS_WORKSPACE_CONFIG=:4096:2 TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT=100; MIOPEN_FIND_MODE=FAST on ROCm",
            cost="some algorithms are no longer possible",
        ),
    )


def fires() -> Case:
    """Autotuning a matrix product holds 9 GiB at the failure."""
    return a_case(
        a_ledger(
            at=Moment.OOM,
            weights=60 * GIB,
            temporaries=9 * GIB,
            sites=(_site("triton/runtime/autotuner.py:212 in do_bench", 9 * GIB),),
        )
    )


def clean() -> Case:
    """The cuBLAS workspaces of a training: 64 MiB."""
    return a_case(
        a_ledger(
            weights=16 * GIB,
            activations=40 * GIB,
            temporaries=64 * MIB,
            sites=(_site("torch/nn/modules/linear.py:125 in forward (cublas workspace)", 64 * MIB),),
        )
    )


def _site(label: str, live_bytes: int) -> AllocationSite:
    return AllocationSite(
        label=label,
        block="temporaries",
        live_bytes=live_bytes,
        count=1,
        largest_bytes=live_bytes,
        why=f"freed within the step ({SNAPSHOT})",
        stack=(label,),
    )
