from __future__ import annotations

from advisor.engine.advise import advise
from advisor.model.case import Case
from advisor.model.evidence import Source
from advisor.model.failure import Failure, LogText
from advisor.model.finding import Finding, Observation, Severity
from advisor.rules.rule import rule
from advisor.rules.samples import a_case, a_failure, a_log

LOG = Source(path="train.log")


def a_finding(**fields):
    base = {
        "statement": "it failed",
        "severity": Severity.ERROR,
        "confidence": 0.5,
        "observations": (Observation(statement="seen", source=LOG),),
    }
    return Finding(**(base | fields))


@rule("MEM101", "always")
def always(failure: Failure) -> Finding | None:
    return a_finding()


@rule("MEM102", "crashes")
def crashes(failure: Failure) -> Finding | None:
    raise ZeroDivisionError("no steps")


@rule("MEM103", "optional-need")
def optional_need(failure: Failure | None, log: LogText | None) -> Finding | None:
    return a_finding() if failure is None else None


@rule("MEM105", "all-of-a-kind")
def all_of_a_kind(failures: tuple[Failure, ...]) -> Finding | None:
    return a_finding(statement=f"{len(failures)} failures")


def test_a_rule_without_its_evidence_is_a_reported_skip_that_says_what_to_collect():
    report = advise(Case(), (always,))
    assert report.diagnoses == ()
    assert [skip.code for skip in report.skipped] == ["MEM101"]
    assert report.skipped[0].needs == ("a failure message",)
    assert "log" in report.skipped[0].collect_with


def test_a_crash_in_a_rule_is_reported_and_the_others_go_on():
    report = advise(a_case(a_failure()), (always, crashes))
    assert [item.code for item in report.diagnoses] == ["MEM101"]
    assert [(fault.code, fault.because) for fault in report.faulted] == [("MEM102", "ZeroDivisionError: no steps")]


def test_an_optional_need_does_not_stop_a_rule_but_all_missing_does():
    assert [item.code for item in advise(a_case(a_log()), (optional_need,)).diagnoses] == ["MEM103"]
    assert [skip.code for skip in advise(Case(), (optional_need,)).skipped] == ["MEM103"]


def test_a_rule_may_take_all_evidence_of_a_kind():
    report = advise(a_case(a_failure(), a_failure(line=130)), (all_of_a_kind,))
    assert report.diagnoses[0].finding.statement == "2 failures"


def test_what_several_ranks_show_is_one_diagnosis_that_names_them():
    report = advise(a_case(a_failure(rank=3), a_failure(rank=0)), (always,))
    assert len(report.diagnoses) == 1
    assert report.diagnoses[0].job_ranks == (0, 3)
    assert "ranks 0, 3" in report.diagnoses[0].finding.observations[-1].statement


def test_several_files_that_name_no_rank_are_looked_at_one_by_one():
    one, other = a_failure(source=Source(path="a.log")), a_failure(source=Source(path="b.log"))
    report = advise(a_case(one, other), (all_of_a_kind,))
    assert report.diagnoses[0].finding.statement == "1 failures"
