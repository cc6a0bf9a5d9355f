"""The optimizer's states are the largest block of memory.

## What it means

AdamW keeps two fp32 moments for every trainable parameter (8 bytes), and mixed precision an fp32
master copy (4 bytes) beside them. They are made at the first `step()`, so a program can pass its
first forward and backward and then fail, or fail in the second iteration.

## How it is recognized

From a snapshot: optimizer states are the largest block and the device is full. From a traceback: the
frames that make the states for the first time. From a description: Adam fails where SGD fits, or
right after the first step.

## What to do

Keep the moments in 8 bits, shard them over the ranks, use an optimizer with less state, or keep them
in host memory.

## What it is confused with

Temporaries of the step itself (MEM702), which need no states to be made. Activations (MEM201), which
a smaller batch shrinks and states do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Observation, RuledOut, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import block_fact, dominates, is_attributed, ledger_severity
from advisor.rules.capacity import (
    failure_fact,
    generic,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.model_size import (
    arithmetic_fact,
    is_full_finetune,
    model_size,
    state_bytes,
)
from advisor.rules.remedies import eight_bit_optimizer, offloaded_states, sharded_states
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_ledger, a_record
from advisor.rules.shortage import told_of_refusal
from advisor.rules.wording import bytes_text, parameters_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.transformer import TransformerShape

MAKING_SCORE = 0.9
"""Score where the innermost frames make the states: they are the request that failed."""

STATED_SCORE = 0.8
"""Score where the text says that SGD fits and Adam does not, or names the first step and Adam."""

FIRST_STEP_SCORE = 0.6
"""Score where the text only says that it failed at or after the first step."""

STEP_PHASE_SCORE = 0.55
"""Score of a failure inside step() whose frames do not tell states from temporaries."""

FULL_FINETUNE_SCORE = 0.55
"""Score where the log says that all parameters of a model of billions are trained: three quarters of
the states' 16 bytes a parameter are the optimizer's."""

DECIDES_SCORE = 0.75
"""Score where, by arithmetic, weights and gradients fit and the optimizer's states do not."""

INNERMOST_FRAMES = 8
"""States are made a few frames above the allocation (step, _init_group, zeros_like)."""

_MAKING = words(
    "_init_group|optimizer_state|_init_state|zeros|fp32_|master_",
    r"_init_group\b|initialize_optimizer_states|init_optimizer_state|_init_state\b"
    r"|state\[.{0,30}(?:exp_avg|moment|momentum_buffer|square_avg|sum).{0,30}zeros"
    r"|fp32_groups|master_(?:params|weights)|_create_fp32_partitions",
)
_FOREACH = words(
    "_multi_tensor_|_foreach_",
    r"_multi_tensor_\w+|_foreach_\w+",
)
_SGD_FITS = words(
    "sgd|8bit|8-bit|8 bit|paged",
    r"\bsgd\b.{0,40}(?:fits|works|fine|no (?:oom|problem)|runs).{0,60}\badam"
    r"|\badam\w*\b.{0,60}(?:oom|fail|out of memory).{0,60}\bsgd\b.{0,30}(?:fits|works|fine|not)"
    r"|(?:8[- ]?bit|paged)\s+(?:adam\w*|optimizer)\s+(?:fits|works)",
)
_LACK = r"oom\w*|out of memory\)?|fails?|failed|crash\w*"
_FIRST = (
    r"(?:(?:first|1st)\s+(?:optimizer[. ])?(?:step|iteration|update)|(?:second|2nd)\s+(?:iteration|step|batch)"
    r"|(?:iteration|step)\s+(?:#\s?)?2\b)"
)
_FIRST_STEP = words(
    "first|1st|second|2nd|2",
    rf"(?:{_LACK})\b.{{0,40}}\b(?:after|at|in|during|on)\s+(?:the\s+)?(?:very\s+)?{_FIRST}"
    rf"|{_FIRST}.{{0,40}}(?:{_LACK})",
)
_BUDGET = words(
    "gb|gib|g",
    r"(?:below|under|within|less than|fits? in(?:to)?|on (?:a|one))\s+(\d{1,4})\s?G(?:i?B)\b",
)
_ADAM = words(
    "adam",
    r"\badam\w*",
)


@rule("MEM103", "optimizer-state-dominates")
def optimizer_state_dominates(
    failure: Failure | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
    shape: TransformerShape | None,
) -> Finding | None:
    """States are the largest block, or the failed request makes them."""
    if is_attributed(ledger):
        return _from_ledger(ledger, failure, record)
    if failure is None:
        return _within_budget(log, shape)
    if not is_capacity_failure(failure):
        return None
    found = _from_text(failure, log) or _from_size(failure, log, shape)
    if found is None:
        return None
    score, statement, facts = found
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts),
        actions=_actions(None, None),
        settles=None if score >= MAKING_SCORE else what_would_settle(failure),
        ruled_out=ruled_out_by_figures(failure),
        supersedes=("MEM201", "MEM702") if score >= MAKING_SCORE else (),
    )


_Found = tuple[float, str, tuple[Observation, ...]]


def _from_text(failure: Failure, log: LogText | None) -> _Found | None:
    if failure.phase is Phase.CHECKPOINT:
        return None
    making = in_frames(_MAKING, failure, innermost=INNERMOST_FRAMES)
    if making is not None:
        statement = "It failed while the optimizer made its states for the first time."
        return MAKING_SCORE, statement, (making.observation("states are being made"),)
    fits = in_words(_SGD_FITS, failure, log)
    if fits is not None:
        statement = "An optimizer with less state fits and this one does not: its states decide."
        return STATED_SCORE, statement, (fits.observation("the text compares optimizers"),)
    first = in_words(_FIRST_STEP, failure, log)
    if first is not None:
        adam = in_words(_ADAM, failure, log)
        score = STATED_SCORE if adam is not None else FIRST_STEP_SCORE
        facts: tuple[Clue, ...] = (first, adam) if adam is not None else (first,)
        statement = "It failed where the optimizer makes its states: at its first step."
        return score, statement, tuple(clue.observation("the text says") for clue in facts)
    foreach = in_frames(_FOREACH, failure, innermost=INNERMOST_FRAMES)
    if failure.phase is Phase.OPTIMIZER_STEP and foreach is None:
        statement = (
            "It failed inside the optimizer's step, which makes the states when it runs for the "
            "first time; if later steps passed before, it is the step's temporaries."
        )
        return generic(STEP_PHASE_SCORE, failure), statement, ()
    return None


def _from_size(failure: Failure, log: LogText | None, shape: TransformerShape | None) -> _Found | None:
    size = model_size(failure, log, shape)
    if size is None or not is_full_finetune(failure, log):
        return None
    states = state_bytes(size.parameter_count, failure, log)
    total = failure.total_bytes
    decides = total is not None and states.rest < total <= states.total
    facts = (
        size.fact,
        arithmetic_fact(f"12 of {states.words} are the optimizer's", states.optimizer, size.fact),
    )
    statement = (
        f"Training all parameters with AdamW keeps {bytes_text(states.optimizer)} of optimizer states a device, "
        "three quarters of all states"
        + (
            f": weights and gradients ({bytes_text(states.rest)}) would fit without them."
            if decides
            else "; this is the largest block of a full fine-tuning."
        )
    )
    return (DECIDES_SCORE if decides else FULL_FINETUNE_SCORE), statement, facts


def _within_budget(log: LogText | None, shape: TransformerShape | None) -> Finding | None:
    """A plan without a failure: a full fine-tuning within so many GB, which its optimizer states exceed."""
    size, budget = model_size(None, log, shape), in_words(_BUDGET, None, log)
    if size is None or budget is None or not is_report(log) or not is_full_finetune(None, log):
        return None
    match = _BUDGET.search(budget.text)
    states = state_bytes(size.parameter_count, None, log).optimizer
    if match is None or states <= float(match.group(1)) * GIB:
        return None
    return Finding(
        statement=f"Training all {parameters_text(size.parameter_count)} parameters with AdamW keeps "
        f"{bytes_text(states)} of optimizer states, more than the {match.group(1)} GB that the text names.",
        severity=Severity.WARNING,
        confidence=FULL_FINETUNE_SCORE,
        observations=(
            budget.observation("the text names the memory"),
            arithmetic_fact(f"{parameters_text(size.parameter_count)} parameters × 12 bytes", states, size.fact),
        ),
        actions=_actions(None, None),
        settles=what_would_settle(None),
    )


def _from_ledger(ledger: MemoryLedger, failure: Failure | None, record: AllocatorRecord | None) -> Finding | None:
    severity = ledger_severity(ledger, failure, record)
    if severity is None or not dominates(ledger, "optimizer_states"):
        return None
    states = ledger.entry("optimizer_states")
    return told_of_refusal(
        Finding(
            statement=f"Optimizer states are the largest block: {bytes_text(states)}.",
            severity=severity,
            confidence=0.9,
            observations=(block_fact(ledger, "optimizer_states"),),
            actions=_actions(ledger, record),
            impact=Impact(recoverable_bytes=states // 2),
            ruled_out=(
                RuledOut(
                    code="MEM201",
                    because=f"activations held {bytes_text(ledger.entry('activations'))}",
                ),
            )
            if severity is not Severity.INFO
            else (),
        ),
        ledger,
        failure,
        record,
    )


def _actions(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> tuple[Action, ...]:
    return (
        eight_bit_optimizer(ledger, record),
        sharded_states(),
        Action(
            title="Use an optimizer with less state",
            change='optim="adafactor"  # or torch.optim.SGD without momentum, Muon, Lion (one moment)',
            cost="other hyper-parameters; the result differs",
        ),
        offloaded_states(),
    )


def fires() -> Case:
    """The first step() of AdamW makes its moments, and the device is full."""
    return a_case(
        a_failure(
            phase=Phase.OPTIMIZER_STEP,
            requested_bytes=GIB // 4,
            allocated_bytes=78 * GIB,
            free_bytes=GIB // 8,
            frames=(
                Frame(filename="train.py", line=80, function="main", code="optimizer.step()"),
                Frame(
                    filename="torch/optim/adamw.py",
                    line=150,
                    function="_init_group",
                    code='state["exp_avg_sq"] = torch.zeros_like(',
                ),
            ),
        ),
    )


def clean() -> Case:
    """Optimizer states are the largest block of a training that has half of its device free."""
    return a_case(
        a_ledger(
            at=Moment.PEAK,
            weights=6 * GIB,
            gradients=6 * GIB,
            optimizer_states=18 * GIB,
            activations=8 * GIB,
        ),
        a_record(),
    )
