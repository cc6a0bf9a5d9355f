"""MEM104: gradients at a peak in forward."""

import pytest

from advisor.model.finding import Severity
from advisor.model.memory import Moment
from advisor.rules.memory.gradients_held import gradients_held
from advisor.rules.samples import GIB, a_ledger, a_log, a_record

check = gradients_held.check
FORWARD = a_record(peak_phase="forward")


@pytest.mark.parametrize(("gradients", "fires"), [(8 * GIB, True), (7 * GIB, False)])
def test_gradients_count_from_a_tenth_of_what_is_live(gradients: int, fires: bool) -> None:
    ledger = a_ledger(weights=78 * GIB - gradients, gradients=gradients)
    assert (check(ledger, FORWARD, None, None) is not None) is fires


def test_a_device_with_room_is_left_alone() -> None:
    assert check(a_ledger(weights=14 * GIB, gradients=14 * GIB), FORWARD, None, None) is None


def test_accumulation_means_to_keep_them() -> None:
    ledger = a_ledger(at=Moment.OOM, weights=60 * GIB, gradients=14 * GIB)
    log = a_log(settings=(("gradient_accumulation_steps", "8"),))
    kept, held = check(ledger, FORWARD, None, log), check(ledger, FORWARD, None, a_log())
    assert kept is not None
    assert held is not None
    assert (kept.severity, held.severity) == (Severity.INFO, Severity.WARNING)
    assert all("set_to_none" not in action.change for action in kept.actions)


@pytest.mark.parametrize("phase", ["backward", "optimizer step", "unknown"])
def test_elsewhere_gradients_must_be(phase: str) -> None:
    ledger = a_ledger(at=Moment.OOM, weights=60 * GIB, gradients=14 * GIB)
    assert check(ledger, a_record(peak_phase=phase), None, None) is None
