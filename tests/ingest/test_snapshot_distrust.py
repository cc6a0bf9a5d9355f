import gc
import os
import pickle
import random
import struct

import pytest
from corpus_location import corpus
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest.a_snapshot import FORWARD, a_block, a_raw_snapshot, a_segment, an_event

from advisor.analysis.allocator_record import allocator_record
from advisor.analysis.memory_ledger import memory_ledger
from advisor.cli.limits import address_space_limit
from advisor.ingest import snapshot as snapshot_module
from advisor.ingest.snapshot import read_snapshot
from advisor.model.errors import UnreadableInput

WRONG = (
    None,
    True,
    -1,
    1 << 70,
    10**5000,
    float("nan"),
    1.5,
    "text",
    "\ud800",
    b"bytes",
    [],
    {},
    (),
    frozenset({1}),
)


@pytest.fixture(autouse=True, scope="module", params=["whole", "in pieces"])
def _both_ways(request):
    """Files of this size are loaded whole; all are tried in pieces here, too."""
    before = snapshot_module.STREAMED_FROM_BYTES
    snapshot_module.STREAMED_FROM_BYTES = before if request.param == "whole" else 0
    yield
    snapshot_module.STREAMED_FROM_BYTES = before


class Reduces:
    def __reduce__(self):
        return (os.system, ("true",))


def survives(data):
    """Read and analyse, or refuse in the one way that is meant for it."""
    try:
        # A few bytes can claim a memo of 64 GB; the caller's limit makes that a MemoryError, here as in the command.
        with address_space_limit("hostile.pickle", len(data)):
            snapshot = read_snapshot(data, "hostile.pickle")
    except UnreadableInput as refusal:
        words = str(refusal)
        words.encode()
        assert "\n" not in words
        return
    for ledger in memory_ledger(snapshot):
        held = sum(size for size in ledger.entries.values() if size is not None)
        assert ledger.reserved_bytes is None or held == ledger.reserved_bytes
    allocator_record(snapshot)


def a_rich_snapshot():
    trace = [
        an_event("segment_alloc"),
        an_event(frames=FORWARD, user_metadata="x", pool_id=(0, 0)),
        an_event("free_requested", frames=FORWARD),
        an_event("free_completed", frames=FORWARD),
        {"action": "oom", "size": 1 << 30, "device_free": 5, "stream": 0},
        an_event("annotate", user_metadata="weights"),
    ]
    return a_raw_snapshot(
        [a_segment(a_block(frames=FORWARD)), a_segment(a_block(history=[{"addr": 1, "real_size": 5}]), device=1)],
        [trace],
        allocator_settings={"max_split_size": -1, "roundup_power2_divisions": {"1": 4}},
        external_annotations=[{"name": "Optimizer.step#A", "stage": "END", "device": 0, "time_us": 1}],
    )


def places(value, path=()):
    """Every place inside nested lists and dictionaries."""
    yield path
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value[:2]):
            yield from places(part, (*path, index))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


def test_a_wrong_type_in_any_field_is_survived():
    raw = a_rich_snapshot()
    for path in places(raw):
        for wrong in WRONG:
            survives(pickle.dumps(replaced(raw, path, wrong)))


def test_any_missing_field_is_survived():
    raw = a_rich_snapshot()
    for path in places(raw):
        if path and isinstance(path[-1], str):
            parent = raw
            for part in path[:-1]:
                parent = parent[part]
            without = {key: part for key, part in parent.items() if key != path[-1]}
            survives(pickle.dumps(replaced(raw, path[:-1], without)))


@pytest.mark.parametrize(
    "hostile",
    [
        pickle.dumps(Reduces()),
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"\x80\x02\x82\x01.",
        b"\x80\x04\x8c\x03abcQ.",
        b"Pabc\n.",
        b"(i__builtin__\nobject\n.",
        b"\x80\x05\x97.",
        pickle.dumps({"segments": [Reduces()]}),
    ],
)
def test_a_pickle_that_asks_for_code_is_refused(hostile):
    with pytest.raises(UnreadableInput):
        read_snapshot(hostile, "hostile.pickle")


def test_the_refusal_names_what_was_asked_for_and_the_way_out():
    with pytest.raises(UnreadableInput, match=r"posix\.system.*_dump_snapshot"):
        read_snapshot(pickle.dumps(Reduces()), "hostile.pickle")


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x80\x04" + b"]" * 1_000_000 + b"a" * 999_999 + b".",
        b"\x80\x04}" + b")" + b"\x85" * 1_000_000 + b"Ns.",
        b"\x80\x04}" + b"\x8f" + b")" + b"\x85" * 300_000 + b"\x91.",
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"abc.",
        b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"abc.",
        b"\x80\x04\x8b" + struct.pack("<i", -5) + b".",
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b".",
        b"\x80\xff.",
        b"\x80",
        b"(",
        b"[" * 100_000,
        b"{" * 100_000 + b"}" * 100_000,
        b'{"segments": [NaN]}',
        b'{"segments": "\\ud800"}',
        b'{"segments": [{"device": 1e400}]}',
        b"I" + b"9" * 100_000 + b"\n.",
        b"]p0\n0g0\n.",
        b"\x80\x04]r" + struct.pack("<I", 2**32 - 1) + b".",
        b"",
    ],
)
def test_bombs_and_broken_pieces_are_refused(hostile):
    survives(hostile)


def test_a_list_that_contains_itself_is_survived():
    inner = []
    inner.append(inner)
    frame = {}
    frame["filename"] = frame
    survives(pickle.dumps({"segments": inner, "device_traces": inner}))
    survives(pickle.dumps(a_raw_snapshot(traces=[[an_event(frames=[frame]), an_event(frames=inner), an_event(frames=inner)]])))


def test_sizes_that_add_up_to_more_than_any_machine_has_are_refused():
    trace = [an_event(addr=number, size=1 << 44) for number in range(1 << 17)]
    with pytest.raises(UnreadableInput, match="add up"):
        read_snapshot(pickle.dumps(a_raw_snapshot(traces=[trace, trace, []])), "hostile.pickle")


def test_the_garbage_collector_is_left_as_it_was():
    survives(pickle.dumps(a_rich_snapshot()))
    survives(b"\x80\x04junk")
    assert gc.isenabled()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_behind_a_pickle_opcode_are_survived(data):
    survives(b"\x80\x04" + data)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_pickles_are_survived(data):
    good = bytearray(pickle.dumps(a_rich_snapshot(), protocol=data.draw(st.sampled_from([2, 4]))))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(good) - 1))
        good[place] = data.draw(st.integers(0, 255))
    survives(bytes(good))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(
            st.sampled_from(["action", "addr", "size", "frames", "name", "line", "filename", "blocks", "state", "total_size", "address"]),
            children,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=200, deadline=None)
@given(plain, plain)
def test_plain_data_of_any_shape_is_survived(segments, traces):
    survives(pickle.dumps({"segments": [segments], "device_traces": [[traces], traces]}))


def test_a_real_file_cut_at_every_percent_is_refused_or_read():
    data = next((corpus() / "snapshots").glob("MAGMA27*/*.pickle")).read_bytes()
    for percent in range(100):
        with pytest.raises(UnreadableInput):
            read_snapshot(data[: len(data) * percent // 100], "cut.pickle")


def test_a_real_file_with_noise_in_it_is_survived():
    data = next((corpus() / "snapshots").glob("Charran*/*.pickle")).read_bytes()
    chance = random.Random(7)
    for _ in range(300):
        noisy = bytearray(data)
        for _ in range(3):
            noisy[chance.randrange(len(noisy))] = chance.choice(b"\x00\x80])}(.\x85\x94K\xff")
        survives(bytes(noisy))
