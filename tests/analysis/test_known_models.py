import pytest

from advisor.analysis import known_models
from advisor.analysis.known_models import (
    known_model,
    known_model_names,
    published_parameter_count,
    well_known_vocabulary_sizes,
)
from advisor.analysis.transformer_parameters import parameter_count


@pytest.mark.parametrize("name", known_model_names())
def test_the_shape_gives_the_published_number_of_parameters(name):
    assert parameter_count(known_model(name)) == published_parameter_count(name)


def test_hub_names_find_the_same_shape_whatever_their_case():
    assert known_model("meta-llama/meta-llama-3-8b-INSTRUCT") == known_model("llama-3-8b")


def test_a_name_that_is_not_in_the_table_finds_nothing():
    assert known_model("llama-3-8") is None
    assert known_model("llama") is None


def test_no_hub_name_stands_for_two_models():
    names = [name.lower() for key, entry in known_models._entries().items() for name in (key, *entry["hub_names"])]
    assert len(names) == len(set(names))


def test_vocabularies_are_ascending():
    sizes = well_known_vocabulary_sizes()
    assert list(sizes) == sorted(set(sizes))
    assert 128256 in sizes
