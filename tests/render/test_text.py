import os
from pathlib import Path

import pytest
from a_report import a_diagnosis, a_finding, a_report

from advisor.model.dataclass import replace
from advisor.model.finding import Severity
from advisor.model.report import Report, SkippedRule
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
    text = as_text(a_report(diagnoses=(), faulted=(), time=a_breakdown(launch=0.4)))
    assert text.startswith("No cause found, yet the device was busy only 60.0%")


@pytest.mark.parametrize(("confidence", "start"), [(0.8, "The cause"), (0.79, "Probably"), (0.6, "Not settled")])
def test_the_verdict_is_no_surer_than_its_confidence(confidence, start):
    assert as_text(a_report(diagnoses=(a_diagnosis(confidence=confidence),))).startswith(start)


def test_memory_that_nothing_explains_is_not_called_healthy():
    ledger = a_ledger(unattributed=60 * 2**30, weights=2**30)
    assert as_text(a_report(diagnoses=(), faulted=(), time=None, memory=ledger)).startswith("No verdict on memory")


def test_a_remark_is_not_a_problem():
    remark = a_finding(severity=Severity.INFO)
    report = a_report(diagnoses=(a_diagnosis(finding=remark),), faulted=(), time=None)
    assert as_text(report).startswith("No fault found, 1 remark: ")


def test_the_verdict_counts_the_remarks_that_make_the_exit_code_one():
    remark = a_diagnosis(finding=a_finding(severity=Severity.INFO))
    two = (remark, replace(remark, rank=2))
    assert as_text(a_report(diagnoses=two, faulted=(), time=None)).startswith("No fault found, 2 remarks: ")
    idle = as_text(a_report(diagnoses=two, faulted=(), time=a_breakdown(launch=0.4)))
    assert " ".join(idle.split()).startswith("No cause found, yet the device was busy only 60.0% of 1 s. 2 remarks below.")


def lacking(count, kind, hint, *, also=()):
    return tuple(
        SkippedRule(code=f"{kind[:3].upper()}{number}", needs=(f"a {kind}", *also), collect_with=f"how to get {kind}", kind=kind, hint=hint)
        for number in range(count)
    )


def test_what_was_not_checked_takes_a_line_for_each_kind_of_missing_evidence():
    skipped = (
        *lacking(3, "trace", "profile it"),
        *lacking(7, "program's error", "save it"),
        *lacking(2, "snapshot", "dump it", also=("a trace",)),
    )
    text = as_text(a_report(skipped=skipped, faulted=(), gaps=(), unreadable=()))
    block = text[text.index("Not checked") :].splitlines()
    assert block == [
        "Not checked: 12 rules lacked evidence",
        "  7 with program's error: save it",
        "  3 with trace: profile it",
        "  2 with several of these; --format json lists them all",
    ]


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


def test_a_crash_of_a_rule_is_not_called_health():
    text = as_text(a_report(diagnoses=(), time=a_breakdown(input_wait=0.1)))
    assert text.startswith("No verdict: CMP101 crashed, a fault of the advisor")


def test_a_failure_without_a_known_cause_is_not_called_health():
    report = a_report(diagnoses=(), faulted=(), failures=("unbalanced memory (sglang.log: line 3)",), time=None)
    assert as_text(report).startswith("A failure was read, and no rule knows its cause: unbalanced memory")


def test_a_processor_whose_time_is_not_explained_is_not_called_healthy():
    report = a_report(diagnoses=(), faulted=(), time=a_breakdown(device_index=None, other_idle=0.63, busy_ratio=None))
    assert "63% of 1 s is not explained" in as_text(report).splitlines()[0]
