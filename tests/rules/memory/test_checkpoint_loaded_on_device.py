"""MEM107 knows torch.load by its frames, and a missing map_location by its words."""

import pytest

from advisor.model.failure import Frame, Mention, Phase
from advisor.model.memory import AllocationSite
from advisor.rules.memory.checkpoint_loaded_on_device import (
    LEAST_LOADED_BYTES,
    RESUMED_SCORE,
    STATED_SCORE,
    checkpoint_loaded_on_device,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_log, a_record

check = checkpoint_loaded_on_device.check


def said(text: str):
    return a_log(line_count=3, mentions=(Mention(topic="torch.load", line=1, text=text),))


@pytest.mark.parametrize(
    "text",
    [
        "torch.load without map_location puts it on the first GPU",
        "every rank loads the checkpoint to cuda:0",
        "All processes load the weights onto GPU 0",
    ],
)
def test_words_that_say_it_need_no_failure(text: str) -> None:
    finding = check(None, said(text), None, None)
    assert finding is not None
    assert finding.confidence == STATED_SCORE


@pytest.mark.parametrize(
    "text",
    [
        "state = torch.load(path, map_location='cpu')",
        "please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU",
        "resuming from checkpoint-500",
    ],
)
def test_a_healthy_log_loads_checkpoints_too(text: str) -> None:
    assert check(None, said(text), None, None) is None


def test_a_failure_after_a_restart_is_a_suspicion() -> None:
    finding = check(a_failure(), said("out of memory at the first step after restart"), None, None)
    assert finding is not None
    assert finding.confidence == RESUMED_SCORE


def test_a_save_is_not_a_load() -> None:
    frame = Frame(filename="train.py", line=3, function="main", code="torch.load(path)")
    assert check(a_failure(phase=Phase.CHECKPOINT, frames=(frame,)), None, None, None) is None


@pytest.mark.parametrize(("size", "fires"), [(LEAST_LOADED_BYTES, True), (LEAST_LOADED_BYTES - 1, False)])
def test_a_snapshot_with_restored_tensors_beside_the_weights(size: int, fires: bool) -> None:
    site = AllocationSite(
        label="torch/serialization.py:391 in default_restore_location", block="weights", live_bytes=size, count=3,
        largest_bytes=size, why="", stack=("torch/serialization.py:391 in default_restore_location",),
    )  # fmt: skip
    ledger = a_ledger(weights=50 * GIB, activations=29 * GIB, sites=(site,))
    assert (check(None, None, ledger, a_record()) is not None) is fires
