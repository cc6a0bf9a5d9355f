"""MEM301 knows the cache by its block or by the frames that append to it."""

from advisor.model.failure import FailureKind, Frame, Phase
from advisor.model.memory import Moment
from advisor.rules.memory.kv_cache_dominates import (
    APPENDING_SCORE,
    GENERATION_SCORE,
    REFUSED_SCORE,
    kv_cache_dominates,
)
from advisor.rules.samples import GIB, a_failure, a_ledger, a_record

check = kv_cache_dominates.check
APPEND = Frame(filename="m.py", line=1, function="forward", code="key = torch.cat([past_key, key], dim=-2)")


def score(**fields: object) -> float:
    finding = check(a_failure(**fields), None, None, None)
    return finding.confidence if finding else 0.0


def test_frames_that_append_are_surer_than_the_phase() -> None:
    assert score(phase=Phase.GENERATION, frames=(APPEND,)) == APPENDING_SCORE
    assert score(phase=Phase.GENERATION) == GENERATION_SCORE
    assert score(phase=Phase.BACKWARD, frames=(APPEND,)) == 0.0
    assert score(kind=FailureKind.KV_CACHE_REFUSED) == REFUSED_SCORE


def test_a_snapshot_with_the_cache_as_the_largest_block() -> None:
    ledger = a_ledger(at=Moment.OOM, weights=16 * GIB, kv_cache=60 * GIB)
    finding = check(None, None, ledger, a_record(oom_count=1, oom_requested_bytes=GIB))
    assert finding is not None
    assert finding.actions[0].predicted.fits is True
    roomy = a_ledger(weights=16 * GIB, kv_cache=40 * GIB)
    assert check(None, None, roomy, a_record()) is None
