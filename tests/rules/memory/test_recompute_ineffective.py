"""MEM208 asks whether checkpointing is on, and whether it runs."""

from advisor.model.failure import Frame, Mention, Phase
from advisor.model.memory import Moment
from advisor.rules.memory.recompute_ineffective import (
    LEDGER_SCORE,
    NO_FRAME_SCORE,
    WARNED_SCORE,
    recompute_ineffective,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_log, a_record

check = recompute_ineffective.check
ON = a_log(settings=(("gradient_checkpointing", "True"),))
OFF = a_log(settings=(("gradient_checkpointing", "False"),))
LAYER = Frame(filename="modeling.py", line=1, function="forward", code="hidden = decoder_layer(hidden)")
INSIDE = Frame(filename="torch/utils/checkpoint.py", line=2, function="checkpoint", code="return fn(*args)")


def score(log: object, *frames: Frame) -> float:
    finding = check(a_failure(phase=Phase.FORWARD, frames=frames), log, None, None)
    return finding.confidence if finding else 0.0


def test_a_forward_pass_outside_checkpointing_that_is_on() -> None:
    assert score(ON, LAYER) == NO_FRAME_SCORE
    assert score(ON, LAYER, INSIDE) == 0.0
    assert score(OFF, LAYER) == 0.0


def test_pytorchs_warning_is_surer() -> None:
    warning = "None of the inputs have requires_grad=True. Gradients will be None"
    log = a_log(mentions=(Mention(topic="inputs-without-grad", line=1, text=warning),))
    assert score(log) == WARNED_SCORE
    assert check(None, log, None, None) is None


def test_a_snapshot_with_activations_as_the_largest_block() -> None:
    ledger = a_ledger(at=Moment.OOM, activations=60 * GIB, weights=15 * GIB)
    finding = check(None, ON, ledger, a_record(oom_count=1))
    assert finding is not None
    assert finding.confidence == LEDGER_SCORE
    assert check(None, OFF, ledger, a_record(oom_count=1)) is None
