import io
import pickle
import pickletools
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ingest import pickle_source
from advisor.ingest.pickle_source import PickleSource, TupleCountError
from advisor.ingest.snapshot import read_snapshot
from advisor.model.errors import UnreadableInput

MIB = 1024**2
MANY = 10**9


class Counted(io.BytesIO):
    """Counts the bytes that are read from it."""

    read_bytes = 0

    def read(self, size=-1, /):
        piece = super().read(size)
        self.read_bytes += len(piece)
        return piece


def in_one_frame(value):
    """A pickle of a single frame, as no pickler of Python writes it and every unpickler of Python reads it."""
    pickled = pickle.dumps(value, 4)
    heads = [place for opcode, _, place in pickletools.genops(pickled) if opcode.name == "FRAME"]
    body = b"".join(pickled[begin + 9 : end] for begin, end in zip(heads, [*heads[1:], len(pickled)], strict=True))
    return pickled[:2] + b"\x95" + struct.pack("<Q", len(body)) + body


def test_a_pickle_in_one_long_frame_is_read_without_reading_the_frame_at_once():
    value = [f"text {number}" for number in range(300_000)]
    pickled = in_one_frame(value)
    assert len(pickled) > 2 * MIB
    stream = Counted(pickled)
    source = PickleSource(stream, MANY)
    assert pickle.Unpickler(source).load() == value


@pytest.mark.parametrize("content", [b"", b"]" * 10, b"cos\nsystem\n"])
def test_a_frame_of_gigabytes_is_refused_where_what_is_in_it_goes_wrong(content):
    stream = Counted(b"\x80\x04\x95" + struct.pack("<Q", 64 * MIB) + content + bytes(64 * MIB))
    with pytest.raises(UnreadableInput):
        read_snapshot(stream, "sparse.pickle")
    assert stream.read_bytes < 8 * MIB


def test_a_frame_that_is_longer_than_the_file_is_refused_however_long_it_is():
    for claimed in (100, 10 * MIB, 1 << 40, (1 << 64) - 1):
        with pytest.raises(UnreadableInput, match="damaged"):
            read_snapshot(b"\x80\x04\x95" + struct.pack("<Q", claimed) + b"}.", "cut.pickle")


@pytest.mark.parametrize(
    "head",
    [
        b"\x80\x04\x8d" + struct.pack("<Q", 1 << 33),
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 33),
        b"\x80\x04\x96" + struct.pack("<Q", 1 << 33),
        b"\x80\x04X" + struct.pack("<I", (1 << 32) - 1),
        b"\x80\x04N\x95" + struct.pack("<Q", 70 * MIB),
        b"I",
        b"\x80\x04S'",
    ],
)
def test_values_longer_than_any_are_refused_before_they_are_read(head):
    stream = Counted(head + bytes(100 * MIB))
    with pytest.raises(UnreadableInput):
        read_snapshot(stream, "sparse.pickle")
    assert stream.read_bytes < 80 * MIB


def test_the_tuples_are_counted_as_they_are_read():
    source = PickleSource(io.BytesIO(b"\x80\x04" + b"\x85" * 100), 99)
    with pytest.raises(TupleCountError):
        source.read()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=50) | st.binary(max_size=200_000) | st.integers(), max_size=30), st.integers(4, 5), st.integers(1, 3000))
def test_every_pickle_passes_through_unchanged(value, protocol, read_ahead_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pickle_source, "READ_AHEAD_BYTES", read_ahead_bytes)
        assert PickleSource(io.BytesIO(pickle.dumps(value, protocol)), MANY).read() == pickle.dumps(value, protocol)
    assert pickle.Unpickler(PickleSource(io.BytesIO(pickle.dumps(value, protocol)), MANY)).load() == value


def test_a_bytearray_that_cannot_be_had_is_refused_in_silence(capfd):
    """CPython destroys what it could not make as if it were in use, and may print that."""
    for claimed in range(40, 62):
        with pytest.raises(UnreadableInput):
            read_snapshot(b"\x80\x05\x96" + struct.pack("<Q", 1 << claimed) + b"abc.", "hostile.pickle")
    assert not capfd.readouterr().err
