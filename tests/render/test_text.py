import os
from pathlib import Path

import pytest
from a_report import a_diagnosis, a_finding, a_report

from advisor.model.finding import Severity
from advisor.model.report import Report
from advisor.render.markdown import as_markdown
from advisor.render.text import as_text
from advisor.rules.samples import a_breakdown, a_ledger

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("name", "render"), [("full.txt", as_text), ("full.md", as_markdown)])
def test_a_full_report_looks_like_its_golden_file(name, render):
    rendered, golden = render(a_report()), GOLDEN / name
    if os.environ.get("ADVISOR_ACCEPT"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(rendered, "utf-8")
    assert rendered == golden.read_text("utf-8"), "run make accept and read the difference"


def test_the_verdict_is_the_first_line():
    assert as_text(a_report()).startswith("The cause: logits-upcast (MEM203, 90% sure).\n")


def test_a_healthy_run_is_told_that_nothing_is_wrong_and_why():
    text = as_text(a_report(diagnoses=(), unreadable=(), faulted=(), gaps=(), time=a_breakdown(input_wait=0.1)))
    assert text.startswith("Nothing wrong found")
    assert "because the device was busy 90%" in text


def test_a_device_that_idles_is_not_called_healthy():
    assert as_text(a_report(diagnoses=(), time=a_breakdown(launch=0.4))).startswith("No cause found, yet the device was busy only 60.0%")


@pytest.mark.parametrize(("confidence", "start"), [(0.8, "The cause"), (0.79, "Probably"), (0.6, "Not settled")])
def test_the_verdict_is_no_surer_than_its_confidence(confidence, start):
    assert as_text(a_report(diagnoses=(a_diagnosis(confidence=confidence),))).startswith(start)


def test_memory_that_nothing_explains_is_not_called_healthy():
    ledger = a_ledger(unattributed=60 * 2**30, weights=2**30)
    assert as_text(a_report(diagnoses=(), time=None, memory=ledger)).startswith("No verdict on memory")


def test_a_remark_is_not_a_problem():
    remark = a_finding(severity=Severity.INFO)
    report = a_report(diagnoses=(a_diagnosis(finding=remark),), time=None)
    assert as_text(report).startswith("Nothing wrong found")


def test_without_any_evidence_there_is_no_verdict():
    assert as_text(Report(diagnoses=(), read=("x: log",))).startswith("No verdict")


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(len(line) for line in as_text(a_report(), width=width).splitlines()) <= width


def test_colors_are_written_only_when_asked_for():
    assert "\x1b[" in as_text(a_report(), color=True)
    assert "\x1b[" not in as_text(a_report())


@pytest.mark.parametrize("render", [as_text, as_markdown])
def test_a_file_cannot_drive_the_terminal(render):
    hostile = "\x1b]0;owned\x07\x1b[2J\u202eevil [bold]x[/bold]"
    rendered = render(a_report(diagnoses=(a_diagnosis(finding=a_finding(statement=hostile)),), read=(hostile,), gaps=(hostile,)))
    assert not {"\x1b", "\x07", "\u202e"} & set(rendered)


def test_of_a_thousand_inputs_a_dozen_is_listed():
    text = as_text(a_report(read=tuple(f"rank{rank}.log: log" for rank in range(1000))))
    assert text.count("read log from") == 12
    assert "and 988 more inputs" in text


def test_markup_of_an_input_is_text():
    assert "[bold]x[/bold]" in as_text(a_report(read=("[bold]x[/bold]",)))
