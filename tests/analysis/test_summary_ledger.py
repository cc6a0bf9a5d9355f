"""A ledger from the allocator's counters."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.summary_ledger import summary_ledger
from advisor.model.evidence import Source
from advisor.model.memory import BLOCKS, Basis, Moment
from advisor.model.tables import MemorySummary
from advisor.rules.samples import GIB, MIB, a_failure


def a_summary(**fields):
    """Counters of 10 GiB reserved, 8 active (a half awaiting another stream), 6 requested."""
    counters = {"allocated": 7 * GIB, "active": 8 * GIB, "reserved": 10 * GIB, "requested": 6 * GIB, "inactive_split": GIB}
    base = {"source": Source(path="stats.json"), "device_index": 0, "current": counters, "peak": counters, "counts": {}}
    return MemorySummary(**(base | fields))


def the_ledger(summary, failures=()):
    return summary_ledger(summary, failures, None, None, ())


def held(ledger):
    return sum(size for size in ledger.entries.values() if size is not None)


def test_counters_tell_live_cached_and_rounding():
    ledger = the_ledger(a_summary())
    assert (ledger.at, ledger.basis) == (Moment.DUMP, Basis.TEXT)
    assert tuple(ledger.entries) == BLOCKS
    assert ledger.entries["allocator_cached"] == 2 * GIB
    assert ledger.entries["allocator_rounding"] == 2 * GIB
    assert ledger.entries["unattributed"] == 6 * GIB
    assert ledger.entries["weights"] is None
    assert held(ledger) == ledger.reserved_bytes == 10 * GIB
    assert ledger.allocated_bytes == 7 * GIB
    assert any("waits for another stream" in note for note in ledger.notes)
    assert any("split segments" in note for note in ledger.notes)


def test_without_requested_memory_rounding_is_unknown():
    ledger = the_ledger(a_summary(current={"allocated": 7 * GIB, "reserved": 10 * GIB}))
    assert ledger.entries["allocator_rounding"] is None
    assert ledger.entries["allocator_cached"] == 3 * GIB
    assert ledger.entries["unattributed"] == 7 * GIB


def test_a_table_that_is_cut_before_reserved_memory_tells_what_is_live():
    ledger = the_ledger(a_summary(current={"allocated": 7 * GIB}))
    assert ledger.entries["allocator_cached"] is None
    assert ledger.reserved_bytes is None
    assert held(ledger) == 7 * GIB


def test_reserved_memory_alone_is_not_attributed():
    ledger = the_ledger(a_summary(current={"reserved": 10 * GIB}))
    assert held(ledger) == ledger.entries["unattributed"] == 10 * GIB
    assert ledger.entries["allocator_cached"] is None


def test_counters_of_neither_make_no_ledger():
    assert the_ledger(a_summary(current={"inactive_split": GIB})) is None
    assert the_ledger(a_summary(current={})) is None


def test_live_memory_may_exceed_reserved_memory_by_a_printed_unit_and_not_by_more():
    def active(size):
        return the_ledger(a_summary(current={"active": size, "reserved": 10 * MIB}, resolution_bytes=MIB // 2))

    assert active(11 * MIB).entries["allocator_cached"] == 0
    assert held(active(11 * MIB)) == 10 * MIB
    contradicted = active(11 * MIB + 1)
    assert contradicted.reserved_bytes is None
    assert any("contradict" in gap for gap in contradicted.gaps)


def test_the_capacity_of_a_message_of_the_same_device_closes_it():
    ledger = the_ledger(a_summary(), (a_failure(total_bytes=24 * GIB),))
    assert ledger.device_bytes == held(ledger) == 24 * GIB
    assert ledger.unsplit_bytes == 14 * GIB
    assert ledger.entries["free"] is None
    assert the_ledger(a_summary(), (a_failure(device_index=3),)).device_bytes is None


COUNTERS = st.dictionaries(st.sampled_from(["allocated", "active", "reserved", "requested", "inactive_split"]), st.integers(0, 2**45))


@given(COUNTERS, st.sampled_from([0, MIB // 2, GIB // 2]))
def test_entries_are_never_negative_and_sum_to_what_is_known(counters, resolution):
    ledger = the_ledger(a_summary(current=counters, resolution_bytes=resolution))
    if ledger is None:
        assert "reserved" not in counters
        return
    assert all(size is None or size >= 0 for size in ledger.entries.values())
    live = counters.get("active", counters.get("allocated"))
    assert held(ledger) == (ledger.reserved_bytes if ledger.reserved_bytes is not None else live)
