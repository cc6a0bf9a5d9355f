import json
from pathlib import Path

import jsonschema
import pytest
from a_report import a_diagnosis, a_finding, a_report

from advisor.model.evidence import Source
from advisor.model.finding import Observation
from advisor.model.report import Report
from advisor.render.contract import as_contract, as_json

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("report", [a_report(), Report(diagnoses=())], ids=["full", "empty"])
def test_a_report_is_valid_against_the_contract(report):
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(as_json(report)))


def test_what_would_settle_a_diagnosis_is_its_last_action():
    actions = as_contract(a_report())["diagnoses"][0]["actions"]
    assert [action["verified_by"] for action in actions] == ["ARITHMETIC", "NONE"]
    assert actions[-1]["title"] == "Save a snapshot at the failure"


def test_bytes_are_whole_numbers_and_what_is_not_finite_is_unknown():
    seen = tuple(
        Observation(statement="seen", value=value, unit="bytes", source=Source(path="log")) for value in (4202692608.0, float("nan"))
    )
    report = a_report(diagnoses=(a_diagnosis(finding=a_finding(observations=seen)),))
    assert [item["value"] for item in as_contract(report)["diagnoses"][0]["evidence"]] == [4202692608, None]
    assert "4202692608," in as_json(report)


def test_any_text_of_an_input_survives_as_ascii():
    report = a_report(read=(), gaps=(), diagnoses=(a_diagnosis(finding=a_finding(statement="caf\u00e9 \ud800 \x1b[31m")),))
    assert as_json(report).isascii()
    assert json.loads(as_json(report))["diagnoses"][0]["statement"] == "caf\u00e9 \ud800 \x1b[31m"
