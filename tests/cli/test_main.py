import pytest
from run_cli import run_cli

from advisor.cli.main import COMMANDS


def test_the_help_lists_every_command_and_the_exit_codes():
    finished = run_cli("--help")
    assert finished.code == 0
    for command in COMMANDS:
        assert command in finished.out
    assert "exit codes" in finished.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own(command):
    finished = run_cli(command, "--help")
    assert finished.code == 0
    assert "usage: advisor-cli" in finished.out


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("dagnose",),
        ("diagnose", "--frmat", "json"),
        ("diagnose",),
        ("explain",),
        ("explain", "MEM999"),
        ("diagnose", "x", "--format", "yaml"),
    ],
)
def test_bad_usage_is_one_line_with_a_remedy_and_exit_code_2(arguments):
    finished = run_cli(*arguments)
    assert finished.code == 2
    assert finished.out == ""
    assert len(finished.err.strip().splitlines()) == 1
    assert ";" in finished.err


def test_a_fault_of_ours_is_said_to_be_one(monkeypatch):
    def broken(*_: object) -> int:
        raise KeyError("boom")

    monkeypatch.setattr("advisor.cli.rules.run", broken)
    finished = run_cli("rules")
    assert finished.code == 3
    assert "fault of the advisor" in finished.err
    assert len(finished.err.strip().splitlines()) == 1
