"""What is small and unfolds to much, or long and wrong at its start, is refused soon."""

import io
import json
import pickle

import pytest
from ingest.a_snapshot import FORWARD, a_block, a_raw_snapshot, a_segment, an_event, read

from advisor.ingest import snapshot as snapshot_module
from advisor.ingest.snapshot import read_snapshot
from advisor.model.errors import UnreadableInput

MIB = 1024**2
EVENT = an_event()
FRAME = FORWARD[0]


@pytest.fixture(autouse=True, scope="module", params=["whole", "in pieces"])
def _both_ways(request):
    """Files of this size are loaded whole; all are tried in pieces here, too."""
    before = snapshot_module.STREAMED_FROM_BYTES
    snapshot_module.STREAMED_FROM_BYTES = before if request.param == "whole" else 0
    yield
    snapshot_module.STREAMED_FROM_BYTES = before


class Counted(io.BytesIO):
    """Counts the bytes that are read from it."""

    read_bytes = 0

    def read(self, size=-1, /):
        piece = super().read(size)
        self.read_bytes += len(piece)
        return piece


@pytest.mark.parametrize(
    "raw",
    [
        {"device_traces": [[EVENT] * 20_000] * 100},
        {"device_traces": [[EVENT] * 200_000]},
        {"segments": [a_segment(a_block())] * 200_000},
        {"segments": [a_segment(*[a_block()] * 10_000)] * 1_000},
        {"segments": [a_segment(a_block(frames=[FRAME] * 10_000))] * 1_000},
        {"device_traces": [[an_event(frames=[FRAME] * 10_000)] * 1_000]},
        {"device_traces": [[an_event(frames=[FRAME] * 10_000), an_event(frames=[FRAME] * 10_000)] * 500]},
    ],
)
def test_shared_data_that_unfolds_to_more_than_the_file_has_room_for_is_refused(raw):
    with pytest.raises(UnreadableInput, match="again and again"):
        read(raw)


def test_events_as_short_as_pickle_can_make_them_are_read():
    events = [{"action": "alloc", "size": 1} for _ in range(50_000)]
    assert len(read({"device_traces": [events]}).devices[0].events.action) == 50_000


@pytest.mark.parametrize("size", [-1, float("nan"), float("inf"), None, "1"])
def test_content_of_which_nothing_can_be_read_is_refused(size):
    raw = a_raw_snapshot([a_segment(a_block()) | {"total_size": size}], [[an_event(size=size), an_event(size=size)]])
    with pytest.raises(UnreadableInput, match="holds 1 segments and 2 events, and none can be read"):
        read(raw)


def test_lists_that_hold_only_themselves_are_refused():
    inner = []
    inner.append(inner)
    for raw in ({"segments": inner}, {"device_traces": inner}, {"segments": [], "device_traces": [inner]}):
        with pytest.raises(UnreadableInput, match="none can be read"):
            read_snapshot(pickle.dumps(raw), "hostile.pickle")


@pytest.mark.parametrize("head", [b"\x80\x04", b"\x80\x04](", b'{"segments": x', b'{"segments": [', b'\xef\xbb\xbf [{"a', b"[1 2"])
def test_what_is_wrong_at_its_start_is_refused_there(head):
    stream = Counted(head + bytes(64 * MIB))
    with pytest.raises(UnreadableInput):
        read_snapshot(stream, "sparse.pickle")
    assert stream.read_bytes < 4 * MIB


def test_wrong_json_is_refused_at_its_start_without_nul_bytes_too():
    stream = Counted(b'{"segments": [1, x' + b" " * (8 * MIB))
    with pytest.raises(UnreadableInput, match="damaged JSON"):
        read_snapshot(stream, "long.json")
    assert stream.read_bytes < MIB


@pytest.mark.parametrize("padding", range(40))
def test_sound_json_is_read_wherever_its_first_piece_ends(padding):
    events = [{"action": "alloc", "addr": -1.5e-3, "size": 1, "on": True, "text": "\u00e9 \\ , \U0001f600"} for _ in range(1200)]
    text = " " * padding + json.dumps({"segments": [], "device_traces": [events]}, ensure_ascii=padding % 2 == 0)
    assert len(read_snapshot(text.encode(), "snapshot.json").devices[0].events.action) == 1200


def test_tuples_that_come_late_are_read_on_a_larger_stack():
    events = [an_event(addr=number, pool_id=(0, number)) for number in range(60_000)]
    assert len(read({"device_traces": [events]}).devices[0].events.action) == 60_000
