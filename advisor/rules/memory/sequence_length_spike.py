"""One unusually long sample made the step that failed, or the peak.

## What it means

Activations grow with the number of tokens, and memory is sized by the longest batch that ever comes,
not by the usual one. A job that runs for hours fails when an outlier arrives.

## How it is recognized

The log says that samples are longer than the limit, are not truncated, or that a long one failed.
Most logs do not print shapes: recording them settles it.

## What to do

Cap or drop long samples, group by length, pack, and run the longest batch first, so that it fails at
once or never.

## What it is confused with

Memory that grows with every step (MEM501), which fails later and later only if restarted. Sizes that
vary and fragment the cache (MEM407), where memory is reserved and unused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, LogText, Mention, Phase
from advisor.model.finding import Action, Finding, Severity
from advisor.rules.capacity import (
    failure_fact,
    figures_point_elsewhere,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
)
from advisor.rules.clues import in_words, is_report, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure, a_log

if TYPE_CHECKING:
    from advisor.model.case import Case

STATED_SCORE = 0.75
"""Score where the text says that long samples reach the model or made it fail."""

WARNED_SCORE = 0.4
"""Score where only the tokenizer's warning about a longer sequence was printed."""

ELSEWHERE_FACTOR = 0.5
"""Factor where the figures already point to another cause."""

_STATED = words(
    "exceed|longer than|over|truncat|outlier|long|length",
    r"(?:samples?|sequences?|examples?|inputs?|documents?|prompts?|batch(?:es)?)\b.{0,40}"
    r"(?:exceed\w*|longer than|over)\b.{0,30}(?:max\w*[ _-]?(?:seq|len|tok)\w*|limit|\d{3,})"
    r"|(?:not|never|without being|un)\s?truncat\w*"
    r"|(?:outlier|unusually long|very long|longest|extremely long)\b.{0,30}(?:sample|sequence|batch|input|example|prompt)"
    r"|(?:sample|sequence|batch|input)\s+length\w*\s+(?:spike|outlier)",
)
_WARNED = words(
    "sequence length is longer",
    r"sequence length is longer than the specified maximum",
)


@rule("MEM207", "sequence-length-spike")
def sequence_length_spike(log: LogText, failure: Failure | None) -> Finding | None:
    """The log says that samples are longer than planned, and memory ran out."""
    stated = in_words(_STATED, failure, log)
    warned = in_words(_WARNED, None, log)
    clue = warned if warned is not None and (stated is None or stated.text == warned.text) else stated
    if clue is None:
        return None
    score = WARNED_SCORE if clue is warned else STATED_SCORE
    if failure is None:
        if clue is warned or not is_report(log):
            return None
    elif not is_capacity_failure(failure) or failure.phase in {Phase.LOADING, Phase.ENGINE_START}:
        return None
    elif figures_point_elsewhere(failure):
        score *= ELSEWHERE_FACTOR
    return Finding(
        statement="Samples longer than planned reach the model; the longest batch sets the peak of memory.",
        severity=severity_of(failure) if failure is not None else Severity.WARNING,
        confidence=round(score, 3),
        observations=(
            *((failure_fact(failure),) if failure is not None else ()),
            clue.observation("the log says"),
        ),
        actions=(
            Action(
                title="Cap the length, or drop what is longer",
                change="tokenizer(..., truncation=True, max_length=N)  # or dataset.filter(lambda s: len(s['input_ids']) <= N)",
                cost="long samples are cut or lost",
            ),
            Action(
                title="Bound the tokens of a batch, not its samples",
                change="TrainingArguments(group_by_length=True), or packing=True with a fixed length",
                cost="less random batches",
            ),
            Action(
                title="Run the longest batch first",
                change="max(loader, key=lambda batch: batch['input_ids'].shape[1])  # one warm-up step with it",
                cost="one step; it fails at once or never",
            ),
        ),
        settles=Action(
            title="Print the shape of every batch",
            change="print(step, batch['input_ids'].shape, flush=True)",
        ),
        ruled_out=ruled_out_by_figures(failure) if failure is not None else (),
    )


def fires() -> Case:
    """The log says that some samples are not truncated, and forward runs out of memory."""
    return a_case(
        a_failure(phase=Phase.FORWARD, requested_bytes=3 * GIB),
        a_log(mentions=(_mention("312 samples exceed max_seq_len and are kept"),)),
    )


def clean() -> Case:
    """The tokenizer's warning in a job that runs."""
    return a_case(a_log(mentions=(_mention("Token indices sequence length is longer than the specified maximum (612 > 512)"),)))


def _mention(text: str) -> Mention:
    return Mention(topic="sequence-length", line=40, text=text)
