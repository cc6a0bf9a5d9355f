"""MEM405: private pools that are a good part of the device."""

import pytest

from advisor.model.failure import Frame, Mention
from advisor.rules.memory.cuda_graph_pools import cuda_graph_pools
from advisor.rules.samples import GIB, MIB, a_failure, a_ledger, a_log, a_record

check = cuda_graph_pools.check


@pytest.mark.parametrize(
    ("pools", "requested", "fires"),
    [
        (8 * GIB, 20 * GIB, True),
        (8 * GIB - 1, 20 * GIB, False),  # below a tenth, and smaller than the request
        (4 * GIB, 4 * GIB, True),
        (4 * GIB - 1, 3 * GIB, False),  # below a twentieth
        (46 * MIB, 20 * MIB, False),
    ],
)
def test_pools_count_by_their_share_and_against_the_request(pools: int, requested: int, fires: bool) -> None:
    failure = a_failure(total_bytes=80 * GIB, requested_bytes=requested, private_pool_bytes=pools)
    assert (check(failure, None, None, a_log()) is not None) is fires


def test_a_snapshot_knows_the_pools_that_old_messages_do_not() -> None:
    record = a_record(private_pool_bytes=12 * GIB)
    assert check(a_failure(requested_bytes=GIB), record, a_ledger(weights=60 * GIB), None) is not None


def test_a_capture_in_the_traceback_is_a_candidate_and_words_a_weaker_one() -> None:
    frame = Frame(
        filename="vllm/worker/model_runner.py",
        line=8,
        function="capture_model",
        code="self.capture(batch)",
    )
    captured = check(a_failure(frames=(frame,)), None, None, None)
    spoken = check(
        a_failure(),
        None,
        None,
        a_log(mentions=(Mention(topic="cuda-graphs", line=3, text="capturing CUDA graphs"),)),
    )
    assert captured is not None
    assert spoken is not None
    assert spoken.confidence < captured.confidence <= 0.6


def test_a_healthy_engine_that_captures_graphs_is_left_alone() -> None:
    log = a_log(mentions=(Mention(topic="cuda-graphs", line=3, text="CUDA graphs can take additional memory"),))
    assert check(None, None, None, log) is None
