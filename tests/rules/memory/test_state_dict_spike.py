"""MEM704 tells saving from activation checkpointing and from loading."""

import pytest

from advisor.model.failure import Frame, Mention, Phase
from advisor.rules.memory.state_dict_spike import PHASE_SCORE, STATED_SCORE, state_dict_spike
from advisor.rules.samples import a_failure, a_log

check = state_dict_spike.check


def score(text: str, **fields: object) -> float:
    log = a_log(mentions=(Mention(topic="checkpoint-save", line=1, text=text),))
    finding = check(a_failure(**fields), log)
    return finding.confidence if finding else 0.0


def test_the_phase_is_surest() -> None:
    finding = check(a_failure(phase=Phase.CHECKPOINT), None)
    assert finding is not None
    assert finding.confidence == PHASE_SCORE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trains fine, fails at checkpoint save", STATED_SCORE),
        ("out of memory while saving the model", STATED_SCORE),
        ("out of memory in gradient checkpointing", 0.0),
        ("checkpoint saved to out/checkpoint-500", 0.0),
    ],
)
def test_words_by_what_they_say(text: str, expected: float) -> None:
    assert score(text) == expected


def test_words_do_not_outweigh_a_traceback_in_backward() -> None:
    assert score("fails at checkpoint save", phase=Phase.BACKWARD, frames=()) == STATED_SCORE
    frame = Frame(filename="t.py", line=1, function="train", code="loss.backward()")
    assert score("fails at checkpoint save", phase=Phase.BACKWARD, frames=(frame,)) == 0.0
