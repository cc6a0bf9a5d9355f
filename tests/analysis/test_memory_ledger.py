import pytest
from analysis.a_program import PROGRAMS, run
from analysis.a_training import MOMENT_LINES, PARAMETERS, Training
from corpus_location import corpus
from hypothesis import given, settings
from ingest.a_snapshot import (
    ADAMW,
    AUTOGRAD,
    FORWARD,
    MAIN,
    MIB,
    Allocator,
    a_block,
    a_frame,
    a_raw_snapshot,
    a_segment,
    an_event,
    read,
)

from advisor.analysis.memory_ledger import memory_ledger
from advisor.ingest.snapshot import read_snapshot
from advisor.model.memory import BLOCKS, Basis, Moment

P = sum(PARAMETERS)


def ledger_of(raw):
    return memory_ledger(read(raw))[0]


def held(ledger):
    return sum(size for size in ledger.entries.values() if size is not None)


@settings(max_examples=100, deadline=None)
@given(PROGRAMS, PROGRAMS)
def test_the_entries_sum_to_the_reserved_bytes_whatever_was_allocated(before, after):
    allocator = Allocator()
    live, pending = [], []
    run(allocator, before, live, pending)
    allocator.forget_history()
    run(allocator, after, live, pending)
    if not allocator.segments and not allocator.events:
        return
    ledger = ledger_of(allocator.raw())
    assert held(ledger) == ledger.reserved_bytes
    assert all(size is None or size >= 0 for size in ledger.entries.values())
    assert tuple(ledger.entries) == BLOCKS


def test_training_recorded_from_the_start_is_explained_whole():
    training = Training()
    training.load()
    for _ in range(3):
        training.step()
    ledger = ledger_of(training.raw())
    assert ledger.at is Moment.PEAK
    assert ledger.basis is Basis.STACKS
    assert ledger.entries["weights"] == P
    assert ledger.entries["unattributed"] == 0
    assert held(ledger) == ledger.reserved_bytes


def at_the_end(training, extra=200 * MIB, frames=tuple(FORWARD[:1] + FORWARD)):
    """The ledger where one more allocation makes the peak of the record."""
    training.allocator.alloc(extra, frames)
    return ledger_of(training.raw())


def test_gradients_states_and_activations_are_told_apart_at_a_peak_in_forward():
    training = Training()
    training.load()
    training.step()
    training.forward()
    training.backward()
    training.adamw()  # gradients are kept: no zero_grad
    training.forward(layers=4)
    ledger = at_the_end(training)
    assert ledger.entries["weights"] == P
    assert ledger.entries["gradients"] == P
    assert ledger.entries["optimizer_states"] == 2 * P
    assert ledger.entries["activations"] == 4 * training.activation + MIB + 512 + 200 * MIB


def test_what_is_older_than_the_record_is_told_by_its_fate_and_by_counting_sizes():
    training = Training()
    training.load()
    for _ in range(2):
        training.step("own_adamw")
    training.allocator.forget_history()
    training.step("own_adamw")
    ledger = ledger_of(training.raw())
    assert ledger.entries["weights"] == P
    assert ledger.entries["optimizer_states"] == 2 * P
    assert ledger.entries["unattributed"] == 0
    assert any("before the record began" in note for note in ledger.notes)


def a_step_that_replaces_its_states(fail_after=None):
    """The peak of the record, or a failure, lies within a user's step that makes its moments anew."""
    training = Training()
    training.load()
    training.step("own_adamw")
    training.forward()
    training.backward()
    for number, size in enumerate(PARAMETERS[:fail_after]):
        for line, frames in enumerate(MOMENT_LINES):
            training.allocator.alloc(size, frames)
            if number + 1 < (fail_after or 0) or line == 0:
                training.allocator.free(training.states[2 * number + line], frames)
    return training


def test_old_and_new_states_of_the_parameter_in_hand_are_counted_once():
    training = Training()
    training.load()
    training.step("own_adamw")
    training.forward(layers=1)
    training.backward()
    training.own_adamw()
    ledger = ledger_of(training.raw())
    assert ledger.entries["optimizer_states"] == 2 * P
    assert ledger.entries["temporaries"] > 0


def test_where_a_step_fails_while_it_replaces_its_states_they_are_counted_once():
    training = a_step_that_replaces_its_states(fail_after=5)
    training.allocator.release_cached()
    training.allocator.fail(64 * MIB, device_free=MIB)
    ledger = ledger_of(training.raw())
    assert ledger.at is Moment.OOM
    assert ledger.entries["optimizer_states"] == 2 * P
    assert ledger.entries["temporaries"] == PARAMETERS[4]  # the second moment of the parameter in hand


def test_the_first_step_only_makes_states_and_none_is_temporary():
    training = Training()
    training.load()
    training.forward()
    training.backward()
    training.own_adamw()
    training.forward(layers=1)
    ledger = at_the_end(training)
    assert ledger.entries["optimizer_states"] == 2 * P


def test_a_foreach_optimizer_s_old_states_are_told_by_counting_sizes():
    training = Training()
    training.load()
    training.step()
    training.allocator.forget_history()
    training.step()
    ledger = ledger_of(training.raw())
    assert ledger.entries["weights"] == P
    assert ledger.entries["optimizer_states"] == 2 * P
    assert ledger.entries["unattributed"] == 0


def test_gradients_that_are_only_added_to_are_found_among_old_memory():
    training = Training()
    training.load()
    training.step()
    training.forward()
    training.backward()
    training.allocator.forget_history()
    training.forward()
    training.backward(makes_gradients=False)
    training.adamw()
    ledger = ledger_of(training.raw())
    assert ledger.entries["weights"] == P
    assert ledger.entries["gradients"] == P
    assert ledger.entries["optimizer_states"] == 2 * P


def test_half_precision_training_has_states_of_twice_its_parameters_sizes():
    training = Training(parameters=(6 * MIB, 10 * MIB, 14 * MIB))
    training.load()
    masters = [training.allocator.alloc(2 * size) for size in training.parameters for _ in range(3)]
    training.allocator.forget_history()
    training.forward()
    training.backward()
    for size in training.parameters:
        training.allocator.free(training.allocator.alloc(2 * size, ADAMW), ADAMW)
    ledger = ledger_of(training.raw())
    assert ledger.entries["optimizer_states"] == 6 * sum(training.parameters)
    assert len(masters) == 9


def test_lora_s_frozen_base_is_weights():
    training = Training(parameters=(2 * MIB,) * 8)
    frozen = [training.allocator.alloc(16 * MIB) for _ in range(12)]
    training.load()
    training.allocator.forget_history()
    for _ in range(2):
        training.step()
    ledger = ledger_of(training.raw())
    assert ledger.entries["weights"] == 12 * 16 * MIB + 16 * MIB
    assert len(frozen) == 12


def test_a_large_old_block_of_no_layer_s_size_is_not_called_weights():
    training = Training()
    training.load()
    training.step()
    training.allocator.alloc(600 * MIB)
    training.allocator.forget_history()
    training.step()
    assert ledger_of(training.raw()).entries["unattributed"] == 600 * MIB


def test_an_optimizer_inside_a_function_called_forward_is_an_optimizer():
    training = Training()
    training.load()
    inside = [ADAMW[0], a_frame("forward", "/app/model.py", 99), *FORWARD]
    training.forward()
    training.backward()
    spikes = [training.allocator.alloc(size, inside) for size in PARAMETERS]
    for spike in spikes:
        training.allocator.free(spike, inside)
    training.forward(layers=1)
    ledger = ledger_of(training.raw())
    assert ledger.entries["temporaries"] == P


def test_a_function_whose_name_contains_a_telling_word_decides_nothing():
    allocator = Allocator()
    for name in ("forward_optimizer_step", "activation", "gradient_cache", "weights"):
        allocator.alloc(4 * MIB, [a_frame(name, "/app/optimizer/forward/weights.py"), MAIN])
    assert ledger_of(allocator.raw()).entries["unattributed"] == 16 * MIB


def test_a_failure_in_backward_describes_the_failure_and_not_what_was_left_after_it():
    training = Training()
    training.load()
    training.step()
    training.forward()
    training.backward(until=4)
    training.allocator.release_cached()
    training.allocator.fail(64 * MIB, device_free=MIB)
    while training.kept:
        training.allocator.free(training.kept.pop(), AUTOGRAD)
    training.allocator.release_cached()
    ledger = ledger_of(training.raw())
    assert ledger.at is Moment.OOM
    assert ledger.entries["activations"] == 3 * training.activation
    assert ledger.entries["weights"] == P
    assert ledger.entries["gradients"] == sum(PARAMETERS[::-1][:4])
    assert "oom event" in ledger.source.where


def test_a_failure_in_the_first_step_of_a_user_s_optimizer_counts_its_states():
    training = Training()
    training.load()
    training.forward()
    training.backward()
    line = [a_frame("step", "/app/my_optimizer.py", 61), *ADAMW[1:]]
    for size in PARAMETERS[:10]:
        training.allocator.alloc(size, line)
    training.allocator.fail(64 * MIB, device_free=MIB)
    assert ledger_of(training.raw()).entries["optimizer_states"] == sum(PARAMETERS[:10])


def test_temporaries_of_a_library_s_optimizer_are_no_states_where_it_fails():
    training = Training()
    training.load()
    training.forward()
    training.backward()
    for size in PARAMETERS:
        training.allocator.alloc(size, ADAMW)
    training.allocator.fail(64 * MIB, device_free=MIB)
    ledger = ledger_of(training.raw())
    assert ledger.entries["optimizer_states"] == 0
    assert ledger.entries["temporaries"] == P


def test_inference_holds_weights_and_the_current_layer():
    model = Training()
    model.load()
    model.forward(keeps=False)
    ledger = ledger_of(model.raw())
    assert ledger.entries["weights"] == P
    assert ledger.entries["activations"] == 3 * model.activation
    assert ledger.entries["gradients"] == 0


def test_inference_recorded_late_calls_repeated_old_blocks_weights():
    model = Training(parameters=(4 * MIB, 6 * MIB) * 8)
    model.load()
    model.allocator.forget_history()
    model.forward(keeps=False)
    assert ledger_of(model.raw()).entries["weights"] == 80 * MIB


def test_with_autograd_on_and_no_step_recorded_old_memory_stays_unattributed():
    model = Training(parameters=(4 * MIB, 6 * MIB) * 8)
    model.load()
    model.allocator.forget_history()
    model.forward(keeps=True)
    ledger = ledger_of(model.raw())
    assert ledger.entries["unattributed"] == 80 * MIB
    assert any("autograd was on" in note for note in ledger.notes)


def test_a_failure_in_the_first_recorded_backward_leaves_old_memory_unattributed():
    training = Training()
    training.load()
    training.step()
    training.allocator.forget_history()
    training.forward()
    training.backward(until=2)
    training.allocator.fail(64 * MIB, device_free=0)
    ledger = ledger_of(training.raw())
    assert ledger.entries["unattributed"] >= 3 * P - 6 * sum(PARAMETERS[-2:])
    assert ledger.entries["optimizer_states"] == 0
    assert any("no whole backward" in note for note in ledger.notes)


def test_without_a_step_recorded_old_copies_of_parameters_are_not_called_weights():
    training = Training()
    training.load()
    training.step()
    training.allocator.forget_history()
    training.forward()
    training.backward()
    training.forward()
    ledger = ledger_of(training.raw())
    assert ledger.entries["weights"] == P
    assert ledger.entries["unattributed"] == 2 * P


def test_gradients_inside_communication_buckets_are_not_looked_for_among_old_memory():
    training = Training()
    training.load()
    init = [a_frame("__init__", "/env/torch/nn/parallel/distributed.py"), MAIN]
    training.allocator.alloc(P, init)
    training.step(makes_gradients=False)
    ledger = at_the_end(training)
    assert ledger.entries["communication_buffers"] == P
    assert ledger.entries["gradients"] == 0
    assert ledger.entries["optimizer_states"] == 2 * P


def test_a_large_block_made_outside_of_the_model_and_kept_is_no_input():
    training = Training()
    training.load()
    dataset = training.allocator.alloc(400 * MIB, [a_frame("main", "/app/train.py"), MAIN])
    training.step()
    assert ledger_of(training.raw()).entries["unattributed"] == 400 * MIB
    assert dataset


def test_a_program_in_cpp_has_no_autograd_threads_to_tell():
    allocator = Allocator()
    allocator.alloc(4 * MIB, AUTOGRAD)
    assert ledger_of(allocator.raw()).entries["unattributed"] == 4 * MIB


def test_a_serving_engine_s_old_memory_stays_unattributed():
    model = Training(parameters=(4 * MIB, 6 * MIB) * 8)
    model.load()
    model.allocator.forget_history()
    frames = [FORWARD[0], a_frame("execute_model", "/env/vllm/worker/model_runner.py"), *FORWARD[1:]]
    model.allocator.free(model.allocator.alloc(8 * MIB, frames), frames)
    ledger = ledger_of(model.raw())
    assert ledger.entries["unattributed"] == 80 * MIB
    assert any("serving engine" in note for note in ledger.notes)


def test_a_cache_is_known_by_its_library_s_frames():
    allocator = Allocator()
    frames = [a_frame("update", "/env/transformers/cache_utils.py", 400), *FORWARD]
    allocator.alloc(8 * MIB, frames)
    assert ledger_of(allocator.raw()).entries["kv_cache"] == 8 * MIB


def test_concatenated_keys_and_values_are_a_cache_by_their_growth():
    allocator = Allocator()
    past = []
    for token in range(6):
        fresh = []
        for layer in range(4):
            fresh.append(allocator.alloc((100 + token) * 16 * 1024, FORWARD))
            if past:
                allocator.free(past[layer], FORWARD)
        past = fresh
    ledger = ledger_of(allocator.raw())
    assert ledger.entries["kv_cache"] == (4 * 105 + 104) * 16 * 1024  # the last layer's old one is live beside its successor
    assert ledger.entries["activations"] == 0


def test_checkpointed_activations_are_recomputed_inside_backward():
    training = Training()
    training.load()
    training.forward()
    recompute = [
        a_frame("forward", "/app/model.py", 21),
        FORWARD[1],
        a_frame("recompute_fn", "/env/torch/utils/checkpoint.py", 1400),
        a_frame("unpack_hook", "/env/torch/utils/checkpoint.py", 1100),
    ]
    training.allocator.alloc(4 * MIB, AUTOGRAD)
    training.allocator.alloc(300 * MIB, recompute)
    ledger = ledger_of(training.raw())
    site = ledger.sites[0]
    assert (site.block, site.why) == ("activations", "recomputed inside backward")


@pytest.mark.parametrize(
    ("category", "block"), [("parameter", "weights"), ("optimizer_state", "optimizer_states"), ("unknown", "unattributed")]
)
def test_the_profiler_s_categories_win(category, block):
    trace = [an_event(frames=FORWARD[:0], category=category), an_event(addr=5, category="gradient", size=7)]
    ledger = ledger_of(a_raw_snapshot([a_segment(a_block())], [trace, []]))
    assert ledger.entries[block] == 2 * MIB
    assert ledger.reserved_bytes is None
    assert held(ledger) == ledger.allocated_bytes


def test_annotate_events_win_over_stacks_and_the_newest_counts():
    allocator = Allocator()
    address = allocator.alloc(4 * MIB, FORWARD)
    for text in ("gradients", "kv_cache", "some other text"):
        allocator.record("annotate", address, 0, user_metadata=text)
    assert ledger_of(allocator.raw()).entries["gradients"] == 4 * MIB  # the peak lies before all tags: the next one holds
    allocator.alloc(64 * MIB, FORWARD)
    assert ledger_of(allocator.raw()).entries["kv_cache"] == 4 * MIB


def test_without_a_history_everything_live_is_unattributed_and_that_is_said():
    ledger = ledger_of(a_raw_snapshot([a_segment(a_block(), a_block(MIB, "inactive", 0x7F0000200000))], [[]]))
    assert ledger.at is Moment.DUMP
    assert ledger.entries["unattributed"] == 2 * MIB
    assert ledger.entries["allocator_cached"] == MIB
    assert ledger.entries["weights"] is None
    assert any("no history" in note for note in ledger.notes)


def test_a_history_without_stacks_says_so():
    allocator = Allocator()
    allocator.alloc(4 * MIB)
    ledger = ledger_of(allocator.raw())
    assert ledger.entries["unattributed"] == 4 * MIB
    assert any("no stacks" in note for note in ledger.notes)


def test_the_device_that_failed_comes_first_then_the_one_that_reserved_most():
    failing = Allocator(device=2)
    failing.alloc(MIB, FORWARD)
    failing.fail(100 * MIB, device_free=5)
    raw = failing.raw()
    raw["segments"] += [a_segment(a_block(), device=0), a_segment(a_block(9 * MIB), device=1)]
    raw["device_traces"] = [[], [], failing.events]
    ledgers = memory_ledger(read(raw))
    assert [ledger.device_index for ledger in ledgers] == [2, 1, 0]
    assert [ledger.at for ledger in ledgers] == [Moment.OOM, Moment.DUMP, Moment.DUMP]


def test_free_memory_of_private_pools_is_theirs_and_not_cached():
    segment = a_segment(a_block(), a_block(3 * MIB, "inactive", 0x7F0000200000), segment_pool_id=(0, 1))
    ledger = ledger_of(a_raw_snapshot([segment], [[]]))
    assert ledger.entries["private_pools"] == 3 * MIB
    assert ledger.entries["allocator_cached"] == 0


def test_rounding_is_an_entry_of_its_own():
    allocator = Allocator()
    allocator.alloc(2 * MIB + 1, FORWARD)
    ledger = ledger_of(allocator.raw())
    assert ledger.entries["allocator_rounding"] == 511
    assert ledger.sites[0].live_bytes == 2 * MIB + 512


def test_memory_that_waits_for_another_stream_is_told():
    allocator = Allocator()
    allocator.free(allocator.alloc(64 * MIB, FORWARD), FORWARD, completes=False)
    allocator.fail(100 * MIB, device_free=0)
    ledger = ledger_of(allocator.raw())
    assert ledger.allocated_bytes == 0
    assert any("waits for another stream" in note for note in ledger.notes)
    assert held(ledger) == ledger.reserved_bytes


def test_reserved_memory_is_unknown_where_the_record_contradicts_the_segments():
    allocator = Allocator()
    address = allocator.alloc(64 * MIB, FORWARD)
    allocator.recording = False
    allocator.free(address)
    allocator.release_cached()
    raw = allocator.raw()
    raw["device_traces"] = [[event for event in allocator.events if event["action"] == "alloc"]]
    ledger = ledger_of(raw)
    assert ledger.reserved_bytes is None
    assert held(ledger) == 64 * MIB
    assert any("contradicts" in note for note in ledger.notes)


def snapshots():
    try:
        folder = corpus()
    except pytest.skip.Exception as missing:
        return [pytest.param(None, marks=pytest.mark.skip(reason=str(missing)))]
    return [pytest.param(path, id=path.stem) for path in sorted((folder / "snapshots").glob("*/*.pickle"))]


@pytest.mark.parametrize("path", snapshots())
def test_the_ledger_of_every_real_snapshot_closes_to_the_byte(path):
    raw = read_snapshot(path.read_bytes(), path.name)
    ledgers = memory_ledger(raw)
    assert len(ledgers) == len(raw.devices)
    for ledger in ledgers:
        assert held(ledger) == ledger.reserved_bytes
        assert all(size is None or size >= 0 for size in ledger.entries.values())


@pytest.mark.parametrize("path", [path for path in snapshots() if "training" in str(path.values[0]) or "backward" in str(path.values[0])])
def test_real_training_steps_are_explained_to_within_five_percent(path):
    (ledger,) = memory_ledger(read_snapshot(path.read_bytes(), path.name))
    assert ledger.entries["unattributed"] <= 0.05 * ledger.allocated_bytes


MEDIUM_PARAMETER_BYTES = 1_692_712_960
"""The medium model's 423 million parameters in fp32: 24 layers of 1024 with 4096 in the feed-forward part, and 10,000 tokens."""


@pytest.mark.parametrize("context", [128, 256, 512, 1024])
def test_real_weights_and_states_agree_with_arithmetic(context):
    path = corpus() / "snapshots" / "Wedsonlin+assignment2-systems" / f"results__medium_{context}_training_memory_snapshot.pickle"
    (ledger,) = memory_ledger(read_snapshot(path.read_bytes(), path.name))
    assert ledger.entries["weights"] == pytest.approx(MEDIUM_PARAMETER_BYTES, rel=0.001)
    assert ledger.entries["optimizer_states"] == pytest.approx(2 * MEDIUM_PARAMETER_BYTES, rel=0.001)
    largest = "optimizer_states" if context == 128 else "activations"
    assert ledger.largest()[0] == largest


def test_a_block_that_the_allocator_made_for_itself_is_not_attributed_to_the_line_that_ran():
    allocator = Allocator()
    allocator.alloc(4 * MIB, FORWARD)
    before = len(allocator.events)
    allocator.free(allocator.alloc(64 * MIB, FORWARD), FORWARD)
    for event in allocator.events[before:]:
        event["internal_metadata"] = "prefix"
    ledger = ledger_of(allocator.raw())
    assert all(site.largest_bytes <= 4 * MIB for site in ledger.sites)
    assert held(ledger) == ledger.reserved_bytes
