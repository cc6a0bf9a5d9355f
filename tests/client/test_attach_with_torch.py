"""attach() in real trainings: the phases are seen, the numbers are the same to the bit, the compiler notices nothing."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.client.layout import PHASES, Metric, Step
from advisor.client.ring_reader import read_ring

pytest.importorskip("torch", reason="trains with torch")

SCRIPT = Path(__file__).parent / "a_training.py"


def run(kind, steps, spool, how="attached"):
    environment = {**os.environ, "ADVISOR_SPOOL": str(spool)}
    return subprocess.run([sys.executable, SCRIPT, kind, str(steps), how], capture_output=True, text=True, env=environment, check=False)


def trained(kind, steps, spool, how="attached"):
    finished = run(kind, steps, spool, how)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


def steps_of(folder):
    ring = read_ring((Path(folder) / "ring").read_bytes())
    return [record for _, record in ring.records if isinstance(record, Step)], ring


@pytest.mark.parametrize("kind", ["eager", "compiled"])
def test_losses_are_the_same_to_the_bit_and_the_compiler_notices_nothing(kind, tmp_path):
    attached, alone = trained(kind, 200, tmp_path), trained(kind, 200, tmp_path, "alone")
    assert attached["losses"] == alone["losses"]
    assert (attached["graphs"], attached["breaks"]) == (alone["graphs"], alone["breaks"])
    assert attached["faults"] == 0


def test_every_step_is_there_with_its_phases_and_its_loss(tmp_path):
    answer = trained("eager", 50, tmp_path)
    steps, ring = steps_of(answer["folder"])
    whole = [step for step in steps if not step.flags & 256]
    assert [step.step for step in whole] == list(range(1, 51))
    for step in whole[1:]:
        spent = dict(zip(PHASES, step.phases, strict=True))
        assert min(spent[name] for name in ("data_wait", "forward", "backward", "optimizer")) > 0
        assert sum(step.phases) == pytest.approx(step.seconds, rel=1e-3)
    assert whole[5].sample_count == 8
    logged = [record for _, record in ring.records if isinstance(record, Metric)]
    assert [float(record.value).hex() for record in logged] == answer["losses"]


def test_evaluation_with_gradients_and_checkpoints_are_phases(tmp_path):
    steps, _ = steps_of(trained("evaluates", 30, tmp_path)["folder"])
    step = steps[10]
    spent = dict(zip(PHASES, step.phases, strict=True))
    assert spent["evaluation"] > 0
    assert spent["checkpoint"] > 0
    assert step.flags & 4


def test_an_exception_is_kept_with_what_the_training_was_doing(tmp_path):
    finished = run("raises", 20, tmp_path)
    assert finished.returncode == 1
    assert "CUDA out of memory" in finished.stderr
    (failure,) = tmp_path.glob("*/rank-00000/failure-1.json")
    told = json.loads(failure.read_text())
    assert told["type"] == "builtins.RuntimeError"
    assert told["step"] == 10
    assert "a_training.py" in told["text"]


def test_without_torch_or_when_disabled_attach_does_nothing_and_says_so(tmp_path):
    code = "import sys; sys.modules['torch'] = None; import advisor.client; a = advisor.client.attach(); a.log(x=1); print(a.folder)"
    paths = str(SCRIPT.parents[2] / "client")
    for environment in ({"PYTHONPATH": paths}, {"PYTHONPATH": paths, "ADVISOR_DISABLE": "1"}):
        finished = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={"ADVISOR_SPOOL": str(tmp_path), **environment}, check=False
        )
        assert finished.stdout == "None\n", finished.stderr
        assert len(finished.stderr.splitlines()) == 1
        assert "not attached" in finished.stderr


def test_the_sidecar_says_how_the_training_ended(tmp_path):
    folder = Path(trained("eager", 30, tmp_path)["folder"])
    end = waited_for(folder / "end.json")
    assert (end["how"], end["interpreter_ended"], end["last_step"]) == ("exit", True, 31)
    assert waited_for(folder / "run.json")["items"]["run_id"] == folder.parent.name
    assert waited_for(folder / "registry-interval.json")["devices"][0]["entries"]["weights"] > 0


def waited_for(path, seconds=30):
    until = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return json.loads(path.read_text())


def test_detaching_puts_everything_back_and_attaching_again_is_a_new_run(tmp_path, monkeypatch):
    import torch

    import advisor.client

    monkeypatch.setenv("ADVISOR_SPOOL", str(tmp_path))
    before = torch.autograd._engine_run_backward, torch.nn.Module.train, sys.excepthook
    first = advisor.client.attach(run="first", strict=True)
    assert advisor.client.attach(run="other") is first
    first.detach()
    assert (torch.autograd._engine_run_backward, torch.nn.Module.train, sys.excepthook) == before
    for number in range(20):
        with advisor.client.attach(run=f"again-{number}", strict=True) as again:
            assert again.run_id == f"again-{number}"


def test_a_forked_child_writes_nothing_to_its_parents_run(tmp_path):
    code = """
import os, sys, torch, advisor.client
a = advisor.client.attach(strict=True)
w = torch.nn.Parameter(torch.ones(1)); o = torch.optim.SGD([w], lr=0.1)
def step():
    w.sum().backward(); o.step()
step()
if os.fork() == 0:
    step(); os._exit(0)
os.wait(); step()
from advisor.client.ring_reader import read_ring
print(read_ring((a.folder / "ring").read_bytes()).written_count)
"""
    environment = {**os.environ, "ADVISOR_SPOOL": str(tmp_path), "PYTHONPATH": str(SCRIPT.parents[2] / "client")}
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert finished.stdout == "2\n", finished.stderr


@pytest.mark.parametrize("make_bad", ["unwritable", "file"])
def test_a_spool_that_cannot_be_used_costs_one_line_and_no_training(make_bad, tmp_path):
    spool = tmp_path / "spool"
    if make_bad == "file":
        spool.write_text("a file")
    else:
        spool = Path("/proc/nothing")
    environment = {**os.environ, "ADVISOR_SPOOL": str(spool), "PYTHONPATH": str(SCRIPT.parents[2] / "client")}
    code = "import torch, advisor.client; a = advisor.client.attach(); a.log(x=1); a.step(); print('trained')"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert finished.stdout == "trained\n"
    assert "not attached" in finished.stderr
    assert len(finished.stderr.splitlines()) == 1
