"""MEM205 looks for signs that gradients are off before it says that they are on."""

import pytest

from advisor.model.failure import Frame, Mention, Phase
from advisor.rules.memory.autograd_in_inference import (
    EVALUATION_SCORE,
    GROWS_SCORE,
    NAMED_SCORE,
    STATED_SCORE,
    autograd_in_inference,
)
from advisor.rules.samples import a_failure, a_log

check = autograd_in_inference.check
VALIDATE = Frame(filename="train.py", line=1, function="validate", code="out = model(x)")


def score(text: str, failure: object = None) -> float:
    finding = check(failure, a_log(mentions=(Mention(topic="evaluation", line=1, text=text),)))
    return finding.confidence if finding else 0.0


def test_an_own_loop_without_a_guard() -> None:
    finding = check(a_failure(phase=Phase.EVALUATION, frames=(VALIDATE,)), None)
    assert finding is not None
    assert finding.confidence == EVALUATION_SCORE


@pytest.mark.parametrize(
    "guard",
    [
        Frame(filename="torch/utils/_contextlib.py", line=1, function="decorate_context", code="return func(*a)"),
        Frame(filename="transformers/trainer.py", line=1, function="evaluation_loop", code="self.prediction_step("),
        Frame(filename="eval.py", line=1, function="main", code="with torch.inference_mode():"),
    ],
)
def test_a_frame_that_turns_gradients_off_excludes_it(guard: Frame) -> None:
    assert check(a_failure(phase=Phase.EVALUATION, frames=(guard, VALIDATE)), None) is None


def test_words_by_what_they_say() -> None:
    failure = a_failure(generation="words only")
    assert score("the validation step did not use torch.no_grad", failure) == STATED_SCORE
    assert score("usage rises after each validation batch", failure) == GROWS_SCORE
    assert score("out of memory in the evaluation loop", failure) == NAMED_SCORE
    assert score("trainer.evaluate() runs out of memory in the evaluation loop", failure) == 0.0


def test_a_healthy_log_evaluates_too() -> None:
    assert score("running evaluation loop over 500 batches") == 0.0
    assert score("with torch.no_grad(): evaluate") == 0.0


@pytest.mark.parametrize(
    ("text", "speaks_for_it"),
    [
        ("x = Variable(data, volatile=True)", True),
        ("UserWarning: volatile was removed and now has no effect", True),
        ("the Variable is not volatile in evaluation", True),
        ("| GPU  Name        | Bus-Id        Disp.A | Volatile Uncorr. ECC |", False),
        ("Volatile GPU-Util is low", False),
    ],
)
def test_volatile_counts_only_where_it_is_the_flag_of_variables(text: str, speaks_for_it: bool) -> None:
    assert (score(text, a_failure(phase=Phase.EVALUATION)) == STATED_SCORE) is speaks_for_it
