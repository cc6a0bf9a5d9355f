"""MEM106 needs frames that copy a model, or says that it guesses."""

import pytest

from advisor.model.failure import Frame, Mention
from advisor.model.memory import AllocationSite, Moment
from advisor.rules.memory.second_model_copy import (
    FRAME_SCORE,
    LEAST_COPY_RATIO,
    WORD_SCORE,
    second_model_copy,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_log, a_record

check = second_model_copy.check


def a_copy(live_bytes: int) -> AllocationSite:
    return AllocationSite(
        label="copy.py:128 in deepcopy", block="weights", live_bytes=live_bytes, count=10, largest_bytes=GIB, why="",
        stack=("copy.py:128 in deepcopy",),
    )  # fmt: skip


@pytest.mark.parametrize(("ratio", "fires"), [(LEAST_COPY_RATIO + 0.01, True), (LEAST_COPY_RATIO - 0.01, False)])
def test_a_copy_is_a_good_part_of_the_weights(ratio: float, fires: bool) -> None:
    ledger = a_ledger(at=Moment.OOM, weights=40 * GIB, activations=35 * GIB, sites=(a_copy(int(ratio * 40 * GIB)),))
    assert (check(None, None, ledger, a_record(oom_count=1)) is not None) is fires


def test_a_frame_that_replicates_is_surer_than_a_word() -> None:
    replicate = Frame(filename="torch/nn/parallel/replicate.py", line=12, function="replicate", code="")
    by_frame = check(a_failure(frames=(replicate,)), None, None, None)
    by_word = check(a_failure(), a_log(mentions=(Mention(topic="second-model", line=1, text="EMA enabled"),)), None, None)
    assert by_frame is not None
    assert by_word is not None
    assert (by_frame.confidence, by_word.confidence) == (FRAME_SCORE, WORD_SCORE)


def test_a_word_without_a_failure_is_nothing() -> None:
    assert check(None, a_log(mentions=(Mention(topic="second-model", line=1, text="EMA enabled"),)), None, None) is None
