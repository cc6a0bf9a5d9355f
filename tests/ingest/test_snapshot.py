import json
import pickle

import pytest
from ingest.a_snapshot import AUTOGRAD, FORWARD, LOSS, a_block, a_raw_snapshot, a_segment, an_event, read

from advisor.ingest.snapshot import read_snapshot
from advisor.model.errors import UnreadableInput
from advisor.model.failure import Frame
from advisor.model.snapshot import NOT_RECORDED, Action, BlockState


def test_events_segments_and_blocks_become_columns():
    trace = [an_event(frames=FORWARD), an_event("free_requested", size=7), an_event("segment_free", addr=9)]
    snapshot = read(a_raw_snapshot([a_segment(a_block(), a_block(1024, "inactive", 0x7F0000200000))], [trace]))
    device = snapshot.devices[0]
    assert device.events.action.tolist() == [Action.ALLOC, Action.FREE_REQUESTED, Action.SEGMENT_FREE]
    assert device.events.size_bytes.tolist() == [2 * 1024**2, 7, 2 * 1024**2]
    assert device.segments.size_bytes.tolist() == [2 * 1024**2 + 1024]
    assert device.blocks.state.tolist() == [BlockState.ALLOCATED, BlockState.INACTIVE]
    assert device.blocks.requested_bytes.tolist() == [2 * 1024**2, NOT_RECORDED]
    assert snapshot.gaps == ()


def test_equal_stacks_are_kept_once_whether_or_not_their_frames_are_shared():
    copies = [[dict(frame) for frame in FORWARD] for _ in range(3)]
    snapshot = read(a_raw_snapshot(traces=[[an_event(frames=frames) for frames in (*copies, FORWARD, LOSS)]]))
    assert snapshot.devices[0].events.stack.tolist() == [0, 0, 0, 0, 1]
    assert snapshot.frames_of(0)[0] == Frame(filename="/app/model.py", line=21, function="forward")


def test_an_empty_stack_is_not_a_missing_one():
    snapshot = read(a_raw_snapshot(traces=[[an_event(frames=AUTOGRAD), an_event(), an_event(frames=FORWARD)]]))
    empty, missing, forward = snapshot.devices[0].events.stack.tolist()
    assert snapshot.stacks[empty] == ()
    assert missing == NOT_RECORDED
    assert forward not in (empty, missing)


def test_arrays_are_read_only():
    device = read(a_raw_snapshot(traces=[[an_event()]])).devices[0]
    with pytest.raises(ValueError, match="read-only"):
        device.events.size_bytes[0] = 1


def test_torch_2_0_keeps_addresses_and_stacks_in_histories_of_blocks():
    block = {"size": 4096, "state": "active_allocated", "history": [{"addr": 5, "real_size": 4000, "frames": FORWARD}]}
    older = {"size": 1024, "state": "inactive", "history": [{"addr": 5, "real_size": 900, "frames": LOSS}]}
    raw = {"segments": [{"device": 0, "address": 1 << 20, "total_size": 5120, "blocks": [older, block]}], "device_traces": []}
    blocks = read(raw).devices[0].blocks
    assert blocks.address.tolist() == [1 << 20, (1 << 20) + 1024]
    assert blocks.requested_bytes.tolist() == [NOT_RECORDED, 4000]
    assert blocks.stack.tolist() == [NOT_RECORDED, 0]


def test_several_devices_are_kept_apart_by_their_ordinals():
    raw = a_raw_snapshot([a_segment(a_block(), device=2), a_segment(a_block(), device=0)], [[], [an_event()], []])
    assert [device.index for device in read(raw).devices] == [0, 1, 2]


def test_private_pools_and_expandable_segments_are_told():
    raw = a_raw_snapshot([a_segment(a_block(), segment_pool_id=(3, 0), is_expandable=True), a_segment(a_block(), address=5)])
    device = read(raw).devices[0]
    assert device.pools == ((0, 0), (3, 0))
    assert device.segments.pool.tolist() == [1, 0]
    assert device.segments.is_expandable.tolist() == [True, False]


def test_an_oom_event_has_no_address_and_says_what_was_free():
    events = read(a_raw_snapshot(traces=[[{"action": "oom", "size": 512, "device_free": 99, "stream": 0}]])).devices[0].events
    assert events.address.tolist() == [NOT_RECORDED]
    assert events.device_free_bytes == {0: 99}


def test_settings_are_flattened_to_text():
    settings = {"expandable_segments": True, "roundup_power2_divisions": {"1": 0, "16": 8}, "odd": [1], 5: 6}
    snapshot = read(a_raw_snapshot(allocator_settings=settings))
    assert snapshot.setting("expandable_segments") == "True"
    assert snapshot.setting("roundup_power2_divisions.16") == "8"
    assert len(snapshot.settings) == 3


def test_annotations_are_kept_with_their_times():
    mark = {"name": "Optimizer.step#AdamW.step", "stage": "END", "device": 0, "time_us": 5}
    (found,) = read(a_raw_snapshot(external_annotations=[mark, {"name": 3}, {**mark, "stage": "MIDDLE"}])).annotations
    assert (found.name, found.is_start, found.time_us) == ("Optimizer.step#AdamW.step", False, 5)


def test_a_snapshot_of_the_profiler_loses_the_host_and_its_invented_segments():
    trace = [an_event(frames=[], category="gradient"), an_event("free_completed", frames=[])]
    raw = a_raw_snapshot([a_segment(a_block()), a_segment(a_block(), device=1)], [trace, trace])
    snapshot = read(raw)
    assert snapshot.is_from_profiler
    assert [device.index for device in snapshot.devices] == [0]
    assert snapshot.categories == ("gradient",)


def test_the_json_form_and_the_bare_list_of_segments_are_read():
    raw = a_raw_snapshot(traces=[[an_event(frames=FORWARD)]])
    from_json = read_snapshot(json.dumps(raw).encode(), "snapshot.json")
    assert from_json.devices[0].events.size_bytes.tolist() == read(raw).devices[0].events.size_bytes.tolist()
    assert len(read(raw["segments"]).devices[0].segments) == 1


def test_actions_that_are_not_known_are_kept_as_other():
    assert read(a_raw_snapshot(traces=[[an_event("worker_exit")]])).devices[0].events.action.tolist() == [Action.OTHER]


@pytest.mark.parametrize("raw", [{}, [], 5, "text", {"segments": 1}, {"model": {}}, [1, 2], {"segments": [3], "device_traces": 4}])
def test_a_pickle_of_something_else_is_refused(raw):
    if raw == []:
        assert read(raw).devices == ()
        return
    with pytest.raises(UnreadableInput, match="snapshot"):
        read(raw)


def test_nothing_recorded_is_an_empty_snapshot_not_an_error():
    assert read({"segments": [], "device_traces": [[], []]}).devices == ()


@pytest.mark.parametrize("form", [pickle.dumps, lambda raw: json.dumps(raw).encode()])
def test_what_the_allocator_tags_as_its_own_is_no_allocation_and_no_free(form):
    tag = {"internal_metadata": "prefix block"}
    trace = [an_event(frames=FORWARD), an_event(addr=5, frames=FORWARD, **tag), an_event("free_completed", addr=5, frames=FORWARD, **tag)]
    trace.append(an_event(addr=9, frames=FORWARD, internal_metadata=""))
    events = read_snapshot(form(a_raw_snapshot(traces=[trace])), "snapshot").devices[0].events
    assert events.action.tolist() == [Action.ALLOC, Action.OTHER, Action.OTHER, Action.ALLOC]


@pytest.mark.parametrize(
    ("key", "value", "is_said"), [("host_segments", [{}], True), ("host_traces", [{}], True), ("host_traces", [], False)]
)
@pytest.mark.parametrize("form", [pickle.dumps, lambda raw: json.dumps(raw).encode()])
def test_the_history_of_pinned_host_memory_is_a_gap(form, key, value, is_said):
    snapshot = read_snapshot(form(a_raw_snapshot(**{key: value})), "snapshot")
    assert any("pinned host memory" in gap for gap in snapshot.gaps) is is_said
