import pytest
from analysis.a_training import PARAMETERS, Training
from ingest.a_snapshot import ADAMW, AUTOGRAD, FORWARD, LOSS, MIB, MOVE, Allocator, a_block, a_frame, a_raw_snapshot, a_segment, read

from advisor.analysis.allocator_record import allocator_record
from advisor.analysis.memory_ledger import memory_ledger
from advisor.model.memory import Moment


def record_of(raw):
    return allocator_record(read(raw))[0]


def test_a_record_from_the_start_is_complete_and_one_that_began_late_is_not():
    training = Training()
    training.load()
    assert record_of(training.raw()).record_is_complete
    training.allocator.forget_history()
    training.step()
    late = record_of(training.raw())
    assert not late.record_is_complete
    # Remainders that were not split off are the blocks' own.
    assert sum(PARAMETERS) <= late.unrecorded_live_bytes < sum(PARAMETERS) + 3 * MIB


def test_what_has_no_event_is_counted_at_the_moment_that_the_ledger_describes():
    training = Training()
    training.load()
    training.allocator.forget_history()
    training.step()
    raw = training.raw()
    (record,), (ledger,) = allocator_record(read(raw)), memory_ledger(read(raw))
    assert record.moment is ledger.at is Moment.PEAK
    assert record.moment_live_bytes == ledger.allocated_bytes
    assert record.moment_live_bytes > record.dump_allocated_bytes


def test_a_snapshot_without_history_is_its_own_peak():
    record = record_of(a_raw_snapshot([a_segment(a_block(), a_block(MIB, "inactive", 0x7F0000200000))], [[]]))
    assert (record.event_count, record.record_is_complete, record.peak_phase) == (0, False, "unknown")
    assert record.peak_allocated_bytes == record.dump_allocated_bytes == 2 * MIB
    assert record.peak_reserved_bytes == record.dump_reserved_bytes == 3 * MIB


def test_peaks_are_larger_than_what_the_dump_still_holds():
    allocator = Allocator()
    allocator.free(allocator.alloc(64 * MIB, FORWARD), FORWARD)
    allocator.release_cached()
    record = record_of(allocator.raw())
    assert (record.peak_allocated_bytes, record.peak_reserved_bytes) == (64 * MIB, 64 * MIB)
    assert (record.dump_allocated_bytes, record.dump_reserved_bytes) == (0, 0)
    assert (record.segment_alloc_count, record.segment_free_count) == (1, 1)


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        (MOVE, "loading"),
        (FORWARD, "forward"),
        (AUTOGRAD, "backward"),
        (ADAMW, "optimizer step"),
        ([a_frame("main", "/app/train.py"), *FORWARD[2:]], "unknown"),
    ],
)
def test_the_phase_of_the_peak_is_that_of_the_allocation_that_made_it(frames, phase):
    allocator = Allocator()
    allocator.alloc(MIB, FORWARD[2:])
    allocator.alloc(4 * MIB, frames)
    assert record_of(allocator.raw()).peak_phase == phase


def test_a_loss_outside_of_modules_belongs_to_forward():
    allocator = Allocator()
    allocator.alloc(4 * MIB, FORWARD)
    allocator.alloc(4 * MIB, LOSS)
    assert record_of(allocator.raw()).peak_phase == "forward"


def test_the_last_failure_is_described_and_all_are_counted():
    allocator = Allocator()
    allocator.fail(MIB, device_free=7)
    allocator.fail(2 * MIB, device_free=9)
    record = record_of(allocator.raw())
    assert (record.oom_count, record.oom_requested_bytes, record.oom_free_bytes) == (2, 2 * MIB, 9)


def test_the_largest_free_block_lies_inside_one_segment_at_the_ledger_s_moment():
    allocator = Allocator()
    first, second, third = (allocator.alloc(5 * MIB, FORWARD) for _ in range(3))
    allocator.free(second, FORWARD)
    allocator.fail(100 * MIB, device_free=0)
    record = record_of(allocator.raw())
    assert record.largest_free_block_bytes == 5 * MIB
    assert first < second < third


def test_pools_segments_settings_and_pending_blocks_are_reported():
    raw = a_raw_snapshot(
        [
            a_segment(a_block(), segment_pool_id=(0, 7)),
            a_segment(a_block(3 * MIB, "active_pending_free", 1 << 30), address=1 << 30, is_expandable=True),
        ],
        [[]],
        allocator_settings={"expandable_segments": True},
    )
    record = record_of(raw)
    assert (record.private_pool_bytes, record.expandable_segment_bytes, record.pending_free_bytes) == (2 * MIB, 3 * MIB, 3 * MIB)
    assert record.allocator_settings == (("expandable_segments", "True"),)


def test_distinct_large_sizes_are_those_of_at_least_a_mebibyte():
    allocator = Allocator()
    for size in (512, MIB - 1, MIB, MIB, 2 * MIB):
        allocator.alloc(size, FORWARD)
    assert record_of(allocator.raw()).distinct_large_sizes == 2


LEAK = [a_frame("log_loss", "/app/train.py", 66), *LOSS]


def leaking(steps, leak):
    training = Training()
    training.load()
    for _ in range(steps):
        training.step()
        if leak:
            training.allocator.alloc(leak, LEAK)
    return training


def test_steady_growth_is_a_slope_with_the_site_that_holds_it():
    record = record_of(leaking(30, 2 * MIB).raw())
    assert record.growth_bytes_per_step == 2 * MIB
    assert record.growth_sites[0].label == "train.py:66 in log_loss"


def test_steady_memory_has_a_slope_of_zero_and_no_sites():
    record = record_of(leaking(30, 0).raw())
    assert (record.growth_bytes_per_step, record.growth_sites) == (0.0, ())


def test_too_few_steps_give_no_slope():
    assert record_of(leaking(19, 2 * MIB).raw()).growth_bytes_per_step is None


def test_steps_are_taken_from_marks_where_the_optimizer_allocates_nothing():
    allocator = Allocator()
    marks = []
    for _ in range(25):
        allocator.alloc(MIB, LEAK)
        marks.append({"name": "Optimizer.step#SGD.step", "stage": "END", "device": 0, "time_us": allocator.events[-1]["time_us"] + 1})
    assert record_of(allocator.raw(external_annotations=marks)).growth_bytes_per_step == MIB
