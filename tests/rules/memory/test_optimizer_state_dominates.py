"""MEM103 tells states that are being made from a step that merely failed."""

import pytest

from advisor.model.failure import Frame, Mention, Phase
from advisor.model.memory import Moment
from advisor.rules.memory.optimizer_state_dominates import (
    DECIDES_SCORE,
    FIRST_STEP_SCORE,
    MAKING_SCORE,
    STATED_SCORE,
    optimizer_state_dominates,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = optimizer_state_dominates.check


def score(text: str, **fields: object) -> float:
    failure = a_failure(generation="words only", **fields)
    log = a_log(mentions=(Mention(topic="adam", line=1, text=text),))
    finding = check(failure, log, None, None, None)
    return finding.confidence if finding else 0.0


def test_frames_that_make_the_states_are_sure() -> None:
    making = Frame(filename="torch/optim/adam.py", line=1, function="_init_group", code='state["exp_avg"] = torch.zeros_like(')
    finding = check(a_failure(phase=Phase.OPTIMIZER_STEP, frames=(making,)), None, None, None, None)
    assert finding is not None
    assert finding.confidence == MAKING_SCORE


def test_words_about_the_first_step_need_adam_to_be_sure() -> None:
    assert score("Adam runs out of memory right after the first step") == STATED_SCORE
    assert score("SGD fits, Adam does not: out of memory") == STATED_SCORE
    assert score("out of memory in the second iteration") == FIRST_STEP_SCORE
    assert score("optimizer: adamw, lr 1e-4") == 0.0


@pytest.mark.parametrize(("total_gib", "expected"), [(27, DECIDES_SCORE), (105, 0.55)])
def test_it_decides_where_the_rest_would_fit_without_it(total_gib: int, expected: float) -> None:
    assert score("full fine-tune of model-7b", total_bytes=total_gib * GIB, requested_bytes=MIB) == expected


def test_a_save_that_makes_states_is_a_save() -> None:
    making = Frame(filename="a.py", line=1, function="save", code='state["exp_avg_sq"] = zeros_like(p)')
    assert check(a_failure(phase=Phase.CHECKPOINT, frames=(making,)), None, None, None, None) is None


def test_a_snapshot_at_the_failure_with_states_as_the_largest_block() -> None:
    ledger = a_ledger(at=Moment.OOM, weights=14 * GIB, optimizer_states=50 * GIB, activations=14 * GIB)
    finding = check(None, None, ledger, a_record(oom_count=1, oom_requested_bytes=GIB), None)
    assert finding is not None
    assert finding.actions[0].predicted.peak_bytes == 53 * GIB
