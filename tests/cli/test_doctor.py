"""The doctor says what is here, and 2 where something essential is not."""

import json

from run_cli import run_cli

from advisor.hardware.catalogue import all_devices


def test_it_counts_each_device_once():
    answer = run_cli("doctor", "--format", "json")
    checks = {check["name"]: check for check in json.loads(answer.out)}
    assert checks["hardware catalogue"]["seen"] == f"{len(all_devices())} devices"
    assert checks["numpy"]["works"]


def test_what_is_missing_comes_with_how_to_get_it():
    for check in json.loads(run_cli("doctor", "--format", "json").out):
        assert check["works"] or check["remedy"]


def test_the_text_has_a_line_a_check():
    lines = run_cli("doctor").out.splitlines()
    assert any(line.startswith("works    Python: 3.") for line in lines)
