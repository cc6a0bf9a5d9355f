"""MEM102 compares 16 bytes a parameter with the device."""

from dataclasses import replace

import pytest

from advisor.model.failure import Mention, Phase
from advisor.model.memory import Moment
from advisor.rules.capacity import SMALL_DEVICE_BYTES
from advisor.rules.memory.model_states_exceed_device import (
    NAMED_SCORE,
    PRESUMED_SCORE,
    STATES_RATIO,
    model_states_exceed_device,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = model_states_exceed_device.check


def a_log_of(billions: str, **fields: object):
    return a_log(settings=(("model_name_or_path", f"org/model-{billions}b"),), **fields)


@pytest.mark.parametrize(("billions", "exceeds"), [("5.4", True), ("5.3", False)])
def test_sixteen_bytes_a_parameter_are_compared_with_the_device(billions: str, exceeds: bool) -> None:
    failure = a_failure(total_bytes=80 * GIB, phase=Phase.BACKWARD, requested_bytes=MIB)
    finding = check(failure, a_log_of(billions), None, None, None)
    assert finding is not None
    assert (finding.confidence == PRESUMED_SCORE) is exceeds


def test_the_premise_of_adamw_is_a_guess_until_the_log_says_so() -> None:
    failure = a_failure(total_bytes=80 * GIB, phase=Phase.BACKWARD, requested_bytes=MIB)
    plain, told = a_log_of("5.4"), a_log_of("5.4")
    told = replace(told, mentions=(*told.mentions, Mention(topic="adamw", line=2, text="optim: adamw_torch")))
    scores = [finding.confidence for log in (plain, told) if (finding := check(failure, log, None, None, None))]
    assert scores == [PRESUMED_SCORE, NAMED_SCORE]


def test_sharded_states_are_divided_by_the_ranks() -> None:
    failure = a_failure(total_bytes=80 * GIB, phase=Phase.BACKWARD, requested_bytes=MIB)
    log = a_log_of("7", world_size=8, frameworks=("fsdp",))
    finding = check(failure, log, None, None, None)
    assert finding is not None
    assert finding.confidence < NAMED_SCORE


def test_adapters_have_hardly_any_states() -> None:
    log = a_log_of("70", mentions=(Mention(topic="lora", line=2, text="LoRA r=16"),))
    assert check(a_failure(phase=Phase.BACKWARD), log, None, None, None) is None


def test_a_small_device_raises_the_candidate() -> None:
    def confidence(total_bytes: int) -> float:
        finding = check(a_failure(total_bytes=total_bytes, requested_bytes=MIB), None, None, None, None)
        assert finding is not None
        return finding.confidence

    assert confidence(SMALL_DEVICE_BYTES) > confidence(SMALL_DEVICE_BYTES + 1)


@pytest.mark.parametrize(("ratio", "fires"), [(STATES_RATIO + 0.01, True), (STATES_RATIO - 0.01, False)])
def test_a_snapshot_whose_states_fill_the_device(ratio: float, fires: bool) -> None:
    states = int(ratio * 80 * GIB)
    ledger = a_ledger(at=Moment.OOM, weights=states // 4, gradients=states // 4, optimizer_states=states - states // 2)
    finding = check(None, None, ledger, a_record(oom_count=1), None)
    assert (finding is not None) is fires
