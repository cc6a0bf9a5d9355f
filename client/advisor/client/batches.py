"""What a batch is, from the tensors in it: how many samples and tokens, and which shapes; no tensor is read."""

from collections.abc import Mapping
from typing import Any

from advisor.client.timeline import Batch

MOST_TENSORS = 8
"""Tensors of a batch that are looked at: a batch has few, and a step few microseconds for them."""

TOKEN_NAMES = ("input_ids", "tokens", "inputs", "src")
INTEGER_DTYPES = {"torch.int64", "torch.int32"}
MATRIX = 2


def batch_of(data: Any, worker_count: int) -> Batch:  # noqa: ANN401 - a loader gives anything
    """The counts of a batch; zeros where they cannot be told."""
    samples = tokens = digest = seen = 0
    for name, tensor in _tensors(data):
        shape = getattr(tensor, "shape", None)
        if not isinstance(shape, tuple) or seen == MOST_TENSORS:
            continue
        seen += 1
        digest = (digest * 1_000_003 + hash(tuple(shape))) & 0xFFFFFFFF
        if not shape:
            continue
        samples = samples or int(shape[0])
        is_ids = len(shape) == MATRIX and str(tensor.dtype) in INTEGER_DTYPES
        if is_ids and (not tokens or name in TOKEN_NAMES):
            tokens = int(shape[0]) * int(shape[1])
    return Batch(samples, tokens, digest, worker_count)


def _tensors(data: Any) -> Any:  # noqa: ANN401 - as above
    """The tensors of a batch with their names; mappings, tuples and lists are looked into, one level deep."""
    if hasattr(data, "shape"):
        return (("", data),)
    if isinstance(data, (tuple, list)):
        return [pair for item in data[:MOST_TENSORS] for pair in (item.items() if isinstance(item, Mapping) else (("", item),))]
    if isinstance(data, Mapping):
        return list(data.items())[: 2 * MOST_TENSORS]
    return ()
