"""Which objects and which variables hold the keys and values of generation."""

import functools
import re
from typing import Any

CACHE_NAME = re.compile(
    r"kv_?(?:caches?|buffers?|pool)(?:$|_)|(?:^|_)past_(?:key|kv|state)|(?:^|_)[kv]_(?:caches?|buffers?)(?:$|_)"
    r"|(?:^|_)caches?_[kv](?:$|_)|(?:key|value)_caches?(?:$|_)"
)
"""Names of variables, attributes and buffers that hold a cache: kv_cache, past_key_values, k_cache, cache_k, key_cache, kv_buffer."""

BARE_NAMES = frozenset({"cache", "caches", "past", "layer_past", "present", "presents", "kv"})
"""Names that are one of keys and values only if what they hold looks like it."""

LEAST_DIMENSIONS = 3
"""Of a tensor of keys: batch or heads, positions, and the size of a head."""


def is_cache_class(kind: type) -> bool:
    """Whether objects of a class are caches of keys and values: transformers' Cache and its kinds, or a class named so.

    Those of transformers hold tensors in `layers`, `key_cache` and `value_cache`; Mamba's in `conv_states` and `ssm_states`.
    """
    for base in kind.__mro__:
        name = base.__name__
        if name in {"KVCache", "MambaCache", "InferenceParams"} or name.endswith("KVCache"):
            return True
        if name in {"Cache", "CacheLayerMixin"} and base.__module__.startswith("transformers."):
            return True
    return False


@functools.lru_cache(maxsize=1024)
def is_cache_name(name: str) -> bool:
    """Whether a name says that a cache of keys and values is behind it."""
    return CACHE_NAME.search(name.lower()) is not None


def looks_like_cache(name: str, tensors: list[Any]) -> bool:
    """Whether a variable is a cache, by its name and, where that alone does not tell, the shapes of what it holds."""
    if is_cache_name(name):
        return True
    if name.lower() not in BARE_NAMES or len(tensors) < 2:  # noqa: PLR2004 - keys and values
        return False
    first, second = tensors[0].shape, tensors[1].shape
    return len(first) >= LEAST_DIMENSIONS and tuple(first) == tuple(second)
