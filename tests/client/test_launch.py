"""The launcher starts a process that shares nothing with the trainer and is no child of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from watched_trainer import WatchedTrainer, is_alive, until

from advisor.client import launch


def a_stat_field(pid, index):
    return int(Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[index])


def test_the_sidecar_has_a_session_of_its_own_and_is_no_child_of_the_trainer(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        parent, group, session = (a_stat_field(trainer.sidecar, at) for at in (1, 2, 3))
        assert parent not in {trainer.pid, os.getpid()}
        assert group == session == trainer.sidecar
        assert Path(f"/proc/{trainer.pid}/task/{trainer.pid}/children").read_text("ascii").split() == []


def test_a_signal_to_the_trainers_group_does_not_reach_the_sidecar(tmp_path):
    with WatchedTrainer(tmp_path, start_new_session=True) as trainer:
        trainer.watched()
        os.killpg(trainer.pid, signal.SIGINT)
        end = trainer.end()
    assert end["signal"] == "SIGINT"


def test_the_sidecar_holds_nothing_of_the_trainers_open(tmp_path):
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with WatchedTrainer(tmp_path, pass_fds=(writing,)) as trainer:
        os.close(writing)
        trainer.watched()
        held = {str(path.readlink()) for path in Path(f"/proc/{trainer.sidecar}/fd").iterdir()}
        assert not [name for name in held if "pipe" in name or name.endswith(".said")]
        assert str(Path(f"/proc/{trainer.sidecar}/cwd").readlink()) == "/"
        trainer.kill()
        assert os.read(reading, 1) == b""  # its end is seen as soon as the trainer is dead
        os.close(reading)


def test_the_sidecars_environment_is_what_it_needs(tmp_path):
    told = {"WANDB_API_KEY": "secret", "ADVISOR_SPOOL_MAX_DAYS": "3", "LD_PRELOAD": "", "MASTER_ADDR": "host"}
    with WatchedTrainer(tmp_path, environment=told) as trainer:
        trainer.watched()
        names = {entry.partition(b"=")[0].decode() for entry in Path(f"/proc/{trainer.sidecar}/environ").read_bytes().split(b"\0") if entry}
    assert "ADVISOR_SPOOL_MAX_DAYS" in names
    assert names <= {*launch.KEPT_VARIABLES, "ADVISOR_SPOOL_MAX_DAYS", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE", "PYTHONHOME"}


def test_the_sidecar_is_small_and_loads_no_driver(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        status = Path(f"/proc/{trainer.sidecar}/status").read_text("ascii")
        assert int(status.partition("VmHWM:")[2].split()[0]) < 45_000
        assert status.split("\n")[0] == "Name:\tadvisor-sidecar"
        maps = Path(f"/proc/{trainer.sidecar}/maps").read_text("utf-8")
    assert not [name for name in ("nvidia", "cuda", "torch", "amdgpu") if name in maps]


def test_a_python_that_was_moved_finds_its_library(tmp_path):
    with WatchedTrainer(tmp_path, environment={"PYTHONHOME": sys.base_prefix}) as trainer:
        trainer.watched()
        assert b"PYTHONHOME" in Path(f"/proc/{trainer.sidecar}/environ").read_bytes()
        trainer.kill().end()


WAITING = """
import os, sys
from pathlib import Path
from advisor.client.launch import start_sidecar
folder = Path(sys.argv[1])
pids = [start_sidecar(folder, wait_seconds=30) for _ in range(5)]
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child", all(pids))
"""


def test_a_trainer_that_waits_for_any_child_finds_none(tmp_path):
    finished = run_python(WAITING, tmp_path)
    assert finished.stdout.split() == ["no", "child", "True"]


def run_python(text, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(Path(launch.__file__).parents[2])}
    return subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, check=True, env=environment)


def test_without_a_shell_the_sidecar_is_a_child_and_is_collected_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "SHELL", str(tmp_path / "none"))
    pid = launch.start_sidecar(tmp_path)
    assert pid in launch._unreaped

    def is_collected():
        launch.reap()
        return pid not in launch._unreaped

    until(is_collected)  # it leaves at once: there is no ring
    assert not is_alive(pid)
    assert "leaving" in (tmp_path / "sidecar.log").read_text("utf-8")


def test_a_shell_that_is_too_slow_is_not_waited_for_and_collected_later(tmp_path):
    launch.start_sidecar(tmp_path, wait_seconds=0)  # its number is only known where the shell was quick

    def is_collected():
        launch.reap()
        return not launch._unreaped

    until(is_collected)
    until(lambda: "leaving" in (tmp_path / "sidecar.log").read_text("utf-8"))  # it was started all the same; there is no ring


def test_a_folder_that_is_gone_starts_nothing_and_raises_nothing(tmp_path):
    assert launch.start_sidecar(tmp_path / "gone") is None


@pytest.mark.parametrize(("executable", "frozen"), [("/opt/blender", False), ("", False), (None, False), ("relative/python3", False)])
def test_a_program_that_embeds_python_is_not_started_again(monkeypatch, executable, frozen):
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(sys, "_base_executable", executable)
    found = launch.interpreter()
    assert found is None or Path(found).name.startswith("python")


def test_a_frozen_program_has_no_sidecar(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert launch.start_sidecar(tmp_path) is None


@pytest.mark.parametrize("name", ["python", "python3", "python3.13", "python3.13t", "pypy3", "python3.12d"])
def test_names_of_interpreters_are_known(name):
    assert launch.INTERPRETER_NAME.fullmatch(name)
