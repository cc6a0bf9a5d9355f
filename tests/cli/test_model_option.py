import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.known_models import known_model
from advisor.cli.model_option import beyond_context, model_of, shape_of
from advisor.model.errors import AdvisorError, UnreadableInput, WrongUsage

NUMBERS = "layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256"
CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def test_a_name_a_file_a_folder_and_numbers_are_the_same_model(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    counts = {model_of(text).parameter_count for text in ("llama-3-8b", str(path), str(tmp_path), NUMBERS)}
    assert counts == {8_030_261_248}


def test_numbers_can_describe_a_mixture():
    model = model_of(f"{NUMBERS},experts=8,active=2,tied=1")
    assert model.active_parameter_count < model.parameter_count
    assert model.shape.embeddings_are_tied


@pytest.mark.parametrize(
    ("text", "count"),
    [("70B", 70 * 10**9), ("0.5b", 5 * 10**8), ("124M", 124 * 10**6), ("1T", 10**12)],
)
def test_a_size_is_a_number_of_parameters(text, count):
    model = model_of(text)
    assert model.parameter_count == count
    assert model.shape is None


@pytest.mark.parametrize(
    "text",
    [
        "llama-3-9b",
        "nothing",
        "0B",
        "layers=32",
        f"{NUMBERS},color=1",
        NUMBERS.replace("32", "0"),
        NUMBERS.replace("4096", "9" * 40),
        NUMBERS.replace("4096", "-4"),
        f"{NUMBERS},experts=2,active=3",
        "",
        "a\x00b",
    ],
)
def test_what_names_no_model_is_one_error_with_a_remedy(text):
    with pytest.raises(WrongUsage) as caught:
        model_of(text)
    assert caught.value.remedy


def test_near_names_are_offered():
    with pytest.raises(WrongUsage, match="llama-3-8b"):
        model_of("llama3-8b")


def test_a_size_is_no_shape():
    with pytest.raises(WrongUsage, match="no layers"):
        shape_of("70B")


def test_a_file_that_is_no_configuration_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{}")
    with pytest.raises(UnreadableInput, match="unknown architecture"):
        shape_of(str(path))


def test_a_sequence_beyond_the_declared_context_is_said():
    assert beyond_context(known_model("gpt2"), 2048)
    assert not beyond_context(known_model("gpt2"), 1024)
    assert not beyond_context(known_model("llama-3-8b"), 10**6)


@given(st.text(max_size=40))
def test_any_text_is_a_model_or_one_of_our_errors(text):
    with contextlib.suppress(AdvisorError):
        assert model_of(text).parameter_count > 0
