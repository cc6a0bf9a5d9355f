"""The demo is right or says that it is wrong: its exit code does not hang on the report being there."""

import argparse

import pytest
from a_report import a_diagnosis, a_report
from run_cli import run_cli

from advisor.cli import demo, exit_codes
from advisor.model.report import FaultedRule, Report


def verdict_on(report, *, is_healthy=False):
    return demo._why_wrong(report, is_healthy=is_healthy)


def test_the_planted_fault_must_stand_first():
    assert verdict_on(a_report(diagnoses=(a_diagnosis(code="INP102"),), faulted=())) == ""
    assert "MEM203 first" in verdict_on(a_report(diagnoses=(a_diagnosis(code="MEM203"), a_diagnosis(code="INP102")), faulted=()))
    assert "nothing first" in verdict_on(Report(diagnoses=()))


def test_a_healthy_run_must_have_no_problem():
    assert verdict_on(Report(diagnoses=()), is_healthy=True) == ""
    assert "names INP101" in verdict_on(a_report(diagnoses=(a_diagnosis(code="INP101"),), faulted=()), is_healthy=True)


def test_a_rule_that_crashed_is_a_fault_of_the_demo():
    crashed = (FaultedRule(code="CMP101", because="ZeroDivisionError"),)
    assert "CMP101 crashed" in verdict_on(a_report(diagnoses=(a_diagnosis(code="INP101"),), faulted=crashed))


def test_without_torch_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda _: None)
    answer = run_cli("demo")
    assert answer.code == exit_codes.UNREADABLE
    assert "pip install torch" in answer.err


@pytest.mark.parametrize("options", [[], ["--healthy"]], ids=["planted", "healthy"])
def test_the_training_is_diagnosed_as_planted(options, capsys):
    pytest.importorskip("torch", reason="the demo trains with torch")
    arguments = argparse.Namespace(out=None, healthy=bool(options), format="json")
    assert demo.run(arguments) == exit_codes.NOTHING_FOUND, capsys.readouterr()
