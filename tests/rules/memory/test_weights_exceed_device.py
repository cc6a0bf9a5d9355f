"""MEM101 says by arithmetic that weights do not fit, and otherwise goes by the phase."""

import pytest

from advisor.model.failure import Phase
from advisor.model.memory import Moment
from advisor.rules.capacity import GENERIC_CEILING
from advisor.rules.memory.weights_exceed_device import (
    FULL_RATIO,
    LOADING_FULL_SCORE,
    NAMED_SCORE,
    OVERSUBSCRIBED_SCORE,
    SHAPE_SCORE,
    weights_exceed_device,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = weights_exceed_device.check


@pytest.mark.parametrize(("billions", "exceeds"), [("43", True), ("42", False)])
def test_parameters_times_two_bytes_are_compared_with_the_device(billions: str, exceeds: bool) -> None:
    log = a_log(settings=(("model_name_or_path", f"org/model-{billions}b"),))
    for phase, score in ((Phase.LOADING, SHAPE_SCORE), (Phase.GENERATION, NAMED_SCORE)):
        finding = check(a_failure(total_bytes=80 * GIB, phase=phase, requested_bytes=MIB), log, None, None, None)
        assert finding is not None
        assert (finding.confidence == score) is exceeds


def test_a_model_over_enough_devices_fits() -> None:
    log = a_log(settings=(("model_name_or_path", "org/model-70b"),), world_size=8)
    finding = check(a_failure(phase=Phase.LOADING, requested_bytes=MIB), log, None, None, None)
    assert finding is not None
    assert finding.confidence <= GENERIC_CEILING


@pytest.mark.parametrize(("ratio", "score"), [(FULL_RATIO + 0.01, LOADING_FULL_SCORE), (FULL_RATIO - 0.01, 0.6)])
def test_loading_that_fails_on_a_full_device_is_surer(ratio: float, score: float) -> None:
    failure = a_failure(phase=Phase.LOADING, total_bytes=80 * GIB, requested_bytes=0, allocated_bytes=int(ratio * 80 * GIB))
    finding = check(failure, None, None, None, None)
    assert finding is not None
    assert finding.confidence == score


def test_live_memory_beyond_the_device_was_spilled_to_the_host() -> None:
    failure = a_failure(total_bytes=8 * GIB, allocated_bytes=14 * GIB, free_bytes=0, requested_bytes=GIB)
    finding = check(failure, None, None, None, None)
    assert finding is not None
    assert finding.confidence == OVERSUBSCRIBED_SCORE


@pytest.mark.parametrize("phase", [Phase.BACKWARD, Phase.OPTIMIZER_STEP, Phase.CHECKPOINT, Phase.LOSS])
def test_a_job_that_trained_has_loaded_its_weights(phase: Phase) -> None:
    assert check(a_failure(phase=phase), a_log(), None, None, None) is None


@pytest.mark.parametrize(("ratio", "fires"), [(FULL_RATIO + 0.01, True), (FULL_RATIO - 0.01, False)])
def test_a_snapshot_that_weights_fill(ratio: float, fires: bool) -> None:
    ledger = a_ledger(at=Moment.OOM, weights=int(ratio * 80 * GIB))
    assert (check(None, None, ledger, a_record(oom_count=1), None) is not None) is fires


def test_a_snapshot_of_training_is_another_rules_matter() -> None:
    ledger = a_ledger(at=Moment.OOM, weights=70 * GIB, gradients=5 * GIB)
    assert check(None, None, ledger, a_record(oom_count=1), None) is None
