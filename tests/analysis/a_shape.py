"""Builders of small transformers."""

from advisor.model.evidence import Source
from advisor.model.transformer import TransformerShape


def a_shape(**fields):
    base = {
        "source": Source(path="test"),
        "name": "small",
        "layer_count": 2,
        "hidden_size": 8,
        "head_count": 4,
        "kv_head_count": 2,
        "head_size": 2,
        "ffn_size": 24,
        "vocabulary_size": 100,
    }
    return TransformerShape(**(base | fields))
