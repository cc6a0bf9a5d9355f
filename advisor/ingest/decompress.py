"""Read gzip and zstd as a stream, with limits that a decompression bomb runs into early."""

import io
import re
import zlib
from collections.abc import Callable
from typing import BinaryIO

from advisor.model.dataclass import dataclass
from advisor.model.errors import UnreadableInput

READ_BYTES = 128 * 1024
"""Compressed bytes taken at a time: large enough for few calls, small enough to stay in cache."""

ZSTD_STEP_BYTES = 1024
"""Compressed bytes given to zstd at a time. Its output cannot be bounded otherwise: a block of 4
bytes may become 128 KiB, so a step becomes 32 MiB at most."""

GZIP_STEP_BYTES = 1024
"""Compressed bytes given first to a gzip member, twice as many each time after. What is behind the
member's end is copied, and so is no more than about the member's own size."""

MEMBER_LIMIT = 100_000
"""gzip members or zstd frames of one input. Each costs some microseconds however little it holds;
block-wise writers put 64 KiB into one, so this many hold 6 GB."""

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_PADDING = re.compile(rb"\0*")


@dataclass(frozen=True, slots=True, kw_only=True)
class InflationLimits:
    """How much a compressed input may become.

    Attributes:
        free_bytes: allowed whatever the ratio: a repetitive log of this size may shrink a
            thousandfold.
        ratio: above `free_bytes`, at most this many bytes for each compressed one. The traces and
            snapshots of the field reach 35; gzip itself can reach 1,032, zstd far more.
        total_bytes: never more than this.
        window_bytes: largest window that a zstd frame may ask for (2^27 is zstd's own limit).
    """

    free_bytes: int = 32 * 1024**2
    ratio: int = 100
    total_bytes: int = 64 * 1024**3
    window_bytes: int = 128 * 1024**2


DEFAULT_LIMITS = InflationLimits()


class Decompressed(io.RawIOBase):
    """The decompressed bytes of a stream.

    Attributes:
        compression: "gzip", "zstd" or, where the input is not compressed, empty.
        is_truncated: known at the end of the stream: the compressed input ends early or is damaged
            there. What could be decompressed before has been delivered.
    """

    def __init__(self, stream: BinaryIO, limits: InflationLimits = DEFAULT_LIMITS) -> None:
        super().__init__()
        self._stream = stream
        self._limits = limits
        self._pending = stream.read(READ_BYTES)
        self._compressed_bytes = len(self._pending)
        self._inflated_bytes = 0
        self._member_count = 1
        self.is_truncated = False
        self.compression = _compression(self._pending)
        self._inflate = self._start()

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview | bytearray) -> int:  # type: ignore[override] # RawIOBase takes any buffer; ours are these
        """Fill the buffer as far as one step of decompression does; 0 at the end of the stream.

        Raises:
            UnreadableInput: it becomes more than the limits allow, or it is damaged from its start.
        """
        if not self.compression and not self._pending:
            return self._straight(buffer)
        piece = self._inflate(len(buffer))
        buffer[: len(piece)] = piece
        self._inflated_bytes += len(piece)
        self._check()
        return len(piece)

    def _start(self) -> Callable[[int], bytes]:
        if self.compression == "gzip":
            return _Gzip(self).inflate
        if self.compression == "zstd":
            return _Zstd(self, self._limits.window_bytes).inflate
        return self._plain

    def _straight(self, buffer: memoryview | bytearray) -> int:
        """An input that is not compressed, without a copy where its stream allows that."""
        readinto = getattr(self._stream, "readinto", None)
        if readinto:
            return int(readinto(buffer) or 0)
        piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _plain(self, size_bytes: int) -> bytes:
        piece = self._pending or self.take(size_bytes)
        self._pending = piece[size_bytes:]
        return piece[:size_bytes]

    def take(self, size_bytes: int) -> bytes:
        """The next compressed bytes; empty at their end."""
        if self._pending:
            piece, self._pending = self._pending, b""
            return piece
        piece = self._stream.read(size_bytes)
        self._compressed_bytes += len(piece)
        return piece

    def count_member(self) -> None:
        """Another member or frame begins; refuse an input that consists of too many."""
        self._member_count += 1
        if self._member_count > MEMBER_LIMIT:
            raise UnreadableInput(
                f"it consists of more than {MEMBER_LIMIT:,} separately compressed pieces",
                "if you trust it, decompress it yourself and give the result",
            )

    def damaged(self, because: str) -> bytes:
        """End the stream early; refuse it where nothing at all could be read."""
        if not self._inflated_bytes:
            raise UnreadableInput(
                f"its {self.compression} compression is damaged ({because})",
                "copy the file again, or decompress it yourself",
            )
        self.is_truncated = True
        return b""

    def _check(self) -> None:
        limits = self._limits
        allowed = max(limits.free_bytes, self._compressed_bytes * limits.ratio)
        if self.compression and self._inflated_bytes > min(allowed, limits.total_bytes):
            raise UnreadableInput(
                f"it decompresses to more than {limits.ratio} times its size",
                "if you trust it, decompress it yourself and give the result",
            )


def decompressed(stream: BinaryIO, path: str, *, limits: InflationLimits = DEFAULT_LIMITS) -> Decompressed:
    """The decompressed bytes of an open file; one that is not compressed comes through unchanged.

    Args:
        stream: at its start.
        path: as the user named it; errors do not repeat it.
        limits: what it may become.

    Raises:
        UnreadableInput: it is damaged from its start, or zstandard is not installed. Reading from
            the result raises it for an input that becomes too large.
    """
    del path
    return Decompressed(stream, limits)


def _compression(head: bytes) -> str:
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    return "zstd" if head.startswith(ZSTD_MAGIC) else ""


class _Gzip:
    """gzip members one behind the other, as `cat a.gz b.gz` makes them."""

    def __init__(self, source: Decompressed) -> None:
        self._source = source
        self._member = zlib.decompressobj(wbits=31)
        self._input = memoryview(b"")
        self._step_bytes = GZIP_STEP_BYTES

    def inflate(self, size_bytes: int) -> bytes:
        while True:
            if self._member.eof and not self._next_member():
                return b""
            self._input = self._input or memoryview(self._source.take(READ_BYTES))
            if not self._input:
                return self._source.damaged("it ends early")
            given = self._input[: self._step_bytes]
            try:
                piece = self._member.decompress(given, size_bytes)
            except zlib.error as error:
                return self._source.damaged(str(error))
            left = len(self._member.unused_data if self._member.eof else self._member.unconsumed_tail)
            self._input = self._input[len(given) - left :]
            self._step_bytes = min(2 * self._step_bytes, READ_BYTES)
            if piece:
                return piece

    def _next_member(self) -> bool:
        """Go to the next member; False at the end, which padding with zeros may follow."""
        rest = self._input or memoryview(self._source.take(READ_BYTES))
        padding = _PADDING.match(rest)
        self._input = rest[padding.end() :] if padding else rest
        if self._input[:1] != GZIP_MAGIC[:1]:
            return False
        self._source.count_member()
        self._member = zlib.decompressobj(wbits=31)
        self._step_bytes = GZIP_STEP_BYTES
        return True


class _Zstd:
    """zstd frames one behind the other."""

    def __init__(self, source: Decompressed, window_bytes: int) -> None:
        try:
            import zstandard  # noqa: PLC0415 - an optional dependency, needed for such inputs only
        except ImportError:
            raise UnreadableInput(
                "it is compressed by zstd, and the package zstandard is not installed",
                "pip install 'gpu-advisor[node]', or decompress it yourself",
            ) from None
        self._source = source
        self._error = zstandard.ZstdError
        self._start = zstandard.ZstdDecompressor(max_window_size=window_bytes).decompressobj
        self._frame = self._start()
        self._input = memoryview(b"")
        self._output = memoryview(b"")

    def inflate(self, size_bytes: int) -> bytes:
        while not self._output:
            if self._frame.eof and not self._next_frame():
                return b""
            self._input = self._input or memoryview(self._source.take(READ_BYTES))
            if not self._input:
                return self._source.damaged("it ends early")
            given = self._input[:ZSTD_STEP_BYTES]
            try:
                self._output = memoryview(self._frame.decompress(given))
            except self._error as error:
                return self._source.damaged(str(error))
            left = len(self._frame.unused_data) if self._frame.eof else 0
            self._input = self._input[len(given) - left :]
        piece, self._output = bytes(self._output[:size_bytes]), self._output[size_bytes:]
        return piece

    def _next_frame(self) -> bool:
        self._input = self._input or memoryview(self._source.take(READ_BYTES))
        if not self._input:
            return False
        self._source.count_member()
        self._frame = self._start()
        return True
