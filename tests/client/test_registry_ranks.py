"""The registry on two ranks that train together over the loopback interface."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="trains with torch")

from registry_moments import MOMENTS  # noqa: E402 - after the skip
from small_models import a_model  # noqa: E402

MOST_UNTAGGED_RATIO = 0.01
PATIENCE_SECONDS = 120

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)


def moments_of_two_ranks(kind, spread, folder):
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (here, here.parents[1], here.parents[1] / "client")))}
    command = [sys.executable, "-W", "ignore", here / "registry_ranks.py", kind, spread]
    ranks = [
        subprocess.Popen([*command, str(rank), str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        for rank in range(2)
    ]
    try:
        answers = [rank.communicate(timeout=PATIENCE_SECONDS) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (_, said) in zip(ranks, answers, strict=True):
        assert rank.returncode == 0, said.decode()
    return [json.loads(answer.splitlines()[-1]) for answer, _ in answers]


def weight_bytes(kind):
    return sum(parameter.nbytes for parameter in a_model(kind, "eager").parameters())


@pytest.mark.parametrize(("kind", "spread"), [("gpt", "ddp"), ("llama", "ddp"), ("gpt", "ddp-views"), ("gpt", "fsdp2")])
def test_at_most_one_percent_is_untagged_on_each_rank(kind, spread, tmp_path):
    if spread == "fsdp2":
        fsdp = pytest.importorskip("torch.distributed.fsdp", reason="this torch has no FSDP")
        if not hasattr(fsdp, "fully_shard"):
            pytest.skip("this torch has no fully_shard")
    for moments in moments_of_two_ranks(kind, spread, tmp_path):
        assert set(moments) == set(MOMENTS)
        for name, moment in moments.items():
            assert moment["faults"] == []
            assert moment["untagged_ratio"] <= MOST_UNTAGGED_RATIO, (name, moment)
            assert moment["dead_bytes"] == 0
        assert any("blocks.0" in name for name in moments["after step"]["names"])
        check_roles(kind, spread, moments)


def check_roles(kind, spread, moments):
    weights = weight_bytes(kind)
    after, cleared = moments["after backward"]["roles"], moments["after zero_grad"]["roles"]
    if spread == "ddp":
        assert after["weights"] == after["gradients"] == after["communication_buffers"] == weights
        assert cleared["communication_buffers"] == weights
    elif spread == "ddp-views":
        assert after["gradients"] == weights
        assert "communication_buffers" not in after
        assert cleared["communication_buffers"] == weights
    else:
        assert after["weights"] == after["gradients"] == pytest.approx(weights / 2, rel=0.01)
        assert moments["mid backward"]["roles"]["communication_buffers"] > 0
