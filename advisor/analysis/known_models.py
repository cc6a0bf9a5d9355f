"""Built-in shapes of well-known models, by exact name."""

import functools
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.model.evidence import Source
from advisor.model.transformer import Experts, LatentAttention, Norm, TransformerShape

MODELS = Path(__file__).with_name("models.toml")


def known_model(name: str) -> TransformerShape | None:
    """The shape of a model by its built-in name ("llama-3-8b") or its name on the hub.

    None where unknown.

    Upper and lower case are the same; nothing else is forgiven.
    """
    wanted = name.strip().lower()
    for key, entry in _entries().items():
        if wanted == key or wanted in (other.lower() for other in entry["hub_names"]):
            return _shape(key, entry)
    return None


def known_model_names() -> tuple[str, ...]:
    """The built-in names, in the order of the table."""
    return tuple(_entries())


def published_parameter_count(name: str) -> int:
    """The total that the table states for a built-in name.

    Raises:
        KeyError: no such name.
    """
    count: int = _entries()[name]["parameter_count"]
    return count


def well_known_vocabulary_sizes() -> tuple[int, ...]:
    """The vocabularies of the table, each once, ascending."""
    return tuple(sorted({int(entry["vocabulary_size"]) for entry in _entries().values()}))


@functools.lru_cache(maxsize=1)
def _entries() -> Mapping[str, dict[str, Any]]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    entries: Mapping[str, dict[str, Any]] = toml.loads(MODELS.read_text(encoding="utf-8"))
    return entries


def _shape(name: str, entry: Mapping[str, Any]) -> TransformerShape:
    fields = {key: value for key, value in entry.items() if key not in ("hub_names", "parameter_count")}
    fields.setdefault("kv_head_count", fields["head_count"])
    fields.setdefault("head_size", fields["hidden_size"] // fields["head_count"])
    if "norm" in fields:
        fields["norm"] = Norm(fields["norm"])
    if "latent" in fields:
        fields["latent"] = LatentAttention(**{"query_rank": None, **fields["latent"]})
    if "experts" in fields:
        fields["experts"] = Experts(**fields["experts"])
    return TransformerShape(source=Source(path="built-in model", where=name), name=name, **fields)
