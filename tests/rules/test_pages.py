"""Every rule is a page with fixed headings, a case that fires and a healthy look-alike."""

import importlib
import pkgutil
import re

import pytest

import advisor.rules
from advisor.engine.advise import advise
from advisor.engine.rule_page import page_of
from advisor.rules.rule import SECTIONS, Rule

FAMILIES = {
    "memory": "MEM",
    "input": "INP",
    "host": "HST",
    "compute": "CMP",
    "communication": "COM",
    "device": "DEV",
    "record": "REC",
}


def rule_modules():
    found = []
    for package in pkgutil.iter_modules(advisor.rules.__path__):
        if package.ispkg:
            name = f"advisor.rules.{package.name}"
            inside = pkgutil.iter_modules(importlib.import_module(name).__path__)
            found.extend(f"{name}.{module.name}" for module in inside)
    return sorted(found)


MODULES = rule_modules()


def short(module):
    return module.removeprefix("advisor.rules.")


def rule_of(module):
    found = [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Rule)]
    assert len(found) == 1, f"{module} defines {len(found)} rules"
    return found[0]


def sections_of(page):
    parts = re.split(r"(?m)^## (.*)$", page)
    return parts[0], dict(zip(parts[1::2], parts[2::2], strict=True)), tuple(parts[1::2])


def test_there_are_rules():
    assert MODULES


def test_codes_and_names_are_never_used_twice():
    rules = [rule_of(module) for module in MODULES]
    assert len({rule.code for rule in rules}) == len(rules)
    assert len({rule.name for rule in rules}) == len(rules)


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_a_rule_stands_in_the_file_of_its_name_in_the_package_of_its_family(module):
    rule = rule_of(module)
    _, _, family, file = module.split(".")
    assert file == rule.name.replace("-", "_")
    assert re.fullmatch(FAMILIES[family] + r"\d{3}", rule.code)


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_a_page_is_one_sentence_and_the_four_sections_in_order(module):
    head, sections, order = sections_of(rule_of(module).page)
    assert order == SECTIONS
    summary = head.strip()
    assert "\n" not in summary
    assert summary.endswith(".")
    assert all(len(text.split()) >= 5 for text in sections.values()), "a section says next to nothing"


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_its_own_case_fires_through_the_engine_and_is_told_with_evidence_and_actions(module):
    rule = rule_of(module)
    report = advise(rule.fires(), (rule,))
    assert report.faulted == ()
    (diagnosis,) = report.diagnoses
    assert diagnosis.code == rule.code
    finding = diagnosis.finding
    assert finding.statement.strip().endswith((".", "!", ")"))
    assert all(fact.source.path for fact in finding.observations)
    assert finding.actions
    assert all(action.title and action.change for action in finding.actions)
    assert all(rule.code not in (ruled.code, *finding.supersedes) for ruled in finding.ruled_out)


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_its_healthy_look_alike_is_checked_and_does_not_fire(module):
    rule = rule_of(module)
    report = advise(rule.clean(), (rule,))
    assert (report.diagnoses, report.faulted) == ((), ())
    assert report.checked_count == 1


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_its_page_can_be_printed_with_its_example(module):
    rule = rule_of(module)
    page = page_of(rule)
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    assert "## Example" in page
