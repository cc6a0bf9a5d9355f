import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.client.redaction import REDACTED, hides_number, redact_argv, redact_named

NAMES_OF_SECRETS = ("--api-key", "--token", "--hf_token", "--wandb-api-key", "--db.password", "-password", "--client-secret")
NAMES_OF_SETTINGS = (
    "--lr",
    "--tokenizer",
    "--max-tokens",
    "--max_new_tokens",
    "--primary-key",
    "--pad-token-id",
    "--data",
    "--seed",
    "--key-dim",
)
VALUES = st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789", min_size=9, max_size=19).filter(
    lambda text: text.lower() != "password" and not text.isdigit()
)


@given(st.sampled_from(NAMES_OF_SECRETS), VALUES, st.booleans())
def test_the_value_of_a_secret_option_is_nowhere_on_the_command_line(name, value, is_joined):
    words = [f"{name}={value}"] if is_joined else [name, value]
    shown = redact_argv(["train.py", *words, "--lr", "1e-3"])
    assert value not in " ".join(shown)
    assert shown[-2:] == ["--lr", "1e-3"]
    assert shown[1].startswith(name)


@given(st.sampled_from(NAMES_OF_SETTINGS), VALUES, st.booleans())
def test_the_value_of_a_setting_survives(name, value, is_joined):
    words = [f"{name}={value}"] if is_joined else [name, value]
    assert redact_argv(["train.py", *words]) == ["train.py", *words]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["--api-key", "VALUE", "--epochs", "3"], ["--api-key", REDACTED, "--epochs", "3"]),
        (["--token=VALUE"], [f"--token={REDACTED}"]),
        (
            ["wandb.key=abc", "+model.hf_token=q", "trainer.max_tokens=5"],
            [f"wandb.key={REDACTED}", f"+model.hf_token={REDACTED}", "trainer.max_tokens=5"],
        ),
        (["--use-auth-token", "data.json"], ["--use-auth-token", "data.json"]),
        (["--token", "--lr", "1"], ["--token", "--lr", "1"]),
        (["--tokenizer", "gpt2", "--max-tokens", "512"], ["--tokenizer", "gpt2", "--max-tokens", "512"]),
        (["--db", "postgres://u:p@h/d"], ["--db", "postgres://<redacted>@h/d"]),
        (["--json", '{"api_key": "abc", "lr": 1}'], ["--json", '{"api_key": "<redacted>", "lr": 1}']),
        (["-c", "import os; os.environ['HF_TOKEN'] = 'abc'"], ["-c", "import os; os.environ['HF_TOKEN'] = '<redacted>'"]),
        (["--token=", "--password", ""], ["--token=", "--password", ""]),
        (["--hf-token", "$HF_TOKEN"], ["--hf-token", "$HF_TOKEN"]),
        (["-p", "8080", "-lr", "0.1", "--", "x"], ["-p", "8080", "-lr", "0.1", "--", "x"]),
        (["--eos-token", "</s>", "--pad_token=<pad>"], ["--eos-token", "</s>", "--pad_token=<pad>"]),
        ([], []),
    ],
)
def test_command_lines(argv, shown):
    assert redact_argv(argv) == shown


@given(st.lists(st.text()))
def test_any_command_line_keeps_its_count_of_words(argv):
    assert len(redact_argv(argv)) == len(argv)


@pytest.mark.parametrize(
    ("name", "is_hidden"), [("password", True), ("db_password", True), ("token", False), ("max_tokens", False), ("lr", False)]
)
def test_numbers_are_hidden_below_the_names_of_passwords(name, is_hidden):
    assert hides_number(name) is is_hidden


def test_a_hidden_value_leaves_neither_its_length_nor_a_part():
    assert redact_named("token", "a") == redact_named("token", "a much longer secret") == REDACTED
