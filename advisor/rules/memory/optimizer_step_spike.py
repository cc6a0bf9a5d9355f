"""The peak of memory lies in the optimizer's step: its temporaries, not its states.

## What it means

The default implementation of PyTorch's optimizers (`foreach`) works on all parameters at once and
makes temporaries of their total size: one more copy of the parameters, or two. A job that fits in
forward and backward fails in `step()`.

## How it is recognized

The refused request comes from `_multi_tensor_*` or `_foreach_*` frames; or a snapshot's peak lies in
the optimizer's step and temporaries are a good part of it.

## What to do

`fused=True` makes no temporaries; `foreach=False` makes them one parameter at a time.

## What it is confused with

The states themselves, which appear at the first step and stay (MEM103).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, Phase
from advisor.model.finding import Action, Finding, Impact, Observation
from advisor.rules.blocks import block_fact, held_bytes, is_attributed, ledger_severity
from advisor.rules.capacity import (
    failure_fact,
    generic,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import in_frames, words
from advisor.rules.remedies import eight_bit_optimizer, saving
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_ledger, a_record
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord, MemoryLedger

FOREACH_SCORE = 0.8
"""Score where the refused request is a temporary of the foreach implementation."""

PHASE_SCORE = 0.4
"""Score of a failure in step() whose frames do not tell temporaries from states."""

LEAST_RATIO = 0.05
"""Share of the live bytes that the step's temporaries take at least where they are worth a change."""

INNERMOST_FRAMES = 6
"""Temporaries are made a few frames above the allocation."""

_FOREACH = words(
    "_multi_tensor_|_foreach",
    r"_multi_tensor_\w+|_foreach_\w+|torch\._foreach",
)
_MAKING = words(
    "_init_group|zeros_like",
    r"_init_group\b|zeros_like\(",
)


@rule("MEM702", "optimizer-step-spike")
def optimizer_step_spike(failure: Failure | None, ledger: MemoryLedger | None, record: AllocatorRecord | None) -> Finding | None:
    """Temporaries of the step, by frames or by the peak of a snapshot."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    if failure is None or not is_capacity_failure(failure):
        return None
    foreach = in_frames(_FOREACH, failure, innermost=INNERMOST_FRAMES)
    making = in_frames(_MAKING, failure, innermost=2)
    if failure.phase is not Phase.OPTIMIZER_STEP or making is not None:
        return None
    facts = (foreach.observation("the refused request comes from"),) if foreach is not None else ()
    return Finding(
        statement="The optimizer's step makes temporaries as large as the parameters, all at once"
        + ("." if foreach is not None else "; the traceback does not show whether they or the states failed."),
        severity=severity_of(failure),
        confidence=FOREACH_SCORE if foreach is not None else generic(PHASE_SCORE, failure),
        observations=(failure_fact(failure), *facts),
        actions=_actions(None, None),
        settles=None if foreach is not None else what_would_settle(failure),
        ruled_out=ruled_out_by_figures(failure),
        supersedes=("MEM201",) if foreach is not None else (),
    )


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, failure, record)
    if severity is None or record is None or record.peak_phase != Phase.OPTIMIZER_STEP.value:
        return None
    temporaries = ledger.entry("temporaries")
    if temporaries < LEAST_RATIO * held_bytes(ledger):
        return None
    peak = Observation(statement="the allocation that made the peak lies in the optimizer's step", source=record.source)
    return told_of_refusal(
        Finding(
            statement=f"The peak lies in the optimizer's step, whose temporaries take {bytes_text(temporaries)}.",
            severity=severity,
            confidence=0.85,
            observations=(block_fact(ledger, "temporaries"), peak),
            actions=_actions(ledger, record),
            impact=Impact(recoverable_bytes=temporaries),
        ),
        ledger,
        failure,
        record,
    )


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> tuple[Action, ...]:
    temporaries = ledger.entry("temporaries") if ledger is not None else 0
    predicted, verified_by = saving(ledger, record, temporaries)
    return (
        Action(
            title="Use the fused optimizer",
            change='torch.optim.AdamW(..., fused=True)  # Trainer: optim="adamw_torch_fused"',
            cost="none on CUDA; faster as well",
            predicted=predicted,
            verified_by=verified_by,
        ),
        Action(
            title="Work on one parameter at a time",
            change="torch.optim.AdamW(..., foreach=False)",
            cost="a slower step: one launch or more for every parameter",
            predicted=predicted,
            verified_by=verified_by,
        ),
        eight_bit_optimizer(ledger, record),
    )


def fires() -> Case:
    """A later step of AdamW fails on a temporary of the foreach implementation."""
    return a_case(
        a_failure(
            phase=Phase.OPTIMIZER_STEP,
            requested_bytes=2 * GIB,
            allocated_bytes=77 * GIB,
            frames=(
                Frame(filename="train.py", line=80, function="main", code="optimizer.step()"),
                Frame(
                    filename="torch/optim/adamw.py",
                    line=600,
                    function="_multi_tensor_adamw",
                    code="exp_avg_sq_sqrt = torch._foreach_sqrt(device_exp_avg_sqs)",
                ),
            ),
        )
    )


def clean() -> Case:
    """The peak lies in the optimizer's step of a training with room to spare."""
    return a_case(
        a_ledger(weights=10 * GIB, optimizer_states=20 * GIB, temporaries=10 * GIB),
        a_record(peak_phase="optimizer step"),
    )
