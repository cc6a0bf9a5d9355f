"""attach() in real trainings: the phases are seen, the numbers are the same to the bit, the compiler notices nothing."""

import json
import os
import subprocess
import sys
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
