"""gzip and zstd come through whole, in any pieces; bombs and damage are met early."""

import gzip
import io
import os
import time

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ingest.decompress import MEMBER_LIMIT, READ_BYTES, InflationLimits, decompressed
from advisor.model.errors import UnreadableInput

LINES = b"".join(b"line %d of a log\n" % number for number in range(20_000))
PACKINGS = {"gzip": gzip.compress, "zstd": zstandard.compress, "": bytes}


def opened(data, **limits):
    return decompressed(io.BytesIO(data), "log.txt", limits=InflationLimits(**limits))


def in_pieces(stream, size):
    buffer, pieces = bytearray(size), []
    while count := stream.readinto(memoryview(buffer)):
        pieces.append(bytes(buffer[:count]))
    return b"".join(pieces)


@pytest.mark.parametrize("compression", PACKINGS)
@pytest.mark.parametrize("size", [1000, 65_536, 10**6])
def test_what_was_packed_comes_out(compression, size):
    stream = opened(PACKINGS[compression](LINES))
    assert stream.compression == compression
    assert in_pieces(stream, size) == LINES
    assert not stream.is_truncated


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.binary(max_size=5000), st.sampled_from(sorted(PACKINGS)), st.integers(1, 600))
def test_any_bytes_in_any_pieces_come_out(data, compression, size):
    packed = PACKINGS[compression](data)
    if compression or packed[:2] not in (b"\x1f\x8b", b"\x28\xb5"):
        assert in_pieces(opened(packed), size) == data


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_members_one_behind_the_other_are_one_text(pack):
    assert opened(pack(b"one ") + pack(b"") + pack(LINES)).read() == b"one " + LINES


def test_zeros_behind_a_gzip_member_are_padding():
    stream = opened(gzip.compress(LINES) + bytes(512))
    assert stream.read() == LINES
    assert not stream.is_truncated


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("lost", [1, 20, 1000])
def test_a_packing_that_ends_early_gives_what_it_holds_and_says_so(pack, lost):
    noise = os.urandom(400_000)
    stream = opened(pack(noise)[:-lost])
    assert noise.startswith(stream.read())
    assert stream.is_truncated


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress])
def test_damage_inside_ends_the_text_there(pack):
    noise = os.urandom(400_000)
    packed = bytearray(pack(noise))
    packed[300_000:300_100] = bytes(100)
    stream = opened(bytes(packed))
    stream.read()
    assert stream.is_truncated


@pytest.mark.parametrize("data", [b"\x1f\x8b", b"\x1f\x8b\x08rubbish", b"\x28\xb5\x2f\xfdrubbish", gzip.compress(LINES)[:15]])
def test_damage_from_the_start_is_refused(data):
    with pytest.raises(UnreadableInput, match="compression is damaged"):
        opened(data).read()


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor(level=19).compress])
def test_a_bomb_is_refused_before_it_goes_off(pack):
    bomb = pack(bytes(300_000_000))
    stream, taken = opened(bomb), []
    begun = time.process_time()
    with pytest.raises(UnreadableInput, match="times its size"):
        taken.extend(len(piece) for piece in iter(lambda: stream.read(2**20), b""))
    assert sum(taken) <= max(InflationLimits().free_bytes, len(bomb) * InflationLimits().ratio)
    assert time.process_time() - begun < 2


def test_a_repetitive_log_is_no_bomb():
    log = b"the same line\n" * 1_000_000
    assert len(gzip.compress(log)) * InflationLimits().ratio < len(log)
    assert opened(gzip.compress(log)).read() == log


def test_nothing_becomes_larger_than_the_total_allowed():
    with pytest.raises(UnreadableInput):
        opened(gzip.compress(LINES), free_bytes=10, ratio=10**6, total_bytes=1000).read()


def test_a_zstd_frame_that_wants_a_huge_window_is_refused():
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj().compress(os.urandom(300_000))
    with pytest.raises(UnreadableInput):
        opened(packed, window_bytes=2**20).read()


def test_an_empty_stream_is_empty():
    assert opened(b"").read() == b""


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("content", [b"", b"a"])
def test_too_many_members_are_refused_soon(pack, content):
    stream = opened(pack(content) * (MEMBER_LIMIT + 1))
    started = time.process_time()
    with pytest.raises(UnreadableInput, match="separately compressed pieces"):
        in_pieces(stream, READ_BYTES)
    assert time.process_time() - started < 5  # each copying what is behind it would take several times as long


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_thousands_of_members_come_out_whole(pack):
    members = [b"%d\n" % number * (number % 50) for number in range(3000)]
    assert in_pieces(opened(b"".join(map(pack, members))), 777) == b"".join(members)
