"""Whether a refused request is the logits: tokens × vocabulary × bytes, by what the log names of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.failure import Failure, LogText, Phase
from advisor.rules.facts import bytes_fact
from advisor.rules.tensor_shapes import (
    ELEMENT_BYTES,
    Said,
    family_vocabularies,
    product,
    token_count,
    tokens_of_logits,
    vocabulary,
    within_tolerance,
)
from advisor.rules.wording import GIB, bytes_text

if TYPE_CHECKING:
    from advisor.model.evidence import Source
    from advisor.model.finding import Observation
    from advisor.model.transformer import TransformerShape

LARGE_LOGITS_BYTES = 2 * GIB
"""Logits from this size decide on cards of 24 to 80 GiB: a step holds two or three such tensors."""

USUAL_WIDTHS = frozenset({1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192})
"""Widths of the residual stream of published models, among the multiples of 1,024."""

MOST_TOKENS = 1 << 20
"""A micro-batch has fewer tokens; larger numbers of tokens are a dataset's or a cache's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logits:
    """One tensor of logits.

    Attributes:
        size_bytes: tokens × vocabulary × bytes.
        token_count: its rows.
        dtype: "fp32" or "bf16".
        words: the product, written out.
        source: what names its sizes.
        is_exact: all three factors are named; otherwise the number of tokens is a round one that fits.
        is_ambiguous: an embedding of a usual width has the same bytes.
    """

    size_bytes: int
    token_count: int
    dtype: str
    words: str
    source: Source
    is_exact: bool
    is_ambiguous: bool = False

    @property
    def fact(self) -> Observation:
        """The product as a fact."""
        return bytes_fact(f"{self.words} = {bytes_text(self.size_bytes)}", self.size_bytes, self.source)


def requested_logits(failure: Failure, log: LogText | None, shape: TransformerShape | None) -> Logits | None:
    """The logits that the refused request is, to its last printed digit; None where it is not theirs."""
    written = written_logits(failure, log)
    if written is not None and (failure.requested_bytes is None or within_tolerance(failure, written.size_bytes)):
        return written
    if failure.requested_bytes is None:
        return None
    vocabularies = _vocabularies(failure, log, shape)
    tokens = token_count(failure, log)
    for words in vocabularies if tokens is not None else ():
        for dtype in ELEMENT_BYTES:
            found = _logits(failure, tokens, words, dtype) if tokens is not None else None
            if found is not None and within_tolerance(failure, found.size_bytes):
                return found
    for words in vocabularies:
        matched = tokens_of_logits(failure, words.count)
        if matched is not None:
            count, dtype = matched
            return Logits(
                size_bytes=count * words.count * ELEMENT_BYTES[dtype],
                token_count=count,
                dtype=dtype,
                words=f"{count:,} tokens × {words.words} × {ELEMENT_BYTES[dtype]} bytes",
                source=words.clue.source if words.clue is not None else failure.source,
                is_exact=False,
                is_ambiguous=failure.phase is Phase.UNKNOWN and count in USUAL_WIDTHS,
            )
    return None


def written_logits(failure: Failure | None, log: LogText | None) -> Logits | None:
    """A product with a vocabulary that the text writes out ("4 x 4096 x vocab 151936 x 4 bytes")."""
    written = product(failure, log)
    if written is None:
        return None
    (batch, length, rows), element_bytes, clue = written
    dtype = next(name for name, size in ELEMENT_BYTES.items() if size == element_bytes)
    return Logits(
        size_bytes=batch * length * rows * element_bytes,
        token_count=batch * length,
        dtype=dtype,
        words=f"{batch} × {length:,} × {rows:,} × {element_bytes} bytes",
        source=clue.source,
        is_exact=True,
    )


def described_logits(log: LogText | None) -> Logits | None:
    """Logits whose sizes one line of a description names, in fp32, where they are large."""
    words, tokens = vocabulary(None, log), token_count(None, log)
    if words is None or tokens is None or words.clue is None or tokens.clue is None:
        return None
    if tokens.clue.source != words.clue.source or tokens.count > MOST_TOKENS:
        return None
    size = tokens.count * words.count * ELEMENT_BYTES["fp32"]
    if size < LARGE_LOGITS_BYTES:
        return None
    return Logits(
        size_bytes=size,
        token_count=tokens.count,
        dtype="fp32",
        words=f"{tokens.words} × {words.words} × {ELEMENT_BYTES['fp32']} bytes",
        source=tokens.clue.source,
        is_exact=True,
    )


def _vocabularies(failure: Failure, log: LogText | None, shape: TransformerShape | None) -> tuple[Said, ...]:
    if shape is not None:
        rows = shape.vocabulary_size
        return (Said(count=rows, clue=None, words=f"{shape.name}'s vocabulary {rows:,}"),)
    named = vocabulary(failure, log)
    return (named,) if named is not None else family_vocabularies(failure, log)


def _logits(failure: Failure, tokens: Said, words: Said, dtype: str) -> Logits:
    element_bytes = ELEMENT_BYTES[dtype]
    return Logits(
        size_bytes=tokens.count * words.count * element_bytes,
        token_count=tokens.count,
        dtype=dtype,
        words=f"{tokens.words} × {words.words} × {element_bytes} bytes",
        source=words.clue.source if words.clue is not None else failure.source,
        is_exact=True,
    )
