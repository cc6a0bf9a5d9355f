"""The attention scores, batch × heads × T × T, are written to memory.

## What it means

Attention compares every token with every other one. A fused kernel (FlashAttention, memory-efficient
SDPA) does so piece by piece; without one the whole square is stored, in training once for the scores
and once for the softmax. It grows with the square of the sequence length.

## How it is recognized

The refused request comes from attention code that multiplies queries with keys or takes the softmax
of the scores; or the request is a whole multiple of T × T elements; or the text says that no fused
kernel is used.

## What to do

Use a fused kernel (`attn_implementation`, `is_causal=True` in place of a mask, `torch.compile` for
FlexAttention), attend in chunks, or shorten the sequence.

## What it is confused with

Other activations (MEM201), which grow in proportion to T. The KV cache (MEM301), which does too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame, LogText, Phase
from advisor.model.finding import Action, Finding, Impact, Observation, Severity
from advisor.rules.capacity import (
    failure_fact,
    figures_point_elsewhere,
    is_capacity_failure,
    ruled_out_by_figures,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import Clue, in_frames, in_words, is_report, words
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, LOG, MIB, a_case, a_failure, a_log
from advisor.rules.tensor_shapes import ELEMENT_BYTES, Said, multiple_of, sequence_length
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source

LARGE_REQUEST_BYTES = 64 * MIB
"""A square smaller than this (4,096 tokens, one head, fp32) fails only on a device that something else
has filled."""

SCORES_SCORE = 0.8
"""Score where the innermost frames compute or normalize the scores and the request is large."""

SMALL_SCORES_SCORE = 0.5
"""The same with a small or unknown request: attention is where it failed, not what filled the device."""

SQUARE_SCORE = 0.75
"""Score where the request is a whole number of T × T squares beyond chance."""

STATED_SCORE = 0.7
"""Score where the text says that the scores are stored or that no fused kernel is used."""

NAMED_SCORE = 0.5
"""Score where the text only says that it fails inside an attention module."""

INNERMOST_FRAMES = 6
"""Attention's own products lie a few frames above the allocation."""

_SCORES = words(
    "torch.|@|attn|attention|softmax",
    r"torch\.(?:matmul|bmm|baddbmm|einsum)\(.{0,60}(?:quer|\bq\b|key|\bk\b)|(?:quer\w*|\bq) @ (?:key|k\b)"
    r"|(?:attn|attention)_(?:weights|scores|probs|map)\b|eager_attention_forward|math_attention"
    r"|softmax\(.{0,40}(?:attn|scores?|attention|\bsim\b)|attention_scores",
)
_FUSED = words(
    "flash|xformers|memory_efficient",
    r"flash_attn|flash_attention|xformers|memory_efficient_attention",
)
_STATED = words(
    "att|flash|aotriton|sdpa|xformers|math|materiali|mask|quadratic",
    r"flex_?attention\b.{0,40}\b(?:eager|uncompiled|not compiled|without (?:torch\.)?compile)"
    r"|(?:without|no|lack\w*|missing|not installed|uninstalled)\s+(?:\w+\s+){0,2}?"
    r"(?:flash[-_ ]?att\w*|aotriton|sdpa kernel|fused attention|xformers)"
    r"|\bmath\b.{0,10}\b(?:sdpa|attention|backend|kernel)|sdpa.{0,15}\bmath\b"
    r"|(?:attention|attn)[ _-](?:scores?|matri(?:x|ces)|weights|map|mask).{0,40}materiali[sz]"
    r"|materiali[sz]\w*.{0,40}(?:attention|attn|causal mask|S\s?x\s?S|T\s?x\s?T|scores)"
    r"|explicit (?:causal |attention )?mask"
    r"|(?:naive|eager|vanilla|basic|unfused)[ _](?:self[- _])?attention|attn_implementation=.?eager"
    r"|quadratic.{0,30}(?:attention|sequence|length)|attention.{0,40}quadratic",
)
_NAMED = words(
    "attention|attn",
    r"\b\w*(?:attention|attn)\w*(?:\.forward|\.py)|in \w*(?:attention|attn)\w*\b",
)


@rule("MEM202", "attention-scores-materialized")
def attention_scores_materialized(failure: Failure | None, log: LogText | None) -> Finding | None:
    """The request is a square of scores, by its frames, its bytes, or the words around it."""
    stated = in_words(_STATED, failure, log)
    if failure is None:
        return _stated_alone(stated, log) if stated is not None and is_report(log) else None
    if not is_capacity_failure(failure) or failure.phase is Phase.OPTIMIZER_STEP:
        return None
    found = _found(failure, log, stated)
    if found is None:
        return None
    score, statement, facts = found
    return Finding(
        statement=statement,
        severity=severity_of(failure),
        confidence=score,
        observations=(failure_fact(failure), *facts),
        actions=_actions(),
        settles=what_would_settle(failure) if score < SCORES_SCORE else None,
        impact=Impact(recoverable_bytes=failure.requested_bytes if score >= SQUARE_SCORE else None),
        ruled_out=ruled_out_by_figures(failure),
        supersedes=("MEM201",) if score >= STATED_SCORE else (),
    )


def _found(failure: Failure, log: LogText | None, stated: Clue | None) -> tuple[float, str, tuple[Observation, ...]] | None:
    request = failure.requested_bytes
    elsewhere = figures_point_elsewhere(failure) not in {None, "MEM701"}
    frame = in_frames(_SCORES, failure, innermost=INNERMOST_FRAMES)
    if frame is not None and in_frames(_FUSED, failure, innermost=INNERMOST_FRAMES) is None:
        large = request is not None and request >= LARGE_REQUEST_BYTES and not elsewhere
        return (
            SCORES_SCORE if large else SMALL_SCORES_SCORE,
            "It failed where attention stores the scores of every token against every other one.",
            (frame.observation("the refused request comes from"),),
        )
    square = _square(failure, log)
    if square is not None and not elsewhere:
        return SQUARE_SCORE, *square
    if stated is not None:
        return (
            STATED_SCORE,
            "Attention without a fused kernel stores the scores of every token against every other one.",
            (stated.observation("the text says"), *_one_head(log)),
        )
    named = in_words(_NAMED, failure, log)
    if named is not None and not elsewhere:
        statement = "It failed inside attention; whether the scores were stored, the text does not show."
        return NAMED_SCORE, statement, (named.observation("the text names attention"),)
    return None


def _square(failure: Failure, log: LogText | None) -> tuple[str, tuple[Observation, ...]] | None:
    length = sequence_length(None, log)
    if length is None or failure.requested_bytes is None:
        return None
    for dtype, element_bytes in ELEMENT_BYTES.items():
        times = multiple_of(length.count**2 * element_bytes, failure)
        if times is not None:
            fact = Observation(
                statement=f"{times} × {length.count:,} × {length.count:,} × {element_bytes} bytes ({dtype}) "
                f"= {bytes_text(times * length.count**2 * element_bytes)}, the request",
                source=_source(length, failure),
                value=float(times * length.count**2 * element_bytes),
                unit="bytes",
            )
            statement = (
                f"The refused {bytes_text(failure.requested_bytes)} is {times} squares of "
                f"{length.count:,} × {length.count:,} scores (batch × heads of them)."
            )
            return statement, (fact,)
    return None


def _source(length: Said, failure: Failure) -> Source:
    return length.clue.source if length.clue is not None else failure.source


def _one_head(log: LogText | None) -> tuple[Observation, ...]:
    length = sequence_length(None, log)
    if length is None or length.clue is None:
        return ()
    scores = length.count**2 * ELEMENT_BYTES["bf16"]
    return (
        Observation(
            statement=f"one head's scores over {length.count:,} tokens take {bytes_text(scores)} in bf16",
            source=length.clue.source,
            value=float(scores),
            unit="bytes",
        ),
    )


def _stated_alone(stated: Clue, log: LogText | None) -> Finding:
    return Finding(
        statement="Attention without a fused kernel stores the scores of every token against every "
        "other one; they grow with the square of the sequence length.",
        severity=Severity.WARNING,
        confidence=STATED_SCORE,
        observations=(stated.observation("the text says"), *_one_head(log)),
        actions=_actions(),
        settles=what_would_settle(None),
    )


def _actions() -> tuple[Action, ...]:
    return (
        Action(
            title="Use a fused attention kernel",
            change='from_pretrained(..., attn_implementation="flash_attention_2")  # or "sdpa"\n'
            "F.scaled_dot_product_attention(q, k, v, is_causal=True)  # in place of an attn_mask\n"
            "flex_attention = torch.compile(flex_attention)",
            cost="none; the scores themselves can no longer be returned (output_attentions)",
        ),
        Action(
            title="See which kernel SDPA chooses, and why not a fused one",
            change="with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): ...  # says why it refuses",
        ),
        Action(
            title="Attend in chunks of queries",
            change="for q_part in q.split(1024, dim=-2): F.scaled_dot_product_attention(q_part, k, v)",
            cost="more launches; a fused kernel is faster",
        ),
        Action(
            title="Shorten the sequence or the image",
            change="half the tokens need a quarter of the scores",
            cost="less context",
        ),
    )


def fires() -> Case:
    """Softmax of the scores in fp32: 32 heads × 8,192 × 8,192."""
    return a_case(
        a_failure(
            phase=Phase.FORWARD,
            requested_bytes=8 * GIB,
            frames=(
                Frame(
                    filename="modeling_example.py",
                    line=220,
                    function="eager_attention_forward",
                    code="attn_weights = softmax(attn_weights, dim=-1, dtype=torch.float32)",
                ),
            ),
        ),
        a_log(settings=(("max_seq_length", "8192"),)),
    )


def clean() -> Case:
    """The request comes from the feed-forward network, right after fused attention."""
    return a_case(
        a_failure(
            source=LOG,
            phase=Phase.FORWARD,
            requested_bytes=448 * MIB,
            frames=(
                Frame(
                    filename="modeling_example.py",
                    line=180,
                    function="forward",
                    code="return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))",
                ),
            ),
        ),
        a_log(settings=(("max_seq_length", "8192"),)),
    )
