"""A snapshot of a refused request with what else a case tells: the report as a whole."""

import pytest
from ingest.a_snapshot import FORWARD, MIB, MOVE, Allocator, read

from advisor.engine.advise import advise
from advisor.hardware.catalogue import require
from advisor.model.case import Case
from advisor.render.contract import as_contract
from advisor.rules.samples import GIB, a_failure


def a_snapshot(live=8 * GIB, requested=2 * GIB, free=256 * MIB):
    """Device 1: an eighth weights, the rest activations, and a refused request."""
    allocator = Allocator(device=1)
    allocator.alloc(live // 8, MOVE)
    for _ in range(7):
        allocator.alloc(live // 8, FORWARD[:1] + FORWARD)
    allocator.fail(requested, free)
    return read(allocator.raw())


def codes(report):
    return [diagnosis.code for diagnosis in report.diagnoses]


def test_a_process_with_a_tenth_of_the_device_is_not_told_that_its_activations_are_the_cause():
    report = advise(Case(evidence=(a_snapshot(), require("H100-SXM"))))
    assert codes(report)[0] == "MEM601"
    confidence = {diagnosis.code: diagnosis.confidence for diagnosis in report.diagnoses}
    assert confidence["MEM601"] > 0.8
    assert confidence["MEM201"] < 0.1
    memory = as_contract(report)["memory"]
    assert memory["device_bytes"] == 80 * GIB
    assert memory["ledger"]["free"] == 256 * MIB
    assert sum(size for size in memory["ledger"].values() if size is not None) == 80 * GIB


def test_a_process_that_fills_the_device_is():
    report = advise(Case(evidence=(a_snapshot(live=78 * GIB), require("H100-SXM"))))
    assert codes(report)[0] == "MEM201"
    assert "MEM601" not in codes(report)
    assert any("256 MiB free" in fact.statement for fact in report.diagnoses[0].finding.observations)


def test_the_log_of_the_same_failure_names_who_holds_the_rest():
    failure = a_failure(
        device_index=1,
        requested_bytes=2 * GIB,
        free_bytes=256 * MIB,
        allocated_bytes=8 * GIB,
        reserved_unallocated_bytes=0,
        process_bytes=9 * GIB,
    )
    report = advise(Case(evidence=(a_snapshot(), failure)))
    assert codes(report)[0] == "MEM601"
    assert report.memory is not None
    assert report.memory.device_bytes == failure.total_bytes
    assert report.memory.entries["non_pytorch"] == GIB
    assert report.memory.entry("other_processes") == failure.total_bytes - 9 * GIB - 256 * MIB


@pytest.mark.parametrize(("free", "first"), [(5 * GIB, "MEM708"), (256 * MIB, "MEM601")])
def test_a_request_that_fits_what_was_free_is_no_question_of_capacity(free, first):
    report = advise(Case(evidence=(a_snapshot(free=free), require("H100-SXM"))))
    assert codes(report)[0] == first
