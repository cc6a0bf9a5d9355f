"""What a batch is, from the tensors in it: how many samples and tokens, and which shapes; no tensor is read."""

from collections.abc import Iterable, Mapping
from typing import Any

from advisor.client.timeline import Batch

MOST_TENSORS = 8
"""Tensors of a batch that are looked at: a batch has few, and a step few microseconds for them."""

TOKEN_NAMES = frozenset(("input_ids", "tokens", "inputs", "src"))
MATRIX = 2


def batch_of(data: Any, worker_count: int) -> Batch:  # noqa: ANN401 - a loader gives anything
    """The counts of a batch; zeros where they cannot be told."""
    samples = tokens = digest = 0
    for name, tensor in _tensors(data):
        shape = getattr(tensor, "shape", None)
        if not shape or not isinstance(shape, tuple):
            continue
        digest = digest * 1_000_003 + hash(shape) & 0xFFFFFFFF
        samples = samples or shape[0]
        # Ids are whole numbers in a matrix; the first such one counts, unless another is named as such.
        if len(shape) == MATRIX and (not tokens or name in TOKEN_NAMES) and not tensor.is_floating_point():
            tokens = shape[0] * shape[1]
    return Batch(samples, tokens, digest, worker_count)


def _tensors(data: Any) -> Iterable[tuple[str, Any]]:  # noqa: ANN401 - as above
    """The tensors of a batch with their names; mappings, tuples and lists are looked into, one level deep."""
    if isinstance(data, (list, tuple)):
        if data and isinstance(data[0], Mapping):
            return [pair for item in data[:2] for pair in list(item.items())[:MOST_TENSORS]]
        return [("", item) for item in data[:MOST_TENSORS]]
    if isinstance(data, Mapping):
        return list(data.items())[:MOST_TENSORS]
    return (("", data),)
