"""Read a pickled snapshot in both ways, in pieces and whole, and compare what comes out, to the last array."""

import dataclasses
import io
import pickle

import numpy as np
import pytest

from advisor.cli.limits import address_space_limit
from advisor.ingest import snapshot
from advisor.ingest.pickle_values import NotStreamableError
from advisor.ingest.snapshot import read_snapshot
from advisor.model.errors import UnreadableInput


def loaded_whole(data, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "STREAMED_FROM_BYTES", len(data) + 1)
        return read_snapshot(data, "snapshot.pickle")


def read_in_pieces(data, monkeypatch):
    """Raises NotStreamableError where the command would load it whole."""

    def refuse(*_):
        raise NotStreamableError("it would be loaded whole")

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "STREAMED_FROM_BYTES", 0)
        patch.setattr(snapshot, "load_plain_pickle", refuse)
        return read_snapshot(data, "snapshot.pickle")


def read_in_whatever_way(data, monkeypatch):
    """In pieces if that is possible, and whole if not, as the command does with a large file; a refusal is returned as its words."""
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "STREAMED_FROM_BYTES", 0)
        return read_or_refused(data)


def read_or_refused(data):
    """A refusal is returned as its words."""
    try:
        with address_space_limit("snapshot.pickle", len(data)):
            return read_snapshot(data, "snapshot.pickle")
    except UnreadableInput as refusal:
        return str(refusal)


def assert_same(one, other, where="snapshot"):
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.flags.writeable == other.flags.writeable, where
        assert np.array_equal(one, other), where
    elif hasattr(one, "__dataclass_fields__"):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, tuple) and one and type(one[0]).__eq__ is object.__eq__:
        assert len(one) == len(other), where
        for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, theirs, f"{where}[{number}]")
    else:
        assert one == other, where


def assert_read_alike(data, monkeypatch):
    assert_same(read_in_pieces(data, monkeypatch), loaded_whole(data, monkeypatch))


def assert_refused_or_read_alike(data, monkeypatch):
    """Whatever the bytes: both ways refuse in the same words, or read the same."""
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "STREAMED_FROM_BYTES", len(data) + 1)
        whole = read_or_refused(data)
    assert_same(read_in_whatever_way(data, monkeypatch), whole)


def assert_loaded_whole(data, monkeypatch):
    """It is not read in pieces, and nobody notices."""
    with pytest.raises(NotStreamableError):
        read_in_pieces(data, monkeypatch)
    assert_refused_or_read_alike(data, monkeypatch)


def python_pickled(raw, protocol):
    file = io.BytesIO()
    pickle._Pickler(file, protocol).dump(raw)
    return file.getvalue()
