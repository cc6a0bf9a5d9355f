"""Random, damaged and noisy snapshots come out alike, whether they are read in pieces or loaded whole."""

import pickle
import random

from corpus_location import corpus
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingest.a_snapshot import ADAMW, FORWARD, a_block, a_frame, a_raw_snapshot, a_segment
from ingest.two_ways import assert_read_alike, assert_refused_or_read_alike, python_pickled

STREAMED = (4, 5)

anything = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

numbers = (
    st.integers(0, 300) | st.integers(0, 1 << 44) | st.sampled_from([0, 255, 256, 65535, 65536, (1 << 31) - 1, 1 << 31, (1 << 44) - 1])
)
some_frames = st.lists(st.sampled_from([*FORWARD, *ADAMW, *(a_frame(f"f{number}") for number in range(40))]), max_size=6)
actions = st.sampled_from(["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "annotate", "oom", "made_up"])
events = st.fixed_dictionaries(
    {"action": actions, "addr": numbers, "size": numbers, "stream": numbers},
    optional={
        "time_us": numbers,
        "compile_context": st.sampled_from(["N/A", "Torch-Compiled Region: 0/0", "\u00e9"]),
        "user_metadata": st.sampled_from(["", "a", "weights", "\u20ac"]),
        "pool_id": st.tuples(numbers, numbers),
        "device_free": numbers,
        "flag": st.booleans() | st.none() | st.floats(allow_nan=False),
        "category": st.sampled_from(["parameter", "gradient"]),
        "internal_metadata": st.sampled_from(["", "prefix block", None]),
        "frames": some_frames,
    },
)


@st.composite
def histories(draw):
    """Devices that repeat some events, with lists of frames that are shared or not."""
    templates = draw(st.lists(events, min_size=1, max_size=4))
    lists = draw(st.lists(some_frames, min_size=1, max_size=3))
    devices = []
    for _ in range(draw(st.integers(1, 3))):
        trace = []
        for _ in range(draw(st.integers(0, 30))):
            event = dict(draw(st.sampled_from(templates)))
            event["addr"] = draw(numbers)
            if "frames" in event:
                sharing = draw(st.integers(0, 2))
                event["frames"] = list(event["frames"]) if sharing == 0 else lists[draw(st.integers(0, len(lists) - 1))]
            trace.append(event)
        devices.append(trace)
    return devices, [a_segment(a_block(frames=frames), device=number) for number, frames in enumerate(lists)]


@anything
@given(histories(), st.integers(0, 5), st.sampled_from([pickle.dumps, python_pickled]))
def test_random_snapshots_are_read_alike(monkeypatch, drawn, protocol, pickled):
    traces, segments = drawn
    data = pickled(a_raw_snapshot(segments, traces, allocator_settings={"expandable_segments": True}), protocol)
    if protocol in STREAMED:
        assert_read_alike(data, monkeypatch)
    assert_refused_or_read_alike(data, monkeypatch)


@anything
@given(histories(), st.data())
def test_damaged_snapshots_are_refused_or_read_alike(monkeypatch, drawn, data):
    traces, segments = drawn
    pickled = bytearray(pickle.dumps(a_raw_snapshot(segments, traces), 4))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(pickled) - 1))
        pickled[place] = data.draw(st.integers(0, 255) | st.sampled_from(b"\x94\x95(eu}]hjaKJ.0"))
    cut = data.draw(st.sampled_from([None, None, -1, len(pickled) // 2]))
    assert_refused_or_read_alike(bytes(pickled[:cut]), monkeypatch)


def test_a_real_snapshot_with_noise_in_it_is_refused_or_read_alike(monkeypatch):
    data = next((corpus() / "snapshots").glob("MAGMA27*/*.pickle")).read_bytes()
    chance = random.Random(11)
    for _ in range(60):
        noisy = bytearray(data)
        for _ in range(2):
            noisy[chance.randrange(len(noisy))] = chance.choice(b"\x00\x80])}(.\x85\x94K\xffhju\x95")
        assert_refused_or_read_alike(bytes(noisy), monkeypatch)
