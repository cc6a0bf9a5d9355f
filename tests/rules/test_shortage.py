"""What a refused request lacked, and who is to blame."""

import pytest

from advisor.model.dataclass import replace
from advisor.model.finding import Finding, Severity
from advisor.model.memory import Moment
from advisor.rules.capacity import CONTEXT_BYTES, OUTSIDE_BYTES, OUTSIDE_RATIO
from advisor.rules.facts import plain_fact
from advisor.rules.memory.activations_dominate import activations_dominate
from advisor.rules.memory.kv_cache_dominates import kv_cache_dominates
from advisor.rules.memory.optimizer_state_dominates import optimizer_state_dominates
from advisor.rules.samples import GIB, MIB, SNAPSHOT, a_failure, a_ledger, a_record
from advisor.rules.shortage import UNKNOWN_CAPACITY_FACTOR, refusal_facts, shortage_of, told_of_refusal

FINDING = Finding(
    statement="A block is the largest.",
    severity=Severity.ERROR,
    confidence=0.9,
    observations=(plain_fact("the block is large", SNAPSHOT),),
)


def a_refused_ledger(*, reserved=8 * GIB, free=256 * MIB, device=80 * GIB, **blocks):
    """The failure of a process that holds `reserved`; what lies outside stands in `unattributed`."""
    blocks = blocks or {"activations": reserved}
    entries = blocks | {"free": free, "unattributed": device - reserved - free}
    return a_ledger(device_bytes=device, at=Moment.OOM, reserved_bytes=reserved, allocated_bytes=reserved, **entries)


def test_what_the_driver_keeps_of_a_maker_s_figure_is_nobody_s():
    ledger = replace(a_refused_ledger(reserved=78 * GIB), kept_bytes=GIB)
    assert shortage_of(ledger, None, a_refusal()).outside == 80 * GIB - 79 * GIB - 256 * MIB
    assert shortage_of(replace(ledger, kept_bytes=3 * GIB), None, a_refusal()).outside == 0


def a_refusal(requested=2 * GIB, free=256 * MIB):
    return a_record(oom_count=1, oom_requested_bytes=requested, oom_free_bytes=free)


def confidence(ledger, record, failure=None):
    return told_of_refusal(FINDING, ledger, failure, record).confidence


def test_a_process_is_to_blame_by_its_share_of_what_is_in_use():
    ledger = a_refused_ledger()
    shortage = shortage_of(ledger, None, a_refusal())
    assert shortage.is_outside
    assert shortage.own_ratio == 8 * GIB / (80 * GIB - 256 * MIB)
    assert confidence(ledger, a_refusal()) == round(0.9 * shortage.own_ratio, 3)


def test_a_process_that_fills_the_device_is_to_blame_alone():
    assert confidence(a_refused_ledger(reserved=78 * GIB), a_refusal()) == 0.9


@pytest.mark.parametrize(("outside", "is_outside"), [(8 * GIB, True), (8 * GIB - 1, False)])
def test_what_lies_outside_counts_from_a_tenth_of_the_device(outside, is_outside):
    free = 256 * MIB
    ledger = a_refused_ledger(reserved=80 * GIB - free - outside)
    assert outside == int(OUTSIDE_RATIO * 80 * GIB) - (not is_outside)
    assert shortage_of(ledger, None, a_refusal()).is_outside is is_outside


@pytest.mark.parametrize(("outside", "is_outside"), [(OUTSIDE_BYTES, True), (OUTSIDE_BYTES - 1, False)])
def test_on_a_small_device_it_must_exceed_a_context(outside, is_outside):
    ledger = a_refused_ledger(reserved=8 * GIB - 100 * MIB - outside, free=100 * MIB, device=8 * GIB)
    assert shortage_of(ledger, None, a_refusal(requested=500 * MIB, free=100 * MIB)).is_outside is is_outside


def test_a_request_that_would_not_have_fitted_without_the_others_is_the_process_s_own_fault():
    ledger = a_refused_ledger(reserved=60 * GIB)
    outside = 80 * GIB - 60 * GIB - 256 * MIB
    most = 256 * MIB + outside - CONTEXT_BYTES
    assert confidence(ledger, a_refusal(requested=most)) < 0.9
    assert confidence(ledger, a_refusal(requested=most + 1)) == 0.9


@pytest.mark.parametrize(
    ("free", "device", "score"),
    [
        (int(2.1 * GIB), 40 * GIB, 0.9),
        (int(2.1 * GIB) + 1, 40 * GIB, 0.45),
        (3 * GIB, 60 * GIB, 0.45),
        (3 * GIB - 1, 60 * GIB, 0.9),
    ],
)
def test_where_clearly_more_was_free_than_was_asked_for_no_block_is_likely(free, device, score):
    ledger = a_refused_ledger(reserved=device - free, free=free, device=device)
    assert confidence(ledger, a_refusal(free=free)) == score
    failure = a_failure(requested_bytes=2 * GIB, free_bytes=free, total_bytes=device)
    assert confidence(a_ledger(activations=8 * GIB), a_record(), failure) == score


def test_what_was_free_counts_without_a_capacity_too():
    ledger = a_ledger(device_bytes=None, at=Moment.OOM, activations=8 * GIB, free=5 * GIB)
    assert confidence(ledger, a_refusal(free=5 * GIB)) < 0.45
    assert confidence(ledger, a_refusal(free=GIB)) > 0.7


def test_the_request_and_what_was_free_are_evidence():
    (fact,) = refusal_facts(a_refused_ledger(), None, a_refusal())
    assert fact.statement == "2 GiB was refused with 256 MiB free on the device and 8 GiB reserved by this process"
    assert fact.value == 2 * GIB
    assert "oom event" in str(fact.source)
    told = told_of_refusal(FINDING, a_refused_ledger(), None, a_refusal())
    assert "lies outside this process's allocator" in told.observations[-1].statement


def test_without_a_capacity_the_request_and_what_was_free_are_evidence_all_the_same():
    ledger = a_ledger(device_bytes=None, at=Moment.OOM, activations=8 * GIB, free=256 * MIB)
    told = told_of_refusal(FINDING, ledger, None, a_refusal())
    assert told.confidence == round(0.9 * UNKNOWN_CAPACITY_FACTOR, 3)
    assert "--device" in told.settles.change
    assert "256 MiB free" in told.observations[-1].statement


def test_without_a_refusal_nothing_is_added():
    assert told_of_refusal(FINDING, a_ledger(activations=8 * GIB), None, a_record()) == FINDING
    assert told_of_refusal(FINDING, a_ledger(activations=8 * GIB), None, None) == FINDING


def test_a_message_beside_a_snapshot_without_an_event_is_heard():
    failure = a_failure(requested_bytes=2 * GIB, free_bytes=256 * MIB, allocated_bytes=8 * GIB, reserved_unallocated_bytes=0)
    ledger = a_ledger(activations=8 * GIB)
    assert confidence(ledger, a_record(), failure) < 0.2
    assert confidence(ledger, a_record(), a_failure(requested_bytes=2 * GIB, device_index=3, free_bytes=0)) == 0.9


@pytest.mark.parametrize(
    ("rule", "block", "needs"),
    [
        (activations_dominate, "activations", (None, None)),
        (kv_cache_dominates, "kv_cache", (None, None)),
        (optimizer_state_dominates, "optimizer_states", (None, None)),
    ],
)
def test_the_largest_block_of_a_small_part_of_the_device_is_hardly_the_cause(rule, block, needs):
    extra = (None,) if rule is optimizer_state_dominates else ()
    small = rule.check(*needs, a_refused_ledger(**{block: 8 * GIB}), a_refusal(), *extra)
    full = rule.check(*needs, a_refused_ledger(reserved=78 * GIB, **{block: 78 * GIB}), a_refusal(), *extra)
    assert small.confidence < 0.15
    assert full.confidence == 0.9
    assert SNAPSHOT in {fact.source for fact in small.observations}
