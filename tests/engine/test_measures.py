import typing

import pytest

from advisor.engine.measures import MEASURES


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.function)
def test_the_table_says_what_the_analysis_takes_and_makes(measure):
    hints = typing.get_type_hints(measure.load())
    made = str(hints.pop("return"))
    assert measure.makes.__name__ in made
    kinds = list(hints.values())
    assert len(kinds) == len(measure.needs)
    for place, (kind, need) in enumerate(zip(kinds, measure.needs, strict=True)):
        is_optional = type(None) in typing.get_args(kind)
        assert need is kind or need in typing.get_args(kind)
        assert is_optional == (place >= len(kinds) - measure.optional)
