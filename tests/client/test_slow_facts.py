import json
import os
import subprocess
import sys
from pathlib import Path

from git_repositories import ENVIRONMENT, a_repository

from advisor.client import slow_facts
from advisor.client.record_items import missing_items
from advisor.client.run_facts import facts_at_attach
from advisor.client.slow_facts import facts_after_attach, facts_of_folder

CLIENT = Path(slow_facts.__file__).parents[2]


def a_project(folder):
    a_repository(folder, {"train.py": "print(1)\n", "conf/base.yaml": "lr: 1\n"})
    (folder / "train.py").write_text("print(2)\n")
    (folder / "tokens.bin").write_bytes(bytes(100))
    (folder / "shards").mkdir()
    (folder / "shards/0").write_bytes(bytes(10))
    return folder


def test_a_project_is_described_whole(tmp_path):
    root = a_project(tmp_path)
    found = facts_of_folder(
        str(root),
        ["train.py", "--config", "conf/base.yaml", "--data=shards"],
        script=str(root / "train.py"),
        data_files=[str(root / "tokens.bin")],
        search_path=sys.path,
        executable=sys.executable,
        environment=ENVIRONMENT,
    )
    assert found["faults"] == {}
    assert found["code"]["changes"]["status"] == [" M train.py"]
    assert found["packages"]["versions"]["pytest"]
    assert list(found["code_files"]) == [str(root / "train.py")]
    assert list(found["argument_files"]) == [str(root / "conf/base.yaml")]
    assert found["data_files"][str(root / "tokens.bin")]["sha256"]
    assert found["argument_folders"][str(root / "shards")]["file_count"] == 1
    assert found["machine"]["kernel"].startswith("Linux")
    json.dumps(found, allow_nan=False)


def test_what_the_attachment_found_is_all_that_is_needed(tmp_path, monkeypatch):
    root = a_project(tmp_path)
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "argv", [str(root / "train.py"), "--config", "conf/base.yaml"])
    facts = json.loads(json.dumps(facts_at_attach(config={"lr": 1}, seed=1)))
    slow = facts_after_attach(facts, environment=ENVIRONMENT)
    assert slow["packages"]["versions"]["pytest"]
    assert list(slow["argument_files"]) == [str(root / "conf/base.yaml")]
    assert [each.item for each in missing_items(facts, slow, metric_names=("loss",))] == ["data_version"]


def test_a_fault_in_one_part_leaves_the_others(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(slow_facts, "facts_of_packages", broken)
    found = facts_of_folder(str(tmp_path), [], environment=ENVIRONMENT)
    assert found["faults"] == {"packages": "RuntimeError"}
    assert found["packages"] is None
    assert found["machine"]["kernel"]


def test_facts_of_nothing_are_no_error():
    found = facts_after_attach({}, environment=ENVIRONMENT)
    assert found["faults"] == {}


def test_the_trainers_variables_are_used_where_the_sidecar_has_none_of_its_own():
    facts = {"environment": {"values": {"CONTAINER_IMAGE": "image:1"}}}
    assert facts_after_attach(facts, environment=ENVIRONMENT)["machine"]["container"]["image"] == "image:1"


def test_it_runs_in_an_isolated_interpreter_without_site_packages(tmp_path):
    root = a_project(tmp_path)
    facts = {
        "process": {
            "cwd": str(root),
            "argv": ["train.py"],
            "script": str(root / "train.py"),
            "search_path": [path for path in sys.path if path],
        }
    }
    program = (
        f"import sys, json; sys.path.append({str(CLIENT)!r});"
        "from advisor.client.slow_facts import facts_after_attach;"
        "print(json.dumps(facts_after_attach(json.load(sys.stdin))))"
    )
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, input=json.dumps(facts), capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
    found = json.loads(done.stdout)
    assert found["faults"] == {}
    assert found["packages"]["versions"]["pytest"]
    assert found["code"]["commit"]
