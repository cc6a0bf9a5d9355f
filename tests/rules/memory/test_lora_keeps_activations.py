"""MEM204 needs adapters and a lack of memory, both."""

import pytest

from advisor.model.failure import Mention, Phase
from advisor.model.memory import Moment
from advisor.rules.memory.lora_keeps_activations import (
    FEW_TRAINABLE_SCORE,
    LEDGER_SCORE,
    PRIOR,
    lora_keeps_activations,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_log, a_record

check = lora_keeps_activations.check


def said(text: str):
    return a_log(mentions=(Mention(topic="lora", line=1, text=text),))


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("LoRA fine-tune", PRIOR),
        ("trainable params: 1 || all params: 100 || trainable%: 10.0", FEW_TRAINABLE_SCORE),
        ("trainable params: 1 || all params: 100 || trainable%: 10.1", PRIOR),
    ],
)
def test_few_trainable_parameters_make_it_surer(text: str, score: float) -> None:
    finding = check(said(text), a_failure(phase=Phase.FORWARD), None, None)
    assert finding is not None
    assert finding.confidence == score


def test_loading_is_another_matter() -> None:
    assert check(said("LoRA"), a_failure(phase=Phase.LOADING), None, None) is None


def test_adapters_alone_are_no_finding() -> None:
    assert check(said("LoRA"), None, None, None) is None


def test_a_snapshot_settles_it() -> None:
    ledger = a_ledger(at=Moment.OOM, weights=15 * GIB, activations=60 * GIB)
    finding = check(said("LoRA"), None, ledger, a_record(oom_count=1))
    assert finding is not None
    assert finding.confidence == LEDGER_SCORE
    weights = a_ledger(at=Moment.OOM, weights=70 * GIB, activations=5 * GIB)
    assert check(said("LoRA"), None, weights, a_record(oom_count=1)) is None
