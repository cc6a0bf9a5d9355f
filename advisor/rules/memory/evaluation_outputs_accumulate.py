"""The outputs of an evaluation loop are kept on the device until it ends.

## What it means

A loop that collects predictions keeps, for a language model, tokens × vocabulary numbers of every
batch. Hugging Face's Trainer concatenates them on the device unless it is told to move them away, so
evaluation fails after many batches that each fit.

## How it is recognized

It fails where outputs are gathered or concatenated in an evaluation loop; or it fails in
`Trainer.evaluate()` or `predict()`, above all with `compute_metrics`, and no
`eval_accumulation_steps` is set.

## What to do

Move outputs to the host every few steps, or reduce them at once to what the metric needs.

## What it is confused with

Gradients enabled in a loop of one's own (MEM205). Logits of a single batch that do not fit (MEM203).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import Action, Finding, Severity
from advisor.rules.capacity import (
    failure_fact,
    figures_point_elsewhere,
    is_capacity_failure,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_log

if TYPE_CHECKING:
    from advisor.model.case import Case

GATHERING_SCORE = 0.9
"""Score where the refused request concatenates or gathers outputs inside an evaluation loop."""

STATED_SCORE = 0.75
"""Score where the text says that predictions or logits pile up in evaluation."""

TRAINER_SCORE = 0.65
"""Score of a failure in Trainer's evaluation, which turns gradients off and keeps outputs by default."""

NAMED_SCORE = 0.5
"""Score where only words name Trainer's evaluation or compute_metrics."""

LOOP_SCORE = 0.35
"""Score in an evaluation loop of the user's own."""

ELSEWHERE_FACTOR = 0.5
"""Factor where the figures already point to another cause."""

INNERMOST_FRAMES = 6
"""Gathering lies a few frames above the allocation."""

_GATHERING = words(
    "nested_|pad|gather|concat|torch.cat|torch.stack",
    r"nested_concat|torch_pad_and_concatenate|nested_new_like|_pad_across_processes|pad_across_processes"
    r"|gather_for_metrics|distributed_concat|numpy_pad_and_concatenate"
    r"|torch\.(?:cat|stack)\(.{0,40}(?:preds?|predictions|outputs?|logits|all_)",
)
_TRAINER = words(
    "trainer|_loop",
    r"transformers[/\\]trainer\w*\.py.{0,80}(?:evaluat|predict)|in (?:evaluation|prediction)_loop",
)
_EVALUATION = words(
    "evaluat|predict|validat|eval_",
    r"evaluat|predict|validat|\beval_",
)
_STATED = words(
    "prediction|logit|output",
    r"(?:predictions?|logits?|outputs?)\b.{0,40}\b(?:concatenat|accumulat|kept|pile|stored|collect)\w*.{0,40}"
    r"(?:gpu|device|eval|memory)|(?:accumulat|concatenat)\w*\s+(?:of\s+)?(?:the\s+|all\s+)?(?:eval\w*\s+)?"
    r"(?:predictions?|logits?|outputs?)",
)
_NAMED = words(
    "trainer|compute_metrics",
    r"trainer\.(?:evaluate|predict)\b|\bcompute_metrics\b|\bevaluate\(\).{0,30}trainer|trainer.{0,30}\bevaluate\(\)",
)


@rule("MEM206", "evaluation-outputs-accumulate")
def evaluation_outputs_accumulate(failure: Failure | None, log: LogText | None) -> Finding | None:
    """Outputs are gathered where it fails, or Trainer's evaluation runs out of memory."""
    if failure is None or not is_capacity_failure(failure):
        return None if failure is not None else _without_failure(log)
    score, clue = _score(failure, log)
    if not score:
        return None
    is_set = (log.setting("eval_accumulation_steps") or "None") if log is not None else "None"
    if is_set != "None" and score < GATHERING_SCORE:
        return None
    if score < GATHERING_SCORE and figures_point_elsewhere(failure):
        score *= ELSEWHERE_FACTOR
    return Finding(
        statement="Evaluation keeps the outputs of all batches on the device until its end"
        + ("; it failed while gathering them." if score >= GATHERING_SCORE else "."),
        severity=severity_of(failure),
        confidence=round(score, 3),
        observations=(failure_fact(failure), *((clue.observation("it says"),) if clue is not None else ())),
        actions=_actions(),
        settles=None if score >= GATHERING_SCORE else what_would_settle(failure),
        supersedes=("MEM205",) if score >= GATHERING_SCORE else (),
    )


def _score(failure: Failure, log: LogText | None) -> tuple[float, Clue | None]:
    gathering = in_frames(_GATHERING, failure, innermost=INNERMOST_FRAMES)
    if gathering is not None and in_frames(_EVALUATION, failure) is not None:
        return GATHERING_SCORE, gathering
    stated = in_words(_STATED, failure, log)
    named = in_words(_NAMED, failure, log)
    trainer = in_frames(_TRAINER, failure)
    if trainer is not None:
        return TRAINER_SCORE, trainer
    if failure.phase in {Phase.UNKNOWN, Phase.EVALUATION} or not failure.frames:
        if stated is not None:
            return STATED_SCORE, stated
        if named is not None:
            return TRAINER_SCORE, named
    if failure.phase is Phase.EVALUATION:
        return LOOP_SCORE, None
    return 0.0, None


def _without_failure(log: LogText | None) -> Finding | None:
    """A description that says that outputs pile up; a mere name of the function says nothing."""
    clue = in_words(_STATED, None, log)
    if clue is None or not is_report(log):
        return None
    return Finding(
        statement="The text says that evaluation keeps the outputs of all batches.",
        severity=Severity.WARNING,
        confidence=NAMED_SCORE,
        observations=(clue.observation("it says"),),
        actions=_actions(),
        settles=what_would_settle(None),
    )


def _actions() -> tuple[Action, ...]:
    return (
        Action(
            title="Move outputs to the host every few steps",
            change="TrainingArguments(eval_accumulation_steps=8)",
            cost="a copy every few steps; host memory for all outputs",
        ),
        Action(
            title="Reduce logits to what the metric needs before they are kept",
            change="Trainer(preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1))",
            cost="metrics that need probabilities cannot be computed",
        ),
        Action(
            title="Keep no outputs where only the loss is needed",
            change="TrainingArguments(prediction_loss_only=True)",
            cost="no other metric",
        ),
        Action(
            title="In a loop of one's own, move each output away at once",
            change="outputs.append(model(batch).detach().cpu())",
            cost="one synchronization a batch",
        ),
    )


def fires() -> Case:
    """Trainer's evaluation loop fails while it concatenates logits."""
    return a_case(
        a_failure(
            phase=Phase.EVALUATION,
            requested_bytes=6 * GIB,
            frames=(
                Frame(
                    filename="transformers/trainer.py",
                    line=4400,
                    function="evaluation_loop",
                    code="all_preds.add(logits)",
                ),
                Frame(
                    filename="transformers/trainer_pt_utils.py",
                    line=330,
                    function="nested_concat",
                    code="return torch_pad_and_concatenate(tensors, new_tensors)",
                ),
            ),
        )
    )


def clean() -> Case:
    """An evaluation that fails in a layer's forward pass of its very own batch, with the setting in place."""
    return a_case(
        a_failure(
            phase=Phase.EVALUATION,
            requested_bytes=6 * GIB,
            frames=(
                Frame(filename="train.py", line=90, function="evaluate", code="out = model(**batch)"),
                Frame(filename="model.py", line=31, function="forward", code="return self.up_proj(x)"),
            ),
        ),
        a_log(settings=(("eval_accumulation_steps", "8"),)),
    )
