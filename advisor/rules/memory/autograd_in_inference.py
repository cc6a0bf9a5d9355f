"""Evaluation or generation runs with gradients enabled, so every batch's graph is kept.

## What it means

A forward pass outside `torch.no_grad()` keeps its activations as if a backward pass would follow.
Where the outputs are kept too (a list of losses or predictions), the graphs of all batches pile up,
and a batch that fits in training does not fit in validation.

## How it is recognized

It fails in evaluation or generation, and no frame of the traceback shows `no_grad` or
`inference_mode`, in its own code or as a decorator. A description that says so, or memory that grows
with every validation batch, speaks for it more than a bare failure.

## What to do

Wrap the loop in `torch.inference_mode()`; `model.eval()` does not turn gradients off.

## What it is confused with

Outputs that are kept on the device without their graph (MEM206), as Hugging Face's Trainer does. A
KV cache that grows with the context (MEM301).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.capacity import (
    failure_fact,
    figures_point_elsewhere,
    is_capacity_failure,
    severity_of,
)
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure

if TYPE_CHECKING:
    from advisor.model.case import Case

STATED_SCORE = 0.75
"""Score where the text says that no_grad is missing, or uses `volatile`, which has no effect since 0.4."""

GROWS_SCORE = 0.75
"""Score where memory grows with every validation batch, or training fits and validation does not."""

EVALUATION_SCORE = 0.6
"""Score of a failure in an evaluation loop of the user's own, without a sign of no_grad."""

NAMED_SCORE = 0.5
"""Score where only words place the failure in evaluation."""

GENERATION_SCORE = 0.3
"""Score in generation, whose usual loops turn gradients off themselves."""

ELSEWHERE_FACTOR = 0.5
"""Factor where the figures already point to another cause."""

_GUARDED = words(
    "grad|inference_mode|decorate_context|trainer|prediction_step|evaluation_loop|generation|lightning|vllm|sglang",
    r"no_grad|inference_mode|decorate_context|_no_grad_context|set_grad_enabled\(False"
    r"|transformers[/\\]trainer\w*\.py|in prediction_step|in evaluation_loop|generation[/\\]utils\.py"
    r"|lightning[/\\].{0,40}(?:evaluation|prediction)_loop|vllm[/\\]|sglang[/\\]",
)
_STATED = words(
    "grad|inference_mode|volatile|autograd",
    r"(?:without|no|missing|forgot\w*|not (?:in|under|using|use|used|wrapped in)|did not use|"
    r"does not use|lacks?|outside)\s+(?:a\s+|the\s+|with\s+|any\s+)?[`'\"]?(?:torch\.)?(?:no_grad|inference_mode)"
    r"|(?:no_grad|inference_mode)(?:\(\))?[`'\"]?\s+(?:was |is )?(?:forgotten|missing|not used|removed)"
    r"|\bvolatile\s{0,2}=\s{0,2}true\b|\bvolatile (?:was removed|has no effect|flag)|\bvolatile\b.{0,40}\bvariables?\b"
    r"|\bvariables?\b.{0,40}\bvolatile\b|(?:grad(?:ients?)?(?: mode)?|autograd)\s+(?:is\s+|was\s+)?(?:on|enabled)\s+(?:in|during)\s+"
    r"(?:eval|valid|infer|test|gener)",
)
_GROWS = words(
    "val|eval|test|inference|generat",
    r"(?:grow|ris|increas|accumulat|climb)\w*\b.{0,40}\b(?:validation|evaluation|val|eval|test|inference)\b"
    r"|(?:each|every)\s+(?:validation|evaluation|val|eval|test|inference)\s+(?:batch|step|iteration)"
    r"|(?:training|train)\s+(?:fits|works|is fine|runs|ok)\b.{0,60}(?:validation|evaluation|inference|generat|test)"
    r"|(?:validation|evaluation)\b.{0,80}\bfits (?:in|during) training",
)
_NAMED = words(
    "valid|evaluat|inference|test",
    r"\b(?:in|during|at|while|the|for|after)\s+(?:the\s+)?(?:validation|evaluation|validating|evaluating)\b"
    r"|\b(?:validation|evaluation|inference|test)\s+(?:loop|pass|batch|step|phase|stage|set)\b|\bvalidat(?:e|ion_step)\b",
)
_KEEPS_OUTPUTS = words(
    "trainer.|compute_metrics|eval_accumulation",
    r"trainer\.(?:evaluate|predict)|compute_metrics|eval_accumulation",
)


@rule("MEM205", "autograd-in-inference")
def autograd_in_inference(failure: Failure | None, log: LogText | None) -> Finding | None:
    """A failure in evaluation or generation without a sign of no_grad, or words that say so."""
    stated = in_words(_STATED, failure, log)
    if failure is None:
        is_said = stated is not None and is_report(log)
        return _finding(None, stated, STATED_SCORE) if is_said else None
    if not is_capacity_failure(failure):
        return None
    if in_frames(_GUARDED, failure) is not None:
        return None
    score, clue = _score(failure, log, stated)
    if not score:
        return None
    if figures_point_elsewhere(failure):
        score *= ELSEWHERE_FACTOR
    return _finding(failure, clue, round(score, 3))


def _score(failure: Failure, log: LogText | None, stated: Clue | None) -> tuple[float, Clue | None]:
    if stated is not None:
        return STATED_SCORE, stated
    if in_words(_KEEPS_OUTPUTS, failure, log) is not None:
        return 0.0, None
    grows, named = in_words(_GROWS, failure, log), in_words(_NAMED, failure, log)
    if grows is not None:
        return GROWS_SCORE, grows
    if failure.phase is Phase.EVALUATION:
        return (EVALUATION_SCORE if failure.frames else NAMED_SCORE), named
    if failure.phase is Phase.GENERATION:
        return GENERATION_SCORE, None
    is_placed = failure.phase is Phase.UNKNOWN and named is not None
    return (NAMED_SCORE, named) if is_placed else (0.0, None)


def _finding(failure: Failure | None, clue: Clue | None, score: float) -> Finding:
    facts: list[Observation] = [failure_fact(failure)] if failure is not None else []
    if clue is not None:
        facts.append(clue.observation("the text says"))
    if failure is not None and failure.frames:
        facts.append(
            Observation(
                statement=f"none of the {len(failure.frames)} frames shows no_grad or inference_mode",
                source=failure.source,
                value=float(len(failure.frames)),
                unit="count",
            )
        )
    return Finding(
        statement="Evaluation or generation keeps every batch's graph, as if a backward pass followed: "
        + ("gradients are enabled there." if score >= STATED_SCORE else "nothing shows that gradients are turned off there."),
        severity=severity_of(failure) if failure is not None else Severity.WARNING,
        confidence=score,
        observations=tuple(facts),
        actions=(
            Action(
                title="Turn gradients off around evaluation",
                change="with torch.inference_mode():  # or torch.no_grad(); model.eval() does not do it\n    for batch in loader: ...",
                cost="none",
            ),
            Action(
                title="Keep numbers, not tensors, of every batch",
                change="total += loss.item(); predictions.append(output.detach().cpu())",
                cost="one synchronization a batch",
            ),
        ),
        supersedes=("MEM501",) if score >= GROWS_SCORE else (),
        settles=Action(
            title="Print whether gradients are on where it fails",
            change="print(torch.is_grad_enabled(), output.requires_grad)",
        ),
    )


def fires() -> Case:
    """A validation loop of the user's own fails, and nothing shows no_grad."""
    return a_case(
        a_failure(
            phase=Phase.EVALUATION,
            requested_bytes=512 * MIB,
            allocated_bytes=78 * GIB,
            frames=(
                Frame(filename="train.py", line=120, function="main", code="validate(model, loader)"),
                Frame(filename="train.py", line=64, function="validate", code="output = model(images)"),
                Frame(filename="model.py", line=31, function="forward", code="return self.conv(x)"),
            ),
        )
    )


def clean() -> Case:
    """The same loop, decorated with torch.no_grad: its frame shows it."""
    return a_case(
        a_failure(
            phase=Phase.EVALUATION,
            requested_bytes=512 * MIB,
            allocated_bytes=78 * GIB,
            frames=(
                Frame(filename="train.py", line=120, function="main", code="validate(model, loader)"),
                Frame(
                    filename="torch/utils/_contextlib.py",
                    line=116,
                    function="decorate_context",
                    code="return func(*args, **kwargs)",
                ),
                Frame(filename="train.py", line=64, function="validate", code="output = model(images)"),
            ),
        )
    )
