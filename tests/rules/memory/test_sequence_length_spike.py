"""MEM207 needs a lack of memory beside the tokenizer's warning."""

from advisor.model.failure import Mention, Phase
from advisor.rules.memory.sequence_length_spike import (
    STATED_SCORE,
    WARNED_SCORE,
    sequence_length_spike,
)
from advisor.rules.samples import a_failure, a_log

check = sequence_length_spike.check
WARNING = "Token indices sequence length is longer than the specified maximum sequence length (700 > 512)"
STATED = "some samples exceed max_seq_len and are not truncated"


def score(text: str, failure: object) -> float:
    finding = check(a_log(mentions=(Mention(topic="sequence-length", line=1, text=text),)), failure)
    return finding.confidence if finding else 0.0


def test_words_that_say_it_are_surer_than_the_tokenizers_warning() -> None:
    assert score(STATED, a_failure(phase=Phase.FORWARD)) == STATED_SCORE
    assert score(WARNING, a_failure(phase=Phase.FORWARD)) == WARNED_SCORE


def test_the_warning_alone_is_no_finding() -> None:
    assert score(WARNING, None) == 0.0


def test_loading_has_no_samples() -> None:
    assert score(STATED, a_failure(phase=Phase.LOADING)) == 0.0


def test_figures_that_point_elsewhere_halve_it() -> None:
    fragmented = a_failure(requested_bytes=1, allocated_bytes=10, reserved_unallocated_bytes=5, free_bytes=0)
    assert score(STATED, fragmented) == STATED_SCORE / 2
