"""The bytes of an untrusted pickle as an unpickler asks for them: not too many at once, and with the tuples counted."""

import io
from typing import BinaryIO

from advisor.ingest.pickle_values import FRAME, FRAME_HEAD_BYTES

READ_AHEAD_BYTES = 1024 * 1024
"""The C unpickler asks its file for a few bytes at a time unless it can peek; a buffered reader of this size lets it."""

MOST_BYTES_AT_ONCE = 64 * 1024 * 1024
"""The longest text, number or line that is read; none of a snapshot has a thousandth of it."""

MOST_FRAME_BYTES = READ_AHEAD_BYTES
"""Frames up to this length are read at once, as the unpickler does; picklers make them of 64 KiB."""

TUPLE_OPCODES = (b"\x85", b"\x86", b"\x87", b"t")
"""The opcodes that make a tuple; a tuple can be nested no deeper than these bytes occur."""

PROTO_BYTES = 2
"""The opcode of the protocol and its number stand before the first frame."""


class TupleCountError(Exception):
    """More tuple opcodes may have been read than the stack suffices for; holds how many."""

    def __init__(self, tuple_count: int) -> None:
        super().__init__(f"{tuple_count} tuples")
        self.tuple_count = tuple_count


class PickleSource(io.BufferedReader):
    """A pickle from which nothing longer than a limit is read at once.

    Args:
        stream: the pickle, from here to its end; seekable.
        most_tuples: how many tuple opcodes may be read.
    """

    def __init__(self, stream: BinaryIO, most_tuples: int) -> None:
        super().__init__(_Pieces(stream, most_tuples), READ_AHEAD_BYTES)

    def read(self, size: int | None = -1, /) -> bytes:
        """As of any reader; a size that no value has is refused."""
        _check(size or 0)
        return super().read(size)

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override] # the unpickler gives no other
        """As of any reader; a size that no value has is refused."""
        _check(len(buffer))
        return super().readinto(buffer)

    def readline(self, size: int | None = -1, /) -> bytes:
        """A line, cut off at what no value has."""
        return super().readline(MOST_BYTES_AT_ONCE if size is None or size < 0 else size)


def _check(size_bytes: int) -> None:
    if size_bytes > MOST_BYTES_AT_ONCE:
        raise EOFError(f"it claims a value of {size_bytes} bytes")


class _Pieces(io.RawIOBase):
    """Counts tuple opcodes, and makes long frames empty ones.

    An unpickler reads a frame whole before it looks at what is in it, and otherwise ignores frames: one that claims the file's remaining
    gigabytes would cost as much memory, whatever it holds. One frame begins where the one before it ends; where anything else stands
    there, no further ones are looked for, and long ones are refused.
    """

    def __init__(self, stream: BinaryIO, most_tuples: int) -> None:
        super().__init__()
        begin = stream.tell()
        self._left_bytes = stream.seek(0, io.SEEK_END) - begin
        stream.seek(begin)
        self._stream = stream
        self._most_tuples = most_tuples
        self._tuple_count = 0
        self._before_frame_bytes: int | None = PROTO_BYTES  # how far it is to the next frame; None where none is expected
        self._head = b""  # of a frame, as far as it is not handed out

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # RawIOBase takes any buffer; a BufferedReader's are these
        if self._before_frame_bytes == 0:
            self._head = self._frame_head()
        if self._head:
            piece, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            piece = self._read(min(len(buffer), READ_AHEAD_BYTES, self._before_frame_bytes or READ_AHEAD_BYTES))
            if self._before_frame_bytes is not None:
                self._before_frame_bytes -= len(piece)
        self._tuple_count += sum(map(piece.count, TUPLE_OPCODES))
        if self._tuple_count > self._most_tuples:
            raise TupleCountError(self._tuple_count)
        buffer[: len(piece)] = piece
        return len(piece)

    def _read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        self._left_bytes -= len(piece)
        return piece

    def _frame_head(self) -> bytes:
        head = self._read(FRAME_HEAD_BYTES)
        self._before_frame_bytes = None
        if len(head) < FRAME_HEAD_BYTES or head[0] != FRAME:
            return head
        length = int.from_bytes(head[1:], "little")
        if length > self._left_bytes:
            raise EOFError("a frame is longer than the file")
        self._before_frame_bytes = length
        return head if length <= MOST_FRAME_BYTES else bytes([FRAME]) + bytes(FRAME_HEAD_BYTES - 1)
