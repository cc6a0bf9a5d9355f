"""MEM702 tells the step's temporaries from its states."""

import pytest

from advisor.model.failure import Frame, Phase
from advisor.model.memory import Moment
from advisor.rules.memory.optimizer_step_spike import (
    FOREACH_SCORE,
    LEAST_RATIO,
    PHASE_SCORE,
    optimizer_step_spike,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_record

check = optimizer_step_spike.check


def a_frame(code: str, function: str = "_multi_tensor_adamw") -> Frame:
    return Frame(filename="torch/optim/adamw.py", line=1, function=function, code=code)


def score(*frames: Frame) -> float:
    finding = check(a_failure(phase=Phase.OPTIMIZER_STEP, frames=frames), None, None)
    return finding.confidence if finding else 0.0


def test_frames_tell_temporaries_from_states() -> None:
    assert score(a_frame("torch._foreach_sqrt(exp_avg_sqs)")) == FOREACH_SCORE
    assert score(a_frame('state["exp_avg"] = torch.zeros_like(p)', "_init_group")) == 0.0
    assert score() == PHASE_SCORE


@pytest.mark.parametrize(("ratio", "fires"), [(LEAST_RATIO + 0.01, True), (LEAST_RATIO - 0.01, False)])
def test_temporaries_worth_a_change(ratio: float, fires: bool) -> None:
    size = int(ratio * 70 * GIB)
    ledger = a_ledger(at=Moment.OOM, weights=70 * GIB - size, temporaries=size)
    record = a_record(oom_count=1, peak_phase="optimizer step")
    assert (check(None, ledger, record) is not None) is fires
    assert check(None, ledger, a_record(oom_count=1, peak_phase="backward")) is None
