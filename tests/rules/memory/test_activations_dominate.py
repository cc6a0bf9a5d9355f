"""MEM201 speaks of activations where they decide, and as a candidate where the text is silent."""

import pytest

from advisor.model.failure import FailureKind, Mention, Phase
from advisor.model.finding import Severity
from advisor.model.memory import Moment
from advisor.rules.blocks import LARGEST_SHARE, NEAR_CAPACITY_RATIO
from advisor.rules.capacity import GENERIC_CEILING
from advisor.rules.memory.activations_dominate import activations_dominate
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = activations_dominate.check


@pytest.mark.parametrize("phase", list(Phase))
def test_a_message_that_only_says_full_is_never_more_than_a_candidate(phase: Phase) -> None:
    failure = a_failure(phase=phase, requested_bytes=74 * MIB, allocated_bytes=78 * GIB, free_bytes=10 * MIB)
    finding = check(failure, a_log(), None, None)
    if finding is not None:
        assert finding.confidence <= GENERIC_CEILING
        assert finding.settles is not None


def test_a_failure_in_loading_keeps_no_activations() -> None:
    assert check(a_failure(phase=Phase.LOADING), a_log(), None, None) is None


def test_figures_that_show_fragmentation_halve_the_candidate() -> None:
    fields = {"requested_bytes": 10 * GIB, "free_bytes": 2 * GIB}
    full = a_failure(allocated_bytes=76 * GIB, reserved_unallocated_bytes=GIB, **fields)
    fragmented = a_failure(allocated_bytes=66 * GIB, reserved_unallocated_bytes=11 * GIB, **fields)
    before, after = check(full, None, None, None), check(fragmented, None, None, None)
    assert before is not None
    assert after is not None
    assert after.confidence == pytest.approx(before.confidence / 2)
    assert "MEM401" in {ruled.code for ruled in before.ruled_out}
    assert "MEM401" not in {ruled.code for ruled in after.ruled_out}


def test_text_that_says_checkpointing_was_removed_is_more_than_a_candidate() -> None:
    said = Mention(topic="gradient-checkpointing", line=3, text="oom when removing gradient_checkpointing")
    finding = check(a_failure(generation="words only"), a_log(mentions=(said,)), None, None)
    assert finding is not None
    assert finding.confidence > GENERIC_CEILING


def test_other_kinds_of_failure_are_not_its_business() -> None:
    assert check(a_failure(kind=FailureKind.HOST_OUT_OF_MEMORY), a_log(), None, None) is None
    assert check(None, a_log(), None, None) is None


@pytest.mark.parametrize(("share", "fires"), [(LARGEST_SHARE + 0.01, True), (LARGEST_SHARE - 0.01, False)])
def test_the_largest_block_must_be_a_good_part_of_what_is_live(share: float, fires: bool) -> None:
    size = int(share * 70 * GIB)
    rest = (70 * GIB - size) // 3
    ledger = a_ledger(
        at=Moment.OOM, activations=size, weights=rest, gradients=rest, optimizer_states=rest, inputs=70 * GIB - size - 3 * rest
    )
    assert (check(None, None, ledger, a_record()) is not None) is fires


@pytest.mark.parametrize(("ratio", "severity"), [(0.001, Severity.WARNING), (-0.01, None)])
def test_a_peak_matters_from_near_capacity_on(ratio: float, severity: Severity | None) -> None:
    ledger = a_ledger(activations=int((NEAR_CAPACITY_RATIO + ratio) * 80 * GIB))
    finding = check(None, None, ledger, a_record())
    assert (finding.severity if finding else None) is severity


def test_halving_the_micro_batch_is_predicted_by_subtraction() -> None:
    ledger = a_ledger(at=Moment.OOM, weights=30 * GIB, activations=48 * GIB)
    finding = check(None, None, ledger, a_record(oom_count=1, oom_requested_bytes=4 * GIB))
    assert finding is not None
    predicted = finding.actions[1].predicted
    assert predicted.peak_bytes == 54 * GIB
    assert predicted.fits is True


def test_without_the_devices_size_it_only_informs() -> None:
    finding = check(None, None, a_ledger(device_bytes=None, activations=3 * GIB, weights=GIB), None)
    assert finding is not None
    assert finding.severity is Severity.INFO
