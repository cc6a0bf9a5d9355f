"""MEM401: unused memory that would have sufficed, by its share of the device."""

from dataclasses import replace

import pytest

from advisor.model.evidence import Source
from advisor.model.failure import Failure, Mention
from advisor.model.memory import Moment
from advisor.model.tables import MemorySummary
from advisor.rules.memory.fragmented_reserved_memory import (
    DOUBTFUL_SCORE,
    HIGHEST_SCORE,
    SNAPSHOT_SCORE,
    fragmented_reserved_memory,
)
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = fragmented_reserved_memory.check


def a_refusal(*, idle_bytes: int, requested_bytes: int = 2 * GIB, **fields: object) -> Failure:
    return a_failure(
        requested_bytes=requested_bytes,
        allocated_bytes=78 * GIB - idle_bytes,
        reserved_unallocated_bytes=idle_bytes,
        **({"free_bytes": 400 * MIB} | fields),
    )


@pytest.mark.parametrize(("idle_bytes", "fires"), [(2 * GIB, True), (2 * GIB - 1, False)])
def test_unused_memory_must_suffice_for_the_request(idle_bytes: int, fires: bool) -> None:
    finding = check(a_refusal(idle_bytes=idle_bytes), None, None, None, None)
    assert (finding is not None) is fires


def test_the_share_of_the_device_decides_how_sure_it_is() -> None:
    small = check(
        a_refusal(idle_bytes=200 * MIB, requested_bytes=22 * MIB, free_bytes=11 * MIB),
        None,
        None,
        None,
        None,
    )
    large = check(a_refusal(idle_bytes=12 * GIB), None, None, None, None)
    assert small is not None
    assert large is not None
    assert small.confidence < DOUBTFUL_SCORE < large.confidence == HIGHEST_SCORE
    assert small.impact.recoverable_bytes is None
    assert large.impact.recoverable_bytes == 12 * GIB


def test_gaps_explain_nothing_where_free_memory_would_have_sufficed() -> None:
    assert check(a_refusal(idle_bytes=3 * GIB, free_bytes=2 * GIB), None, None, None, None) is None


def test_windows_oversubscription_is_not_fragmentation() -> None:
    beyond = a_failure(
        requested_bytes=100 * MIB,
        total_bytes=8 * GIB,
        allocated_bytes=14 * GIB,
        reserved_unallocated_bytes=130 * MIB,
    )
    assert check(beyond, None, None, None, None) is None


def test_expandable_segments_that_are_on_already_make_it_doubtful() -> None:
    log = a_log(settings=(("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),))
    finding = check(a_refusal(idle_bytes=12 * GIB), None, None, log, None)
    assert finding is not None
    assert finding.confidence == DOUBTFUL_SCORE
    assert all("expandable" not in action.change for action in finding.actions)


def test_old_versions_are_not_told_of_expandable_segments_first() -> None:
    finding = check(
        replace(a_refusal(idle_bytes=12 * GIB), generation="torch 1.11 reserved"),
        None,
        None,
        None,
        None,
    )
    assert finding is not None
    assert "max_split_size_mb" in finding.actions[0].change


def test_a_free_block_that_fits_the_request_excludes_it() -> None:
    ledger = a_ledger(at=Moment.OOM, weights=50 * GIB, allocated_bytes=50 * GIB, reserved_bytes=70 * GIB)
    small = a_record(oom_requested_bytes=3 * GIB, oom_count=1, largest_free_block_bytes=GIB)
    fitting = a_record(oom_requested_bytes=3 * GIB, oom_count=1, largest_free_block_bytes=4 * GIB)
    finding = check(None, small, ledger, None, None)
    assert finding is not None
    assert finding.confidence == SNAPSHOT_SCORE
    assert check(None, fitting, ledger, None, None) is None


def test_states_that_exceed_the_device_do_not_fit_in_any_order() -> None:
    ledger = a_ledger(
        device_bytes=40 * GIB,
        weights=20 * GIB,
        gradients=20 * GIB,
        optimizer_states=20 * GIB,
        free=0,
    )
    assert check(a_refusal(idle_bytes=12 * GIB), None, ledger, None, None) is None


def test_without_figures_only_the_text_speaks() -> None:
    words = a_failure(total_bytes=None, generation="words only")
    said = Mention(topic="fragmentation", line=4, text="half of the memory is fragmented")
    assert check(words, None, None, a_log(), None) is None
    assert check(words, None, None, a_log(mentions=(said,)), None) is not None


@pytest.mark.parametrize(("ooms", "fires"), [(1, True), (0, False)])
def test_a_summary_shows_it_only_after_a_failure(ooms: int, fires: bool) -> None:
    summary = MemorySummary(
        source=Source(path="log"), device_index=0, ooms=ooms, retries=1, counts={},
        current={"allocated": GIB, "reserved": 12 * GIB}, peak={"allocated": 5 * GIB, "reserved": 12 * GIB},
    )  # fmt: skip
    assert (check(None, None, None, None, summary) is not None) is fires
