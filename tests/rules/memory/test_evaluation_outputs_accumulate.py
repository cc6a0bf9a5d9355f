"""MEM206 is sure where outputs are gathered, and silent where they are moved away."""

from advisor.model.failure import Frame, Mention, Phase
from advisor.rules.memory.evaluation_outputs_accumulate import (
    GATHERING_SCORE,
    LOOP_SCORE,
    TRAINER_SCORE,
    evaluation_outputs_accumulate,
)
from advisor.rules.samples import a_failure, a_log

check = evaluation_outputs_accumulate.check
LOOP = Frame(filename="transformers/trainer.py", line=1, function="evaluation_loop", code="losses, logits = step()")
CONCAT = Frame(filename="transformers/trainer_pt_utils.py", line=2, function="nested_concat", code="return cat")
OWN = Frame(filename="train.py", line=3, function="evaluate", code="out = model(x)")


def score(*frames: Frame, log: object = None) -> float:
    finding = check(a_failure(phase=Phase.EVALUATION, frames=frames), log)
    return finding.confidence if finding else 0.0


def test_gathering_is_surer_than_the_trainers_loop_than_an_own_loop() -> None:
    assert (score(LOOP, CONCAT), score(LOOP), score(OWN)) == (GATHERING_SCORE, TRAINER_SCORE, LOOP_SCORE)


def test_a_setting_that_moves_outputs_away_excludes_it_unless_it_fails_there() -> None:
    log = a_log(settings=(("eval_accumulation_steps", "8"),))
    assert score(LOOP, log=log) == 0.0
    assert score(LOOP, CONCAT, log=log) == GATHERING_SCORE
    assert score(LOOP, log=a_log(settings=(("eval_accumulation_steps", "None"),))) == TRAINER_SCORE


def test_a_dump_of_the_arguments_is_not_a_description() -> None:
    dump = Mention(topic="eval-accumulation", line=1, text="eval_accumulation_steps=None, eval_steps=500,")
    assert check(a_failure(phase=Phase.FORWARD), a_log(mentions=(dump,))) is None
    assert check(None, a_log(mentions=(dump,))) is None
