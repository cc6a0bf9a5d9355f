"""What grows is the autograd graph of earlier steps: a tensor that is kept keeps its whole graph alive.

## What it means

A loss that is added to a running total as a tensor carries the graph that computed it, with all
activations that backward would need. So does an output in a list, a hidden state that is carried over
without `detach()`, and `backward(retain_graph=True)`.

## How it is recognized

From a snapshot: the memory that grows from step to step was allocated in the forward pass. From a
traceback or a description: a loss is summed without `.item()`, or `retain_graph=True` stands in the
failing line.

## What to do

Detach what is kept from one step to the next; let backward free its graph.

## What it is confused with

Growth of other memory (MEM501): this one is its commonest kind. Validation without `no_grad`
(MEM205).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Mention, Phase
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.model.memory import AllocationSite, AllocatorRecord
from advisor.rules.blocks import site_facts
from advisor.rules.capacity import failure_fact, is_capacity_failure, severity_of
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.memory.memory_growth import LEAST_GROWTH_BYTES
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure, a_log, a_record
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case

GRAPH_RATIO = 0.5
"""Share of the growth that is saved for backward from which the graph is what grows."""

RETAINED_SCORE = 0.75
"""Score where retain_graph=True stands in a frame of the failure."""

SUMMED_SCORE = 0.75
"""Score where the text says, or code shows, that losses are kept as tensors."""

CARRIED_SCORE = 0.6
"""Score where a mention of retain_graph or of a hidden state without detach is all there is."""

_RETAIN = words(
    "retain_graph",
    r"retain_graph\s?=\s?True",
)
_SUMMED = words(
    "+=|without|meter|running|total|graph",
    r"\w*(?:loss|likelihood|nll)\w*\s*\+=\s*(?!.*\.(?:item|detach|data|tolist|cpu)\b)\w*(?:loss|likelihood|nll|criterion)"
    r"|\+=\s+(?:of\s+)?loss\w*\s+without|(?:loss|tensor)\w*\s+(?:\w+\s+){0,4}without\s+(?:\.?item|\.?detach|using \.?item)"
    r"|(?:meters?|running (?:sum|total|loss)|total(?:_loss| loss))\b.{0,60}\b(?:tensors?|graph|not values)"
    r"|(?:holds?|keeps?|kept|retain\w*)\s+(?:\w+\s+){0,4}(?:graphs?|computation(?:al)? graph|every iteration's graph)",
)
_CARRIED = words(
    "detach|hidden state",
    r"(?:without|no|missing|forgot\w*)\s+[`.]?detach|hidden state\w*.{0,40}(?:detach|carried|kept)",
)


@rule("MEM502", "retained-graph")
def retained_graph(record: AllocatorRecord | None, failure: Failure | None, log: LogText | None) -> Finding | None:
    """Growth made of saved tensors, or a loss kept as a tensor."""
    if record is not None and record.growth_bytes_per_step is not None:
        return _from_record(record)
    if failure is not None and (not is_capacity_failure(failure) or failure.phase in {Phase.LOADING, Phase.ENGINE_START}):
        return None
    summed = in_words(_SUMMED, failure, log)
    retain = in_frames(_RETAIN, failure)
    carried = in_words(_CARRIED, failure, log) or in_words(_RETAIN, failure, log)
    clue: Clue | None
    if retain is not None:
        clue, score = retain, RETAINED_SCORE
    elif summed is not None:
        clue, score = summed, SUMMED_SCORE
    else:
        clue, score = carried, CARRIED_SCORE
    if clue is None or (failure is None and (clue is not summed or not is_report(log))):
        return None
    facts = (failure_fact(failure),) if failure is not None else ()
    return _finding(
        severity_of(failure),
        score,
        (*facts, clue.observation("the graph of a step is kept")),
        None,
    )


def _from_record(record: AllocatorRecord) -> Finding | None:
    grown = sum(site.live_bytes for site in record.growth_sites)
    graphs = [site for site in record.growth_sites if site.block == "activations"]
    saved = sum(site.live_bytes for site in graphs)
    growth = record.growth_bytes_per_step or 0.0
    if growth < LEAST_GROWTH_BYTES or not grown or saved < GRAPH_RATIO * grown:
        return None
    facts = (
        Observation(
            statement=f"{ratio_text(saved / grown)} of what grows ({bytes_text(growth)} a step) was saved for backward",
            source=record.source,
            value=saved / grown,
            unit="ratio",
        ),
        *site_facts(graphs, record.source),
    )
    severity = Severity.ERROR if record.oom_count else Severity.WARNING
    return _finding(severity, 0.85, facts, saved)


def _finding(severity: Severity, score: float, facts: tuple[Observation, ...], saved_bytes: int | None) -> Finding:
    return Finding(
        statement="The graphs of earlier steps are kept alive, with their activations, by a tensor that is carried from step to step.",
        severity=severity,
        confidence=score,
        observations=facts,
        actions=(
            Action(
                title="Add numbers, not tensors",
                change="total_loss += loss.item()  # or loss.detach()",
                cost="one synchronization a step; with .detach() none",
            ),
            Action(
                title="Cut the graph where a state is carried over",
                change="hidden = hidden.detach()",
                cost="gradients stop at the cut, as in truncated backpropagation",
            ),
            Action(
                title="Let backward free its graph",
                change="loss.backward()  # without retain_graph=True",
                cost="a second backward through the same graph is not possible",
            ),
        ),
        settles=Action(
            title="Print the live bytes after every step",
            change="print(step, torch.cuda.memory_allocated())",
        ),
        impact=Impact(recoverable_bytes=saved_bytes),
        supersedes=("MEM501",),
    )


def fires() -> Case:
    """What grows by 12 MiB a step was saved for backward."""
    return a_case(
        a_record(
            growth_bytes_per_step=12.0 * MIB,
            growth_sites=(
                AllocationSite(
                    label="model.py:88 in forward",
                    block="activations",
                    live_bytes=480 * MIB,
                    count=40,
                    largest_bytes=12 * MIB,
                    why="allocated in forward, live after its step",
                ),
            ),
        )
    )


def clean() -> Case:
    """A loss is summed as a number, and the job runs out of memory in its first forward."""
    return a_case(
        a_failure(
            phase=Phase.FORWARD,
            requested_bytes=GIB,
            frames=(Frame(filename="train.py", line=40, function="train", code="out = model(x)"),),
        ),
        a_log(mentions=(Mention(topic="item", line=9, text="total_loss += loss.item()", in_code=True),)),
    )
