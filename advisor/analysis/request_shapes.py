"""Which tensor of a model has the size of a refused request.

A printed size is rounded, so many products equal it by chance; each match says how surely it does
not.
"""

import enum
import math
from collections.abc import Iterator

from advisor.analysis.transformer_parameters import weights
from advisor.model.dataclass import dataclass
from advisor.model.transformer import TransformerShape

FLOAT32_BYTES = 4
HALF_BYTES = 2
ELEMENT_BYTES = (HALF_BYTES, FLOAT32_BYTES)
"""Sizes of the numbers that activations and logits are made of."""
ROUND_TOKENS = 256
"""Without a known batch and sequence only token counts of this granularity are tried: people choose
round lengths."""
GUESSED_BATCHES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256)
"""Batches tried for attention scores where the batch is unknown."""
WITHOUT_MODEL_CEILING_RATIO = 0.3
"""A vocabulary that was merely tried from a list proves little, however well it fits."""
LEAST_REQUEST_BYTES = 2**20
"""Below a mebibyte any number is a product of some shape."""
LARGEST_GUESSED_TOKENS = 2**20
"""A million tokens in one tensor: more is not a batch that anybody runs on one device."""
LEAST_WELL_KNOWN_VOCABULARY = 30_000
"""A vocabulary of bytes or characters has rows so narrow that everything is a multiple of them."""
LIKELY_RATIO = 0.5
"""A kind that fits at least this surely competes with the other kinds that do."""
MATCH_LIMIT = 16


class RequestKind(enum.Enum):
    """What the tensor would be."""

    LOGITS = "logits"
    ATTENTION_SCORES = "attention scores"
    KV_CACHE = "KV cache"
    FFN_ACTIVATION = "feed-forward activation"
    HIDDEN_ACTIVATION = "hidden states"
    PARAMETER = "parameter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeMatch:
    """One product that equals the request within its resolution.

    Attributes:
        kind: what the tensor would be.
        factors: its factors by name, the last one the bytes of an element ("batch", 4),
            ("sequence", 4096), ...
        matched_bytes: the product.
        error_bytes: product less request.
        alternative_count: other products, of any kind, that equal the request as well.
        uniqueness_ratio: 1 less the chance that a size which has nothing to do with the product
            would match, all products tried of its kind counted, divided by the kinds that fit as
            well; 0 says nothing, 1 is certain.
        is_declared: every factor was given by the caller; none was tried from a list.
    """

    kind: RequestKind
    factors: tuple[tuple[str, int], ...]
    matched_bytes: int
    error_bytes: int
    alternative_count: int
    uniqueness_ratio: float
    is_declared: bool

    @property
    def expression(self) -> str:
        """The product in words: "4 x 4096 x 151936 x 4 bytes"."""
        return " × ".join(str(value) for _, value in self.factors) + " bytes"


@dataclass(frozen=True, slots=True)
class _Candidate:
    kind: RequestKind
    factors: tuple[tuple[str, int], ...]
    chance_ratio: float
    """The chance that a random size meets one of the products of which this is one, within the
    resolution."""
    is_declared: bool

    @property
    def product_bytes(self) -> int:
        return math.prod(value for _, value in self.factors)


def explain_request(
    requested_bytes: int,
    *,
    resolution_bytes: int,
    shape: TransformerShape | None = None,
    batch: int | None = None,
    sequence: int | None = None,
) -> tuple[ShapeMatch, ...]:
    """The tensors that a request could be, most certain first.

    Nothing is returned where nothing fits or the request is small.

    Args:
        requested_bytes: what was asked for.
        resolution_bytes: how far the true size may lie from it (half of the last printed digit; 512
            for recorded requests).
        shape: the model; without it only well-known vocabularies are tried, and rated low.
        batch: sequences of a (micro-)batch, where known.
        sequence: tokens of a sequence, where known.
    """
    if requested_bytes < LEAST_REQUEST_BYTES:
        return ()
    asked = _Asked(requested_bytes, max(resolution_bytes, 1), batch, sequence)
    hits: list[tuple[_Candidate, float]] = []
    for kind in RequestKind:
        tried = list(_candidates(kind, asked, shape))
        certainty = 1.0 - min(1.0, sum(candidate.chance_ratio for candidate in tried))
        hits.extend((tried_one, certainty) for tried_one in tried if asked.equals(tried_one.product_bytes))
    likely_kinds = {hit.kind for hit, certainty in hits if certainty >= LIKELY_RATIO}
    ceiling = 1.0 if shape else WITHOUT_MODEL_CEILING_RATIO
    found = [_match(hit, asked, len(hits) - 1, min(ceiling, certainty / max(1, len(likely_kinds)))) for hit, certainty in hits]
    found.sort(key=lambda match: (-match.uniqueness_ratio, not match.is_declared, abs(match.error_bytes)))
    return tuple(found[:MATCH_LIMIT])


@dataclass(frozen=True, slots=True)
class _Asked:
    requested_bytes: int
    resolution_bytes: int
    batch: int | None
    sequence: int | None

    @property
    def tokens(self) -> int | None:
        return self.batch * self.sequence if self.batch and self.sequence else None

    def equals(self, size_bytes: int) -> bool:
        """Whether a size lies within the resolution."""
        return abs(size_bytes - self.requested_bytes) <= self.resolution_bytes

    def chance_of_one(self) -> float:
        """The chance that a size of this magnitude falls on one given product."""
        return min(1.0, (2 * self.resolution_bytes + 1) / self.requested_bytes)

    def chance_of_multiple(self, spacing_bytes: float) -> float:
        """The same for products that stand `spacing_bytes` apart."""
        return min(1.0, (2 * self.resolution_bytes + 1) / spacing_bytes)


def _match(hit: _Candidate, asked: _Asked, alternatives: int, uniqueness: float) -> ShapeMatch:
    return ShapeMatch(
        kind=hit.kind,
        factors=hit.factors,
        matched_bytes=hit.product_bytes,
        error_bytes=hit.product_bytes - asked.requested_bytes,
        alternative_count=alternatives,
        uniqueness_ratio=uniqueness,
        is_declared=hit.is_declared,
    )


def _candidates(kind: RequestKind, asked: _Asked, shape: TransformerShape | None) -> Iterator[_Candidate]:
    if kind is RequestKind.LOGITS:
        yield from _logits(asked, shape)
    elif shape is None:
        return
    elif kind is RequestKind.ATTENTION_SCORES:
        yield from _scores(asked, shape)
    elif kind is RequestKind.PARAMETER:
        yield from _parameters(asked, shape)
    else:
        yield from _per_token(kind, asked, shape)


def _logits(asked: _Asked, shape: TransformerShape | None) -> Iterator[_Candidate]:
    vocabularies = (shape.vocabulary_size,) if shape else _known_vocabularies()
    if shape is None and asked.tokens and asked.tokens % ROUND_TOKENS:
        return
    for vocabulary in vocabularies:
        for element_bytes in (FLOAT32_BYTES, HALF_BYTES):
            row = ("vocabulary", vocabulary)
            yield from _rows(RequestKind.LOGITS, asked, row, element_bytes, is_known=shape is not None)


def _per_token(kind: RequestKind, asked: _Asked, shape: TransformerShape) -> Iterator[_Candidate]:
    if kind is RequestKind.KV_CACHE:
        width = 2 * shape.kv_head_count * shape.head_size
        if shape.latent:
            width = shape.latent.kv_rank + shape.latent.rope_head_size
        widths = {"keys and values of a layer": width, "keys and values": width * shape.layer_count}
        if not shape.latent:
            widths["keys of a layer"] = width // 2
    elif kind is RequestKind.FFN_ACTIVATION:
        widths = {"ffn width": shape.ffn_size}
        if shape.ffn_is_gated:
            widths["gate and up widths"] = 2 * shape.ffn_size
    else:
        widths = {"hidden width": shape.hidden_size}
    for row in widths.items():
        for element_bytes in ELEMENT_BYTES:
            yield from _rows(kind, asked, row, element_bytes, is_known=True)


def _rows(kind: RequestKind, asked: _Asked, row: tuple[str, int], element_bytes: int, *, is_known: bool) -> Iterator[_Candidate]:
    """Batch × sequence × width × bytes, with the given tokens or else the nearest round number."""
    row_bytes = row[1] * element_bytes
    last = (row, ("bytes", element_bytes))
    if asked.batch and asked.sequence:
        chance = asked.chance_of_one()
        yield _Candidate(kind, (("batch", asked.batch), ("sequence", asked.sequence), *last), chance, is_known)
        if kind is RequestKind.LOGITS and asked.sequence > 1:
            shifted = ("sequence", asked.sequence - 1)  # the loss drops the last position
            yield _Candidate(kind, (("batch", asked.batch), shifted, *last), chance, is_known)
        return
    unit_tokens = asked.sequence or (asked.batch or 1) * ROUND_TOKENS
    count = max(1, round(asked.requested_bytes / (row_bytes * unit_tokens)))
    if count * unit_tokens > LARGEST_GUESSED_TOKENS:
        return
    leading: tuple[tuple[str, int], ...] = (("tokens", count * ROUND_TOKENS),)
    if asked.sequence:
        leading = (("batch", count), ("sequence", asked.sequence))
    elif asked.batch:
        leading = (("batch", asked.batch), ("sequence", count * ROUND_TOKENS))
    chance = asked.chance_of_multiple(row_bytes * unit_tokens)
    yield _Candidate(kind, (*leading, *last), chance, is_declared=False)


def _scores(asked: _Asked, shape: TransformerShape) -> Iterator[_Candidate]:
    """Batch × heads × T × T × bytes."""
    for batch in (asked.batch,) if asked.batch else GUESSED_BATCHES:
        for element_bytes in ELEMENT_BYTES:
            row_bytes = batch * shape.head_count * element_bytes
            sequence = asked.sequence
            chance = asked.chance_of_one()
            if sequence is None:
                steps = max(1, round(math.sqrt(asked.requested_bytes / row_bytes) / ROUND_TOKENS))
                sequence = steps * ROUND_TOKENS
                chance = asked.chance_of_multiple(2 * row_bytes * sequence * ROUND_TOKENS)
            square = (("sequence", sequence), ("sequence", sequence), ("bytes", element_bytes))
            factors = (("batch", batch), ("heads", shape.head_count), *square)
            declared = asked.batch is not None and asked.sequence is not None
            yield _Candidate(RequestKind.ATTENTION_SCORES, factors, chance, declared)


def _parameters(asked: _Asked, shape: TransformerShape) -> Iterator[_Candidate]:
    """Rows × columns × bytes of one matrix, and of all experts of a layer stacked."""
    seen: set[int] = set()
    for weight in weights(shape):
        for element_bytes in ELEMENT_BYTES:
            size = weight.element_count * element_bytes
            if size in seen or size < LEAST_REQUEST_BYTES:
                continue
            seen.add(size)
            factors = (
                (f"{weight.name} rows", weight.row_count),
                (f"{weight.name} columns", weight.column_count),
                ("bytes", element_bytes),
            )
            yield _Candidate(RequestKind.PARAMETER, factors, asked.chance_of_one(), is_declared=True)


def _known_vocabularies() -> tuple[int, ...]:
    from advisor.analysis.known_models import well_known_vocabulary_sizes  # noqa: PLC0415 - reads a table

    return tuple(size for size in well_known_vocabulary_sizes() if size >= LEAST_WELL_KNOWN_VOCABULARY)
