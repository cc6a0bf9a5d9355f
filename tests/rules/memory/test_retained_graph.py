"""MEM502 tells a loss kept as a tensor from one kept as a number."""

import pytest

from advisor.model.failure import Frame, Mention
from advisor.model.memory import AllocationSite
from advisor.rules.memory.retained_graph import (
    GRAPH_RATIO,
    RETAINED_SCORE,
    SUMMED_SCORE,
    retained_graph,
)
from advisor.rules.samples import MIB, a_failure, a_log, a_record

check = retained_graph.check


def a_site(block: str, live_bytes: int) -> AllocationSite:
    return AllocationSite(label="m.py:1 in f", block=block, live_bytes=live_bytes, count=9, largest_bytes=MIB, why="")


@pytest.mark.parametrize(("ratio", "fires"), [(GRAPH_RATIO, True), (GRAPH_RATIO - 0.01, False)])
def test_half_of_the_growth_is_saved_for_backward(ratio: float, fires: bool) -> None:
    saved = int(ratio * 1000 * MIB)
    record = a_record(
        growth_bytes_per_step=5.0 * MIB,
        growth_sites=(a_site("activations", saved), a_site("temporaries", 1000 * MIB - saved)),
    )
    assert (check(record, None, None) is not None) is fires


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("total_loss += loss", SUMMED_SCORE),
        ("sum_likelihood += neg_log_likelihood", SUMMED_SCORE),
        ("total_loss += loss.item()", 0.0),
        ("total_loss += loss.detach()", 0.0),
        ("losses are added without .item()", SUMMED_SCORE),
    ],
)
def test_how_a_loss_is_summed(text: str, score: float) -> None:
    log = a_log(mentions=(Mention(topic="loss-accumulation", line=1, text=text),))
    finding = check(None, a_failure(), log)
    assert (finding.confidence if finding else 0.0) == score


def test_retain_graph_in_the_failing_line() -> None:
    frame = Frame(filename="t.py", line=1, function="train", code="loss.backward(retain_graph=True)")
    finding = check(None, a_failure(frames=(frame,)), None)
    assert finding is not None
    assert finding.confidence == RETAINED_SCORE
    assert finding.supersedes == ("MEM501",)
