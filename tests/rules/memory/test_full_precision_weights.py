"""MEM105 counts bytes a parameter."""

import pytest

from advisor.analysis.transformer_parameters import parameter_count
from advisor.model.failure import Phase
from advisor.model.memory import Moment
from advisor.model.transformer import TransformerShape
from advisor.rules.memory.full_precision_weights import (
    BEYOND_HALF_RATIO,
    LEAST_BYTES_PER_PARAMETER,
    clean,
    full_precision_weights,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_log

check = full_precision_weights.check
LOG = a_log(settings=(("model_name_or_path", "org/model-7b"),))


@pytest.mark.parametrize(("ratio", "fires"), [(BEYOND_HALF_RATIO + 0.01, True), (BEYOND_HALF_RATIO - 0.01, False)])
def test_loading_beyond_what_bf16_takes_is_fp32(ratio: float, fires: bool) -> None:
    failure = a_failure(phase=Phase.LOADING, total_bytes=24 * GIB, requested_bytes=0, allocated_bytes=int(ratio * 14e9))
    assert (check(failure, LOG, None, None, None) is not None) is fires


def test_after_loading_other_things_are_live_too() -> None:
    failure = a_failure(phase=Phase.FORWARD, total_bytes=24 * GIB, allocated_bytes=23 * GIB)
    assert check(failure, LOG, None, None, None) is None


@pytest.mark.parametrize(("offset", "fires"), [(0.05, True), (-0.05, False)])
def test_the_weights_block_is_divided_by_the_parameters(offset: float, fires: bool) -> None:
    shape = clean().first(TransformerShape)
    assert shape is not None
    weights = int((LEAST_BYTES_PER_PARAMETER + offset) * parameter_count(shape))
    ledger = a_ledger(device_bytes=32 * GIB, at=Moment.OOM, weights=weights)
    assert (check(None, None, ledger, None, shape) is not None) is fires
