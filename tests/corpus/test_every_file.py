"""Every file of the corpus: a report or a named reason, valid against the contract, and nothing overclaimed."""

import json
from pathlib import Path

import jsonschema
import pytest
from corpus_location import corpus
from run_cli import run_cli

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

FOLDERS = ("traces", "snapshots", "tables", "node")

DEGENERATE = (
    "after_fix_trace",
    "before_fix_trace",
    "backward_thread",
    "cuda_event_sync",
    "distributed_info_not_found",
    "simple_add",
    "large_integer",
    "rank_non_gpu",
    "rank_not_found",
    "trace_compare",
    "inference_rank_1",
    "triton_example",
    "minitoy",
    "dump_snapshot.pickle",
    "normalization_layer_test",
)
"""Parts of names of files whose only content is degenerate: unit-test fixtures of a handful of kernels."""


def files():
    try:
        folder = corpus()
    except pytest.skip.Exception as missing:
        return [pytest.param(None, marks=pytest.mark.skip(reason=str(missing)))]
    return [pytest.param(path, id=path.name) for name in FOLDERS for path in sorted((folder / name).rglob("*")) if path.is_file()]


@pytest.mark.parametrize("path", files())
def test_a_file_gives_a_report_or_a_named_reason(path):
    finished = run_cli("diagnose", "--format", "json", path)
    report = json.loads(finished.out)
    VALIDATOR.validate(report)
    assert report["faulted_rules"] == []
    if finished.code == 2:
        assert len(report["unreadable"]) == 1
        assert len(finished.err.strip().splitlines()) == 1
    else:
        assert report["unreadable"] == []
        assert finished.code == (1 if report["diagnoses"] else 0)
    if report["time"] and report["time"]["busy_ratio"] is not None:
        parts = report["time"]["breakdown"].values()
        assert abs(sum(parts) - 1) < 1e-6
        assert all(part >= 0 for part in parts)
    if any(name in path.name for name in DEGENERATE):
        assert [item["code"] for item in report["diagnoses"] if item["confidence"] > 0.5] == []


@pytest.mark.parametrize("path", files())
def test_a_report_is_readable_at_80_columns_without_color(path):
    finished = run_cli("diagnose", path)
    assert "\x1b" not in finished.out
    assert [line for line in finished.out.splitlines() if len(line) > 80] == []
