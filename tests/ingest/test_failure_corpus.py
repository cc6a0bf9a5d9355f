"""The public reports: every size that a text prints stands in one of its failures, exactly."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from corpus_location import corpus
from failure_messages import failures_of

from advisor.model.failure import Failure, FailureKind

UNIT_BYTES = {
    "bytes": 1,
    **{f"{letter}{i}B": 1024**power for power, letter in enumerate("KMGT", 1) for i in ("", "i")},
}
SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?(bytes|[KMGT]i?B)\b")
EXPECTED_KINDS = {
    "unified-memory-limit": FailureKind.UNIFIED_MEMORY_LIMIT,
    "library-allocation-failed": FailureKind.LIBRARY_ALLOCATION_FAILED,
    "shared-memory-exhausted": FailureKind.SHARED_MEMORY_EXHAUSTED,
    "framework-preallocation": FailureKind.XLA_RESOURCE_EXHAUSTED,
    "non-pytorch-memory": FailureKind.COLLECTIVE_ALLOCATION_FAILED,
}


def reports(name: str) -> list[dict[str, Any]]:
    path = corpus() / "reports" / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def figures(failure: Failure) -> set[int]:
    own = {getattr(failure, name) for name in Failure.__dataclass_fields__ if name.endswith("_bytes")}
    return {size for size in own | {process.used_bytes for process in failure.other_processes} if size is not None}


def test_every_printed_size_is_a_figure_to_the_byte() -> None:
    seen = 0
    for report in reports("oom.jsonl"):
        told = set().union(*(figures(failure) for failure in failures_of(report["error_text"])))
        for number, unit in SIZE.findall(report["error_text"]):
            seen += 1
            assert round(Decimal(number) * UNIT_BYTES[unit]) in told, (report["id"], number, unit)
    assert seen > 100


def test_every_text_that_speaks_of_memory_is_one_failure() -> None:
    for report in reports("oom.jsonl"):
        text = report["error_text"]
        if re.search(r"(?i)memory|oom|alloc|nccl", text):
            assert len(failures_of(text)) == 1, report["id"]
        if not text:
            assert failures_of(text) == []


def test_kinds_are_those_of_the_settled_causes() -> None:
    for report in reports("oom.jsonl"):
        expected = {EXPECTED_KINDS[name] for name in report["expected"] if name in EXPECTED_KINDS}
        if report["error_text"] and expected:
            assert failures_of(report["error_text"])[0].kind in expected, report["id"]


@pytest.mark.parametrize("name", ["oom.jsonl", "slow.jsonl"])
def test_a_report_that_is_cut_anywhere_is_still_read(name: str) -> None:
    for report in reports(name):
        text = report["error_text"]
        for end in range(0, len(text), 23):
            failures_of(text[:end])


def test_slow_reports_tell_no_lack_of_memory() -> None:
    for report in reports("slow.jsonl"):
        for failure in failures_of(report["error_text"]):
            assert failure.kind is FailureKind.NOT_OUT_OF_MEMORY, report["id"]
