import typing

import pytest

from advisor.engine.collecting import HOW
from advisor.engine.measures import MEASURES
from advisor.rules.registry import REGISTRY


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.function)
def test_the_table_says_what_the_analysis_takes_and_makes(measure):
    hints = typing.get_type_hints(measure.load())
    made = hints.pop("return")
    assert measure.makes in str(made)
    taken = []
    for kind in hints.values():
        chosen = [part for part in typing.get_args(kind) if part is not type(None)]
        mark = "*" if typing.get_origin(kind) is tuple else "?"
        taken.append(f"{chosen[0].__name__}{mark}" if chosen else kind.__name__)
    assert tuple(taken) == measure.needs


def test_every_need_of_a_rule_has_words_and_a_way_to_collect_it():
    needed = {kind for entry in REGISTRY for kind in (*entry.required, *entry.optional)}
    assert needed - set(HOW) == set()
