import json

import pytest
from run_cli import run_cli

LLAMA = ("estimate", "--model", "llama-3-8b")
H100 = ("--device", "h100-sxm")


def as_json(*options):
    finished = run_cli(*LLAMA, *options, "--format", "json")
    assert finished.code == 0, finished.err
    return json.loads(finished.out)


def test_the_verdict_comes_first_and_fits_80_columns_without_colors():
    finished = run_cli(*LLAMA, *H100)
    assert finished.code == 0
    assert finished.err == ""
    assert finished.out.startswith("llama-3-8b on H100 SXM5 80GB: does not fit\n")
    assert max(map(len, finished.out.splitlines())) <= 80
    assert "\x1b" not in finished.out


VERDICTS = [
    ((*H100, "--optimizer", "adamw"), "does not fit"),
    ((*H100, "--lora", "16"), "fits"),
    ((*H100, "--inference"), "fits"),
    (("--capacity", "120", "--precision", "bf16"), "fits"),
    (("--capacity", "70", "--precision", "bf16"), "too near to say"),
    (("--capacity", "40", "--precision", "bf16"), "does not fit"),
]


@pytest.mark.parametrize(("options", "verdict"), VERDICTS, ids=lambda value: str(value)[-30:])
def test_verdicts(options, verdict):
    assert as_json(*options)["verdict"] == verdict


def test_the_error_is_said_to_be_unmeasured():
    assert as_json(*H100)["error_measured"] is False
    assert "has not been measured yet" in " ".join(run_cli(*LLAMA, *H100).out.split())


def test_blocks_items_and_peak_are_given_in_bytes():
    answer = as_json(*H100, "--batch", "1", "--sequence", "4096")
    assert answer["blocks"]["activations"] == 32 * 528 * 1024**2
    assert answer["before_activations_bytes"] == 16 * 8_030_261_248
    assert answer["peak"]["at_least_bytes"] < answer["peak"]["counted_bytes"] < answer["peak"]["at_most_bytes"]
    assert all(item["basis"] for item in answer["items"])


def test_the_largest_batch_that_fits_fits_and_the_next_does_not():
    options = (*H100, "--lora", "16", "--sequence", "2048")
    largest = as_json(*options)["largest_batch"]["surely_fits"]
    assert as_json(*options, "--batch", largest)["verdict"] == "fits"
    assert as_json(*options, "--batch", largest + 1)["verdict"] == "too near to say"


def test_what_would_make_it_fit_is_offered_with_its_options():
    answer = as_json(*H100)
    fitting = [remedy for remedy in answer["remedies"] if remedy["verdict"] == "fits"]
    assert fitting
    again = run_cli(*LLAMA, *H100, *fitting[0]["options"].split(), "--format", "json")
    assert json.loads(again.out)["verdict"] == "fits"


def test_every_offered_option_is_an_option():
    for remedy in as_json(*H100, "--batch", "4")["remedies"]:
        answer = as_json(*H100, "--batch", "4", *remedy["options"].split())
        assert answer["verdict"] == remedy["verdict"], remedy["title"]


def test_of_a_bare_size_what_is_unknown_is_null():
    answer = json.loads(run_cli("estimate", *H100, "--model", "3B", "--format", "json").out)
    assert answer["blocks"]["activations"] is None
    assert answer["verdict"] == "cannot be said"
    assert answer["largest_batch"] == {"surely_fits": None, "at_best": None}
    assert "unknown" in run_cli("estimate", *H100, "--model", "3B").out


def test_a_sequence_that_the_model_does_not_take_is_said():
    text = " ".join(run_cli("estimate", *H100, "--model", "gpt2", "--sequence", "4096").out.split())
    assert "exceed the 1,024" in text


USAGE = [
    (),
    (*H100, "--batch", "0"),
    (*H100, "--sequence", "x"),
    (*H100, "--optimizer", "adamx"),
    (*H100, "--precision", "fp7"),
    (*H100, "--lora", "0"),
    (*H100, "--qlora"),
    (*H100, "--gpus", "8"),
    (*H100, "--sharding", "zero3"),
    (*H100, "--sharding", "zero9", "--gpus", "2"),
    (*H100, "--inference", "--lora", "16"),
    (*H100, "--inference", "--sharding", "fsdp"),
    (*H100, "--inference", "--weights", "int3"),
    (*H100, "--weights", "int4"),
    (*H100, "--prefill-tokens", "1"),
    ("--capacity", "0"),
    ("--capacity", "nan"),
    ("--capacity", "inf"),
    ("--capacity", "-3"),
    ("--device", "500TFLOPS,2TB/s"),
    ("--device", "GH200"),
]


@pytest.mark.parametrize("options", USAGE, ids=lambda options: " ".join(options)[-40:])
def test_bad_usage_is_one_line_and_exit_2(options):
    finished = run_cli(*LLAMA, *options)
    assert finished.code == 2
    assert finished.out == ""
    assert len(finished.err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["estimate", "roofline"])
def test_the_help_fits_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, run_cli(command, "--help").out.splitlines())) <= 80
