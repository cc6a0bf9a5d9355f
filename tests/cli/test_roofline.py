import json

import pytest
from run_cli import run_cli

LLAMA = ("roofline", "--device", "h100-sxm", "--model", "llama-3-8b")


def as_json(*options):
    finished = run_cli(*LLAMA, *options, "--format", "json")
    assert finished.code == 0
    return json.loads(finished.out)


def test_the_answer_comes_first_and_fits_80_columns_without_colors():
    finished = run_cli(*LLAMA)
    assert finished.code == 0
    assert finished.err == ""
    assert finished.out.startswith("decode of llama-3-8b on H100 SXM5 80GB: memory-bound")
    assert max(map(len, finished.out.splitlines())) <= 80
    assert "\x1b" not in finished.out


def test_an_assumed_card_is_said_in_text_and_json():
    text = run_cli("roofline", "--device", "H100", "--model", "llama-3-8b").out
    assert "was taken for H100 SXM5 80GB" in text
    answer = json.loads(run_cli("roofline", "--device", "H100", "--model", "llama-3-8b", "--format", "json").out)
    assert "was taken for" in answer["gaps"][0]


def test_the_json_names_each_source_and_gives_numbers():
    answer = as_json()
    assert answer["device"]["peak"]["value"] == 989e12
    assert answer["device"]["bandwidth"]["source"]
    assert answer["model"]["parameters"] == 8_030_261_248
    assert [point["batch"] for point in answer["points"]] == [1, 32, 128, 512]
    assert answer["turning_batch"] == 296


def test_a_change_is_compared_before_and_after():
    answer = as_json("--batch", "1", "--change", "weights=int4")["change"]
    assert answer["effects"][0]["step_ratio"] == pytest.approx(0.25)
    text = run_cli(*LLAMA, "--batch", "1", "--change", "ffn=x2").out
    assert ["feed-forward", "×", "2.00", "×", "2.00", "×", "2.00"] in [line.split() for line in text.splitlines()]


def test_several_changes_are_applied_together():
    answer = as_json("--batch", "1", "--change", "weights=int4", "device=H200")
    assert answer["change"]["effects"][0]["step_ratio"] == pytest.approx(0.25 * 3.35 / 4.8)


def test_what_a_context_adds_is_said():
    text = " ".join(run_cli(*LLAMA, "--context", "8192", "--batch", "64,512").out.split())
    assert "131 KB a token" in text
    assert "Batch 64 needs 84.8 GB" not in text
    assert "Batch 512 needs" in text


def test_an_unverified_figure_is_marked():
    text = " ".join(run_cli("roofline", "--device", "RTX-3090", "--model", "llama-3-8b").out.split())
    assert "not verified" in text


def test_a_recorded_utilization_is_not_claimed_in_training():
    text = " ".join(run_cli(*LLAMA, "--phase", "train").out.split())
    assert "compute-bound" in text
    assert "AdamW step adds at least 67 ms" in text


USAGE = [
    ("--batch", "0"),
    ("--batch", "a"),
    ("--batch", ""),
    ("--batch", "9" * 30),
    ("--batch", ",".join(["1"] * 99)),
    ("--context", "-1"),
    ("--context", "1e9"),
    ("--phase", "prefill", "--context", "0"),
    ("--phase", "sleep"),
    ("--weights", "int3"),
    ("--compute", "fp4"),
    ("--checkpointing",),
    ("--change", "weights"),
    ("--change", "ffn=0"),
    ("--device", "A100"),
    ("--model", "llama-9"),
    ("--nonsense",),
]


@pytest.mark.parametrize("options", USAGE, ids=lambda options: " ".join(options)[:30])
def test_bad_usage_is_one_line_and_exit_2(options):
    finished = run_cli(*LLAMA, *options)
    assert finished.code == 2
    assert finished.out == ""
    assert len(finished.err.strip().splitlines()) == 1


def test_a_card_without_bf16_says_what_it_has():
    finished = run_cli("roofline", "--device", "T4", "--model", "llama-3-8b")
    assert finished.code == 2
    assert "fp16" in finished.err


def test_a_config_of_an_unknown_architecture_is_exit_2(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "mamba"}')
    finished = run_cli("roofline", "--device", "h100-sxm", "--model", path)
    assert finished.code == 2
    assert "mamba" in finished.err


def test_a_name_in_a_config_cannot_drive_the_terminal(tmp_path):
    path = tmp_path / "config.json"
    config = {
        "model_type": "gpt2",
        "n_embd": 64,
        "n_head": 2,
        "n_layer": 2,
        "n_positions": 64,
        "vocab_size": 100,
        "_name_or_path": "\x1b[2J\u202eevil",
    }
    path.write_text(json.dumps(config))
    assert "\x1b" not in run_cli("roofline", "--device", "h100-sxm", "--model", path).out
    assert "\x1b" not in run_cli("estimate", "--device", "h100-sxm", "--model", path).out
