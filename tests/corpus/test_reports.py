"""The error texts of the corpus: figures, first places, and no certainty where the text carries no cause."""

import pytest
from corpus_location import corpus
from labelled_cases import reports

from advisor.engine.advise import advise
from advisor.model.finding import Severity


def places(file, *, with_context):
    """Report id → the place of the first expected diagnosis (0: none), of settled reports."""
    found = {}
    for labelled in reports(corpus(), file, with_context=with_context):
        names = [item.name for item in advise(labelled.case).diagnoses if item.finding.severity > Severity.INFO]
        if labelled.expected:
            found[labelled.name] = next((names.index(name) + 1 for name in names if name in labelled.expected), 0)
    return found


@pytest.mark.parametrize("file", ["oom.jsonl", "slow.jsonl"])
@pytest.mark.parametrize("with_context", [False, True])
def test_no_report_makes_a_rule_crash(file, with_context):
    for labelled in reports(corpus(), file, with_context=with_context):
        assert advise(labelled.case).faulted == (), labelled.name
