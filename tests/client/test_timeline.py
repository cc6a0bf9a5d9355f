"""The phases of a step are those that the loop went through, and sum to it."""

import pytest
from a_loop import Loop, phases
from hypothesis import given
from hypothesis import strategies as st

from advisor.client.layout import PHASES, step_of
from advisor.client.timeline import Batch, Timeline

TIMES = st.floats(0, 50).map(lambda value: round(value, 3))


@given(data=TIMES, forward=TIMES, backward=TIMES, optimizer=TIMES, rest=TIMES)
def test_a_plain_step_is_told_by_its_phases(data, forward, backward, optimizer, rest):
    loop = Loop()
    loop.training_step(data, forward, backward, optimizer)
    loop.spend(rest)
    loop.training_step(data, forward, backward, optimizer)
    told = {"other": rest, "data_wait": data, "forward": forward, "backward": backward, "optimizer": optimizer}
    assert phases(loop.steps[1]) == {name: value for name, value in told.items() if value}
    assert sum(loop.steps[1].phases) == pytest.approx(loop.steps[1].seconds)


def test_micro_batches_are_one_step():
    loop = Loop()
    for _ in range(4):
        loop.batch(1)
        loop.spend(2)
        loop.backward(3)
    loop.optimizer(1)
    (step,) = loop.steps
    assert phases(step) == {"data_wait": 4, "forward": 8, "backward": 12, "optimizer": 1}
    assert (step.backward_count, step.batch_count, step.sample_count) == (4, 4, 32)


def test_without_a_loader_forward_begins_where_the_step_before_ended():
    loop = Loop()
    for _ in range(2):
        loop.spend(5)
        loop.backward(3)
        loop.spend(0.5)
        loop.optimizer(1)
    assert phases(loop.steps[1]) == {"forward": 5, "backward": 3, "other": 0.5, "optimizer": 1}
    assert loop.steps[1].flags & 128


def test_evaluation_without_gradients_is_evaluation_and_ends_with_the_next_training_batch():
    loop = Loop()
    loop.training_step()
    for _ in range(3):
        loop.batch(1, grad=False)
        loop.spend(4)
    loop.batch(0, grad=False, batch=None)
    loop.training_step()
    assert phases(loop.steps[1])["evaluation"] == 15
    assert phases(loop.steps[1])["forward"] == 3


def test_evaluation_mode_with_gradients_on_is_flagged():
    loop = Loop()
    loop.training_step()
    loop.timeline.mode(False)
    loop.batch(1)
    loop.spend(4)
    loop.timeline.mode(True)
    loop.training_step()
    assert loop.steps[1].flags & 4
    assert phases(loop.steps[1])["evaluation"] == 5


def test_a_part_of_the_model_in_evaluation_mode_does_not_make_the_training_an_evaluation():
    loop = Loop()
    for _ in range(3):
        loop.timeline.mode(False)
        loop.training_step()
    assert "evaluation" not in phases(loop.steps[-1])
    assert phases(loop.steps[-1])["data_wait"] == 2


def test_two_optimizers_in_turn_end_one_step():
    loop = Loop()
    for _ in range(6):
        loop.batch(1)
        loop.backward(3)
        loop.optimizer(1, identity=1)
        loop.optimizer(2, identity=2)
    assert phases(loop.steps[-1])["optimizer"] == 3
    assert len(loop.steps) in {6, 7}


def test_a_generator_and_a_discriminator_make_one_step_together():
    loop = Loop()
    for _ in range(6):
        loop.training_step()
        loop.backward(3)
        loop.optimizer(1, identity=2)
    assert len(loop.steps) == 6
    assert loop.steps[-1].backward_count == 2


def test_a_new_optimizer_takes_over_from_one_that_is_gone():
    loop = Loop()
    loop.training_step()
    for _ in range(20):
        loop.batch(1)
        loop.backward(3)
        loop.optimizer(1, identity=7)
    assert len(loop.steps) >= 12


def test_an_optimizer_fused_into_backward_steps_once_a_backward():
    loop = Loop()
    for _ in range(2):
        loop.batch(1)
        loop.timeline.backward_begin()
        for parameter in range(5):
            loop.spend(1)
            loop.optimizer(0.5, identity=parameter + 1)
        loop.timeline.backward_end()
    assert len(loop.steps) == 2
    assert phases(loop.steps[1]) == {"data_wait": 1, "backward": 5, "optimizer": 2.5}


def test_an_exception_inside_a_step_does_not_confuse_the_next():
    loop = Loop()
    loop.training_step()
    loop.batch(1)
    loop.timeline.optimizer_begin()
    loop.spend(2)
    loop.training_step()
    loop.training_step()
    assert phases(loop.steps[-1]) == {"data_wait": 2, "forward": 3, "backward": 6, "optimizer": 1}


def test_a_loop_that_only_evaluates_has_a_step_a_batch():
    loop = Loop()
    for _ in range(4):
        loop.batch(1, grad=False)
        loop.spend(5)
    assert len(loop.steps) == 3
    assert loop.steps[0].flags & 64


def test_a_loop_that_says_its_steps_is_taken_at_its_word():
    loop = Loop()
    loop.timeline.step()
    for _ in range(3):
        loop.training_step()
        loop.training_step()
        loop.timeline.step()
    assert [step.batch_count for step in loop.steps[1:]] == [2, 2, 2]


def test_what_is_named_is_measured_inside_what_runs():
    loop = Loop()
    loop.training_step()
    loop.timeline.enter(PHASES.index("checkpoint"))
    loop.spend(9)
    loop.timeline.leave(PHASES.index("checkpoint"))
    loop.training_step()
    assert phases(loop.steps[1])["checkpoint"] == 9


def test_the_state_tells_what_runs():
    loop, seen = Loop(), []

    class Words(list):
        def __setitem__(self, place, value):
            super().__setitem__(place, value)
            if place == 0:
                seen.append(PHASES[value])

    loop.timeline = Timeline(lambda _: None, Words([0, 0, 0]), clock=lambda: loop.now)
    loop.training_step()
    assert seen == ["data_wait", "forward", "backward", "other", "optimizer", "other"]


def test_garbage_collections_are_counted_with_their_step():
    loop = Loop()
    loop.timeline.collected(3_000_000)
    loop.training_step()
    assert (loop.steps[0].gc_count, loop.steps[0].gc_seconds) == (1, 0.003)


@given(
    calls=st.lists(
        st.sampled_from(["batch", "end", "backward", "backward_end", "step", "opt", "opt_end", "eval", "train", "close"]), max_size=40
    )
)
def test_no_order_of_calls_raises_or_loses_time(calls):
    loop, steps = Loop(), []
    begin = loop.now
    timeline = loop.timeline = Timeline(lambda values: steps.append(step_of(values)), [0, 0, 0], clock=lambda: loop.now)
    for call in calls:
        loop.spend(1)
        {
            "batch": timeline.batch_begin,
            "end": lambda: timeline.batch_end(Batch()),
            "backward": timeline.backward_begin,
            "backward_end": timeline.backward_end,
            "step": timeline.step,
            "opt": timeline.optimizer_begin,
            "opt_end": lambda: timeline.optimizer_end(1),
            "eval": lambda: timeline.mode(False),
            "train": lambda: timeline.mode(True),
            "close": timeline.close,
        }[call]()
    timeline.close()
    assert sum(step.seconds for step in steps) == pytest.approx((loop.now - begin) / 1e9)
    for step in steps:
        assert sum(step.phases) == pytest.approx(step.seconds)
        assert min(step.phases) >= 0
