"""The error texts of the corpus: first places where the text carries the cause, and no certainty where it does not."""

import pytest
from corpus_location import corpus
from labelled_cases import reports

from advisor.engine.advise import advise
from advisor.model.finding import Severity

LEAST_FIRST = 0.85
LEAST_AMONG_THREE = 0.95
SUREST_CANDIDATE = 0.6

NOT_IN_THE_TEXT = {
    "oom-001": "three words; that validation kept its graph is told in the description",
    "oom-003": "an address in THCStorage; the missing no_grad is told in the description",
    "oom-005": "one line without figures; the same",
    "oom-098": "the text blames shared memory; that it is not is told in the description",
    "oom-120": "that some samples are far longer is told in the description",
    "oom-130": "cut before the traceback that shows the save",
    "oom-156": "names a model and a card; the attention is in a traceback that was not printed",
    "oom-161": "counts machines; the rollout engine is told in the description",
    "oom-172": "one line without figures, many users' causes",
    "oom-173": "figures of a full card; the optimizer is told in the description",
    "oom-179": "the same",
}
"""Reports whose printed text alone cannot tell the settled cause from others, each with what is missing."""


def problems(labelled):
    return [item for item in advise(labelled.case).diagnoses if item.finding.severity > Severity.INFO]


def place_of(labelled):
    names = [item.name for item in problems(labelled)]
    return next((names.index(name) + 1 for name in names if name in labelled.expected), 0)


@pytest.mark.parametrize("file", ["oom.jsonl", "slow.jsonl"])
@pytest.mark.parametrize("with_context", [False, True])
def test_no_report_makes_a_rule_crash(file, with_context):
    for labelled in reports(corpus(), file, with_context=with_context):
        assert advise(labelled.case).faulted == (), labelled.name


def test_a_cause_that_the_text_carries_stands_first():
    carrying = [
        labelled
        for labelled in reports(corpus(), "oom.jsonl", with_context=False)
        if labelled.expected and labelled.name not in NOT_IN_THE_TEXT
    ]
    places = {labelled.name: place_of(labelled) for labelled in carrying}
    first = sum(place == 1 for place in places.values()) / len(places)
    among_three = sum(1 <= place <= 3 for place in places.values()) / len(places)
    assert first >= LEAST_FIRST, {name: place for name, place in places.items() if place != 1}
    assert among_three >= LEAST_AMONG_THREE, {name: place for name, place in places.items() if not 1 <= place <= 3}


def test_without_the_cause_in_the_text_candidates_are_listed_and_none_is_sure():
    for labelled in reports(corpus(), "oom.jsonl", with_context=False):
        if labelled.name not in NOT_IN_THE_TEXT or labelled.name == "oom-098":
            continue
        candidates = problems(labelled)
        assert candidates, labelled.name
        assert max(item.confidence for item in candidates) <= SUREST_CANDIDATE, labelled.name
        assert any(item.finding.settles for item in candidates), labelled.name


def test_confidence_is_a_frequency():
    sure = []
    for file in ("oom.jsonl", "slow.jsonl"):
        for labelled in reports(corpus(), file, with_context=False):
            if labelled.expected:
                sure.extend(item.name in labelled.expected for item in problems(labelled) if item.confidence >= 0.85)
    assert len(sure) >= 20
    assert sum(sure) / len(sure) >= 0.85
