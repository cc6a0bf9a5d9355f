"""The sidecar beside real processes: it sees them die, says how, and leaves."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from watched_trainer import WatchedTrainer, is_alive, names_in, until

from advisor.client.host_record import read_host
from advisor.client.sidecar.control_groups import group_of
from advisor.client.sidecar.index import read_index

ROUNDS = int(os.environ.get("ADVISOR_KILL_ROUNDS", "10"))
SEED = int(os.environ.get("ADVISOR_KILL_SEED", "20"))


WITHOUT_END = ", without the interpreter's regular end (os._exit, or another program in its place)"


@pytest.mark.parametrize(
    ("how", "told", "exit_code", "statement"),
    [
        ("exit", "exit", 0, "exited with code 0"),
        ("exit", "exit", 3, "exited with code 3"),
        ("os_exit", "exit", 7, "exited with code 7" + WITHOUT_END),
        ("exception", "exception", 1, "ended by builtins.ValueError"),
        ("survived", "exit", 0, "exited with code 0"),
    ],
)
def test_an_end_by_its_own_will_is_told_with_its_exit_code(tmp_path, how, told, exit_code, statement):
    with WatchedTrainer(tmp_path, how, seconds=0.02, environment={"EXIT_CODE": str(exit_code)}) as trainer:
        # Not collected before the sidecar is done: the exit code is then known on every kernel.
        end = trainer.end()
    assert (end["how"], end["exit_code"], end["statement"]) == (told, exit_code, statement)
    assert end["interpreter_ended"] is (how != "os_exit")
    assert end["last_step"] == end["step"] == 20


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_a_signal_is_told_by_its_name(tmp_path, number):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        os.kill(trainer.pid, number)
        end = trainer.end()
    assert (end["how"], end["signal"], end["exit_code"], end["certainty"]) == ("signal", number.name, None, "known")
    assert end["phase"] == "forward"
    assert end["exit_status_source"] == "procfs"


def test_an_exit_status_that_nobody_keeps_is_unknown_and_said_to_be(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        end = trainer.kill().end()
    if end["exit_status_source"] is None:  # a kernel before 6.15, and our wait was quicker than the sidecar
        assert (end["how"], end["signal"], end["exit_code"]) == ("abrupt", None, None)
        assert any("its parent collected it" in gap for gap in end["unknown"])
    else:
        assert (end["how"], end["signal"]) == ("signal", "SIGKILL")


def test_all_that_the_trainer_wrote_is_in_steps_after_its_death(tmp_path):
    with WatchedTrainer(tmp_path, seconds=0.0005) as trainer:
        until(lambda: trainer.step() > 5000)  # the ring has gone round
        trainer.kill().end()
        said = trainer.step()
        (trainer.folder / "ring").write_bytes((trainer.folder / "ring").read_bytes()[:4096])
        assert trainer.step_numbers()[-1] in {said, said + 1}
        assert trainer.step_numbers() == list(range(1, trainer.step_numbers()[-1] + 1))


def test_records_that_come_faster_than_they_can_be_drained_are_counted(tmp_path):
    with WatchedTrainer(tmp_path, "burst", seconds=0) as trainer:
        until(lambda: trainer.said("burst done"))
        end = trainer.kill().end()
        count = len(trainer.records())
    assert end["lost_count"] > 0
    assert end["drained_count"] + end["lost_count"] == 20 * 2 + 200_000
    assert count >= end["drained_count"]


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_whoever_is_killed_at_whatever_moment_the_steps_are_there(tmp_path, turn):
    chance = random.Random(SEED * 1000 + turn)
    victims = (("trainer",), ("sidecar",), ("sidecar", "trainer"), ("trainer", "sidecar"))[turn % 4]
    with WatchedTrainer(tmp_path, seconds=chance.choice((0.0005, 0.002))) as trainer:
        moment = chance.choice((chance.randrange(1, 40), chance.randrange(1, 400), chance.randrange(1, 3000)))
        until(lambda: trainer.step() >= moment)
        for victim in victims:
            if victim == "trainer":
                trainer.kill()
            elif is_alive(trainer.sidecar):
                os.kill(trainer.sidecar, signal.SIGKILL)
        if victims == ("sidecar",):
            after = trainer.step()
            until(lambda: trainer.step() > after + 20)  # the training goes on
            trainer.kill()
        if victims == ("trainer",):
            assert trainer.end()["signal"] == "SIGKILL" or trainer.end()["exit_status_source"] is None
        until(lambda: not is_alive(trainer.sidecar))
        said, numbers = trainer.step(), trainer.step_numbers()
        assert numbers == list(range(1, len(numbers) + 1))
        assert said <= len(numbers) <= said + 1
        if (trainer.folder / "end.json").exists():  # whole, or not at all
            assert trainer.end()["last_step"] in {said, said + 1}
        index = trainer.folder / "index.jsonl"
        assert set(read_index(index.read_bytes() if index.exists() else b"")) <= names_in(trainer.folder)


def test_a_killed_trainers_folder_is_indexed_and_swept(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        (trainer.folder / f".new-{trainer.pid}-snapshot").write_bytes(b"half")
        (trainer.folder / "registry-1.json").write_bytes(b"{}")
        trainer.kill().end()
        names = names_in(trainer.folder)
        assert not [name for name in names if name.startswith(".new-")]
        index = read_index((trainer.folder / "index.jsonl").read_bytes())
        assert set(index) == names - {"ring", "sidecar.log", "index.jsonl"}
        assert index["registry-1.json"]["sha256"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        assert read_host((trainer.folder / "host").read_bytes())[0].rss_bytes > 1_000_000


def test_the_record_is_completed_even_of_a_run_that_is_over_at_once(tmp_path):
    with WatchedTrainer(tmp_path, "exit", seconds=0) as trainer:
        trainer.end()
        record = json.loads((trainer.folder / "record.json").read_bytes())
    assert record["machine"]
    assert "code" in record


def test_a_forked_child_of_the_trainer_changes_nothing(tmp_path):
    with WatchedTrainer(tmp_path, "fork") as trainer:
        child = int(until(lambda: trainer.said("child")).split()[1])
        try:
            trainer.watched()
            assert trainer.kill().end()["how"] in {"signal", "abrupt"}
            assert is_alive(child)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_trainer_that_lets_go_is_watched_no_longer(tmp_path):
    with WatchedTrainer(tmp_path, "detach") as trainer:
        end = trainer.end()
        assert is_alive(trainer.pid)
    assert (end["how"], end["exit_code"], end["last_step"]) == ("detached", None, 20)


def test_a_sidecar_whose_folder_is_removed_leaves(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        shutil.rmtree(trainer.folder)
        until(lambda: not is_alive(trainer.sidecar))
        assert is_alive(trainer.pid)
        assert not trainer.folder.exists()


def test_a_sidecar_outlives_the_end_of_a_job_and_says_that_it_was_one(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        os.kill(trainer.sidecar, signal.SIGTERM)
        os.kill(trainer.sidecar, signal.SIGINT)
        os.kill(trainer.sidecar, signal.SIGHUP)
        end = trainer.kill(signal.SIGTERM).end()
    assert 0 <= end["asked_to_stop_seconds"] < 30
    assert any("SIGTERM" in statement for statement in end["statements"])


def test_a_sidecar_that_is_asked_twice_leaves(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        os.kill(trainer.sidecar, signal.SIGTERM)
        until(lambda: "watched until it ends" in trainer.log())
        os.kill(trainer.sidecar, signal.SIGTERM)
        until(lambda: not is_alive(trainer.sidecar))
        assert is_alive(trainer.pid)
        assert "second time" in trainer.log()


def test_a_second_sidecar_leaves_the_folder_to_the_first(tmp_path):
    with WatchedTrainer(tmp_path) as trainer:
        trainer.watched()
        script = Path(__file__).parents[3] / "client" / "advisor" / "client" / "sidecar" / "__main__.py"
        with (trainer.folder / "sidecar.log").open("ab+") as log:
            command = [sys.executable, "-I", "-S", script, trainer.folder, str(trainer.pid)]
            assert subprocess.run(command, stderr=log, check=False).returncode == 1
        assert "another sidecar is at work here" in trainer.log()
        assert is_alive(trainer.sidecar)


def test_where_nothing_can_be_written_the_training_goes_on_and_the_sidecar_leaves_after_it(tmp_path):
    most = 1_700_000  # the ring fits, two hundred records in `steps` more do; an own limit behaves as a full disk does

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    with WatchedTrainer(tmp_path, seconds=0, preexec_fn=limit) as trainer:
        until(lambda: "records cannot be kept" in trainer.log())
        before = trainer.step()
        until(lambda: trainer.step() > before)
        end = trainer.kill().end()
        assert (trainer.folder / "steps").stat().st_size % 192 == 0
        numbers = trainer.step_numbers()
        said = trainer.step()
    assert end["how"] in {"signal", "abrupt"}
    assert numbers[-1] in {said, said + 1}


def _in_a_mount_namespace(kind, tmp_path):
    script = Path(__file__).parent / "a_failing_disk.py"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting needs the right to it")
    command = ["unshare", "-m", sys.executable, script, kind, tmp_path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_a_full_disk_leaves_room_to_say_how_the_trainer_died(tmp_path):
    told = _in_a_mount_namespace("full", tmp_path)
    assert "No space left on device" in told
    assert "killed by SIGKILL" in told
    assert "last step is kept: True" in told


def test_a_folder_that_became_read_only_is_named_in_the_log(tmp_path):
    told = _in_a_mount_namespace("read-only", tmp_path)
    assert "end.json cannot be written" in told
    assert "killed by SIGKILL" in told


def _a_memory_group(limit_bytes):
    """A control group of this process's own with a limit of memory; its folder."""
    own = group_of("memory", Path("/proc/self/cgroup").read_text("utf-8"), Path("/proc/self/mountinfo").read_text("utf-8"))
    if own is None:
        pytest.skip("no control group accounts for memory here")
    folder = Path(own.folders[0]) / f"advisor-test-{os.getpid()}"
    limit = folder / ("memory.max" if own.version == 2 else "memory.limit_in_bytes")
    try:
        folder.mkdir()
        limit.write_text(str(limit_bytes))
    except OSError as error:
        if folder.exists():
            folder.rmdir()
        pytest.skip(f"a control group with a limit cannot be made here: {error}")
    return folder


def test_a_kill_for_want_of_memory_is_told_with_its_evidence(tmp_path):
    group = _a_memory_group(100_000_000)
    try:
        with WatchedTrainer(tmp_path, "eat", preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) as trainer:
            end = trainer.end()
    finally:
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()
    assert end["how"] == "host_oom", end
    assert "control group" in end["statement"]
    assert any("its limit of 95 MiB" in piece["statement"] for piece in end["evidence"])
    assert any(piece["source"].startswith("memory.events") and piece["value"] == 1 for piece in end["evidence"])
