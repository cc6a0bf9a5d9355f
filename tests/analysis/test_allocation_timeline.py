import numpy as np
from analysis.a_program import PROGRAMS, run
from hypothesis import given, settings
from ingest.a_snapshot import MIB, Allocator, a_block, a_raw_snapshot, a_segment, an_event, read

from advisor.analysis.allocation_timeline import timeline
from advisor.analysis.allocator_rounding import Rounding, rounding_of


def replay(raw):
    snapshot = read(raw)
    device = snapshot.devices[0]
    return device, timeline(device, rounding_of(snapshot))


@settings(max_examples=120, deadline=None)
@given(PROGRAMS)
def test_a_complete_record_replays_to_the_byte(program):
    allocator = Allocator()
    run(allocator, program, [], [])
    if not allocator.segments and not allocator.events:
        return
    device, found = replay(allocator.raw())
    assert found.allocated_bytes[0] == 0
    assert found.reserved_bytes[0] == 0
    assert found.allocated_bytes[1:].tolist() == [allocated for allocated, _ in allocator.truth]
    assert found.reserved_bytes[1:].tolist() == [reserved for _, reserved in allocator.truth]
    assert found.allocated_at(found.event_count) == allocator.allocated()
    assert found.size_bytes[found.live(found.event_count)].sum() == device.blocks.size_bytes[device.blocks.state > 0].sum()


@settings(max_examples=120, deadline=None)
@given(PROGRAMS, PROGRAMS)
def test_a_record_that_began_late_replays_to_the_byte_where_the_dump_knows_the_old_blocks(before, after):
    allocator = Allocator()
    live, pending = [], []
    run(allocator, before, live, pending)
    allocator.forget_history()
    # Old blocks stay to the end, so that the dump tells their sizes.
    run(allocator, after, [], [])
    if not allocator.segments and not allocator.events:
        return
    _, found = replay(allocator.raw())
    assert found.allocated_bytes[1:].tolist() == [allocated for allocated, _ in allocator.truth]
    assert found.reserved_bytes[1:].tolist() == [reserved for _, reserved in allocator.truth]


@settings(max_examples=120, deadline=None)
@given(PROGRAMS, PROGRAMS)
def test_old_blocks_that_are_freed_in_the_record_cost_at_most_a_mebibyte_each(before, after):
    allocator = Allocator()
    live, pending = [], []
    run(allocator, before, live, pending)
    old = len(live)
    allocator.forget_history()
    run(allocator, after, live, pending)
    if not allocator.segments and not allocator.events:
        return
    _, found = replay(allocator.raw())
    truth = np.array([allocated for allocated, _ in allocator.truth], np.int64)
    assert np.all(np.abs(found.allocated_bytes[1:] - truth) <= old * MIB)
    assert found.allocated_at(found.event_count) == allocator.allocated()


def test_a_remainder_that_was_not_split_off_belongs_to_its_block():
    allocator = Allocator()
    small = allocator.alloc(19 * MIB + 1)
    allocator.free(small)
    _, found = replay(allocator.raw())
    assert found.allocated_bytes.max() == 20 * MIB


def test_expandable_segments_split_everything_off():
    trace = [an_event(size=3 * MIB - 5), an_event("free_requested", size=3 * MIB - 5), an_event("free_completed", size=3 * MIB - 5)]
    segment = a_segment(a_block(3 * MIB + 512, "inactive"), is_expandable=True)
    _, found = replay(a_raw_snapshot([segment], [trace]))
    assert found.allocated_bytes.max() == 3 * MIB


def test_blocks_that_wait_for_another_stream_are_live_but_not_allocated():
    allocator = Allocator()
    allocator.free(allocator.alloc(4 * MIB), completes=False)
    _, found = replay(allocator.raw())
    assert found.allocated_at(found.event_count) == 0
    assert found.size_bytes[found.live(found.event_count)].tolist() == [4 * MIB]


def test_an_allocation_after_the_record_ended_is_not_taken_for_one_from_before():
    allocator = Allocator()
    first = allocator.alloc(4 * MIB)
    allocator.free(first)
    allocator.recording = False
    allocator.alloc(3 * MIB)
    _, found = replay(allocator.raw())
    assert found.allocated_bytes[0] == 0
    assert found.allocated_at(found.event_count) == 3 * MIB
    assert found.uses.problems["blocks allocated after the record ended"] == 1


def test_a_block_freed_after_the_record_ended_lives_to_its_end():
    allocator = Allocator()
    address = allocator.alloc(4 * MIB)
    allocator.recording = False
    allocator.free(address)
    _, found = replay(allocator.raw())
    assert found.allocated_bytes.tolist() == [0, 0, 4 * MIB]
    assert found.allocated_at(found.event_count) == 0


def test_frees_whose_requests_were_not_recorded_end_an_allocation():
    allocator = Allocator()
    allocator.free(allocator.alloc(4 * MIB))
    raw = allocator.raw()
    for skipped in ("free_requested", "free_completed"):
        events = [event for event in allocator.events if event["action"] != skipped]
        _, found = replay({**raw, "device_traces": [events]})
        assert found.allocated_bytes.tolist() == [0, 0, 4 * MIB, 0]


def test_an_address_that_is_allocated_twice_without_a_free_is_told():
    trace = [an_event(size=2 * MIB), an_event(size=MIB)]
    _, found = replay(a_raw_snapshot([a_segment(a_block(MIB), a_block(MIB, "inactive", 0x7F0000100000))], [trace]))
    assert found.uses.problems["allocations at an address that was not seen freed"] == 1
    assert found.allocated_bytes.tolist() == [0, 2 * MIB, MIB]


def rounded(size, **settings_):
    return Rounding(**settings_).rounded(np.array([size], np.int64)).tolist()[0]


def test_requests_are_rounded_to_512_bytes():
    assert [rounded(size) for size in (0, 1, 512, 513, MIB)] == [512, 512, 512, 1024, MIB]


def test_requests_are_rounded_to_divisions_of_powers_of_two_where_that_is_set():
    # The example of PyTorch's documentation: 1200 with 4 divisions lies between 1024 and 2048 and becomes 1280.
    eighths = (4,) * 16
    assert rounded(1200 * 1024, divisions=eighths) == 1280 * 1024
    assert rounded(1024 * 1024, divisions=eighths) == 1024 * 1024
    assert rounded(1300, divisions=eighths) == 1536  # below 512 bytes times the divisions: plainly
