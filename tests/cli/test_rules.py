import pytest

from advisor.cli.rules import listing
from advisor.rules.registry import all_rules


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(len(line) for line in listing(width).splitlines()) <= width


@pytest.mark.parametrize("width", [40, 100])
def test_every_rule_begins_a_line_and_keeps_its_whole_summary(width):
    text = listing(width)
    words = " ".join(text.split())
    for rule in all_rules():
        assert f"\n{rule.code} " in f"\n{text}"
        assert " ".join(rule.summary.split()) in words
