"""A snapshot that is read in pieces is the one that is loaded whole; what cannot be read so is loaded whole."""

import io
import pickle
import pickletools
import tracemalloc

import pytest
from corpus_location import corpus
from ingest.a_snapshot import ADAMW, BATCH, FORWARD, LOSS, Allocator, a_block, a_frame, a_raw_snapshot, a_segment, an_event
from ingest.two_ways import (
    assert_loaded_whole,
    assert_read_alike,
    assert_refused_or_read_alike,
    python_pickled,
    read_in_pieces,
)

from advisor.ingest import pickle_values, snapshot_runs, snapshot_stream
from advisor.ingest.snapshot_budget import Budget
from advisor.ingest.snapshot_stream import streamed_contents

STREAMED = (4, 5)
NOT_COMPILED = b"N/A"


def a_training(steps=40, **fields):
    """Events as PyTorch writes them: the list of frames of an allocation is also that of its release."""
    memory = Allocator()
    stacks = [[a_frame(f"layer_{number}", line=number), *FORWARD] for number in range(12)]
    for step in range(steps):
        held = [memory.alloc(1000 * (number + 1), stack) for number, stack in enumerate([*stacks, LOSS, [], BATCH])]
        memory.free(memory.alloc(1 << 20, ADAMW if step % 3 else None))
        for address in held:
            memory.free(address, stacks[step % 12])
        if step == steps // 2:
            memory.fail(1 << 34, 1 << 20)
            memory.release_cached()
    memory.alloc(5000, stacks[0])
    raw = memory.raw(**fields)
    for event, released in zip(memory.events, memory.events[1:], strict=False):
        if event.get("frames") and released["action"] == "free_completed":
            released["frames"] = event["frames"]
    for event in memory.events:
        event["compile_context"] = NOT_COMPILED.decode()  # a text of its own each time, as PyTorch makes it
        event["user_metadata"] = ""
        if "frames" in event:
            event["frames"] = event.pop("frames")  # they come last
    return raw


@pytest.mark.parametrize("protocol", STREAMED)
@pytest.mark.parametrize("pickled", [pickle.dumps, python_pickled, lambda raw, protocol: pickletools.optimize(pickle.dumps(raw, protocol))])
def test_a_training_is_read_alike_whoever_pickled_it(pickled, protocol, monkeypatch):
    assert_read_alike(pickled(a_training(), protocol), monkeypatch)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3])
def test_older_protocols_are_loaded_whole(protocol, monkeypatch):
    assert_loaded_whole(pickle.dumps(a_training(), protocol), monkeypatch)


@pytest.mark.parametrize("window_bytes", [1, 37, 300, 4096])
def test_windows_may_end_anywhere(window_bytes, monkeypatch):
    monkeypatch.setattr(pickle_values, "WINDOW_BYTES", window_bytes)
    monkeypatch.setattr(pickle_values, "MARGIN_BYTES", 700)
    assert_read_alike(pickle.dumps(a_training(20)), monkeypatch)


def test_most_events_are_read_in_runs(monkeypatch):
    """Otherwise all of this is correct and slow."""
    made = []
    monkeypatch.setattr(snapshot_stream, "EventRuns", lambda *tables: made.append(snapshot_runs.EventRuns(*tables)) or made[-1])
    read_in_pieces(pickle.dumps(a_training(400)), monkeypatch)
    assert made[0].event_count > 15_000
    assert made[0].single_count < 0.01 * made[0].event_count


def test_one_event_more_takes_the_memory_of_its_row():
    """As dictionaries they take about 700 bytes each; a row has 42."""
    peaks_bytes = []
    for event_count in (60_000, 120_000):
        events = [an_event(addr=number, frames=list(FORWARD)) for number in range(event_count)]
        data = pickle.dumps(a_raw_snapshot(traces=[events]))
        del events
        tracemalloc.start()
        streamed_contents(io.BytesIO(data), len(data), Budget(len(data), "snapshot.pickle"))
        peaks_bytes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks_bytes[1] - peaks_bytes[0] < 100 * 60_000


def test_every_snapshot_of_the_corpus_is_read_alike(monkeypatch):
    paths = sorted((corpus() / "snapshots").glob("*/*.pickle"))
    assert paths
    for path in paths:
        assert_read_alike(path.read_bytes(), monkeypatch)


def test_frames_that_begin_anywhere_in_events_are_skipped(monkeypatch):
    """Picklers begin a frame of the pickle every 64 KiB, wherever they are."""
    events = [an_event(addr=number, frames=list(FORWARD), compile_context=f"{number:0200}") for number in range(3000)]
    assert_read_alike(pickle.dumps(a_raw_snapshot(traces=[events, [an_event()], []])), monkeypatch)


def test_lists_of_frames_may_be_shared_by_whatever_has_some(monkeypatch):
    shared = list(FORWARD)
    trace = [an_event(frames=shared), an_event(frames=LOSS), *[an_event(frames=shared) for _ in range(50)], an_event(frames=LOSS[:])]
    first, second = [list(FORWARD) for _ in range(5)], [list(LOSS) for _ in range(5)]
    again = [an_event(size=size, frames=frames) for size in range(1, 9) for frames in [*first, *second]]
    segments = [a_segment(a_block(frames=shared), a_block(frames=LOSS), a_block(state="inactive", frames=first[0]))]
    assert_read_alike(pickle.dumps(a_raw_snapshot(segments, [trace, again])), monkeypatch)


def test_texts_of_every_kind_are_read_alike(monkeypatch):
    notes = ["", "step 1", "step 2", "\u00e9", "\ud800", "x" * 300, "\U0001f600" * 70, None, "step 1"]
    compiled = "Torch-Compiled Region: 0/0 \u00e9"
    events = [an_event(user_metadata=notes[number % 9], compile_context=compiled[: number % 30 + 2]) for number in range(700)]
    for event in events:  # spelled out in the pickle each time, not fetched from its memo
        event["user_metadata"] = event["user_metadata"] and "".join(list(event["user_metadata"]))
    assert_read_alike(pickle.dumps(a_raw_snapshot(traces=[events])), monkeypatch)


EVENT = an_event(frames=FORWARD)
OTHERWISE = {
    "an event twice": {"device_traces": [[EVENT, an_event(), EVENT]]},
    "a history twice": {"device_traces": [[EVENT]] * 2},
    "something wrong in an event": {"device_traces": [[an_event(), an_event(size=-1)]]},
    "an event that is none": {"device_traces": [[an_event(), 5]]},
    "a number of another type": {"device_traces": [[an_event(stream=0.5)]]},
    "a history that is none": {"device_traces": [[EVENT], None]},
    "a frame without a name": {"device_traces": [[an_event(frames=[{"line": 1}])]]},
    "frames that are none": {"device_traces": [[an_event(frames="FORWARD")]]},
    "bytes": {"device_traces": [[an_event(note=b"bytes")]]},
    "a long text": {"device_traces": [[an_event(note="x" * 100_000)]]},
}


@pytest.mark.parametrize("otherwise", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_what_is_written_otherwise_is_loaded_whole(otherwise, monkeypatch):
    assert_loaded_whole(pickle.dumps({"segments": [a_segment(a_block())]} | otherwise), monkeypatch)


@pytest.mark.parametrize(
    "raw", [{"device_traces": [[EVENT]], "segments": []}, {"device_traces": [[EVENT]]}, [a_segment(a_block())], {"segments": []}]
)
def test_snapshots_without_segments_before_events_are_loaded_whole(raw, monkeypatch):
    assert_loaded_whole(pickle.dumps(raw), monkeypatch)


def test_the_key_of_the_histories_in_a_text_misleads_nobody(monkeypatch):
    spelled = "\x0ddevice_traces"
    name = pickle.dumps("device_traces", 4)[11:-1] + b"]\x94"
    stack = [a_frame(name.decode("latin-1")), a_frame(spelled)]
    for raw in (a_raw_snapshot([a_segment(a_block(frames=stack))]), {"segments": [], "note": name, "device_traces": [[EVENT]]}):
        assert_refused_or_read_alike(pickle.dumps(raw), monkeypatch)


def test_what_pickle_may_do_and_no_pickler_does_is_loaded_whole(monkeypatch):
    head = pickle.dumps({"segments": [], "device_traces": [[an_event(), an_event()]]}, 4)
    assert_read_alike(head, monkeypatch)
    for ending in (
        b"u\x94.",  # the file is memoized late
        b"e\x8c\x01a\x94u.",
        b"h\x00u.",
        b"\x8c\x08segments]u.",
        b"\x8c\x0ddevice_traces]u.",
        b"\x8c\x01aK\x01u0.",
        b"\x8c\x01acos\nsystem\nu.",
        b"\x8c\x01ah\x7fu.",
        b"\x8c\x01a\x95\xff\xff\xff\xff\xff\xff\xff\x7fK\x01u.",
        b"\x8c\x01a(K\x01K\x02tu.",
        b"\x8c\x01ah\x03(K\x01eu.",
    ):
        assert_loaded_whole(head.removesuffix(b"u.") + ending, monkeypatch)


@pytest.mark.parametrize("every", [7, 400])
def test_events_that_the_allocator_tagged_are_read_alike(every, monkeypatch):
    raw = a_training(host_segments=[{"address": 1}], host_traces=[])
    for number, event in enumerate(raw["device_traces"][0]):
        if number % every == 0:
            frames = event.pop("frames", None)
            event["internal_metadata"] = "prefix"
            if frames is not None:
                event["frames"] = frames
    assert_read_alike(pickle.dumps(raw), monkeypatch)
