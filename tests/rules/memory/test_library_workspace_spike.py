"""MEM706: scratch memory at the peak, and candidates by the place of the request."""

import pytest

from advisor.model.failure import Frame
from advisor.model.finding import Finding
from advisor.model.memory import Moment
from advisor.rules.memory.library_workspace_spike import (
    INNERMOST_FRAMES,
    _site,
    library_workspace_spike,
)
from advisor.rules.samples import GIB, a_failure, a_ledger


def check(*evidence: object) -> Finding | None:
    """The rule, on what is given of its evidence; the rest is not there."""
    found: Finding | None = library_workspace_spike.check(*evidence, *[None] * (4 - len(evidence)))
    return found


AUTOTUNE = "triton/runtime/autotuner.py:212 in do_bench"


@pytest.mark.parametrize(("size", "fires"), [(4 * GIB, True), (4 * GIB - 1, False)])
def test_scratch_counts_from_a_twentieth_of_the_device(size: int, fires: bool) -> None:
    ledger = a_ledger(at=Moment.PEAK, weights=30 * GIB, temporaries=size, sites=(_site(AUTOTUNE, size),))
    assert (check(None, None, ledger) is not None) is fires


def test_what_is_left_at_the_dump_is_not_scratch() -> None:
    ledger = a_ledger(at=Moment.DUMP, temporaries=9 * GIB, sites=(_site(AUTOTUNE, 9 * GIB),))
    assert check(None, None, ledger) is None


@pytest.mark.parametrize(("depth", "fires"), [(INNERMOST_FRAMES - 1, True), (INNERMOST_FRAMES, False)])
def test_only_a_convolution_near_the_request_makes_it_a_candidate(depth: int, fires: bool) -> None:
    convolution = Frame(
        filename="torch/nn/modules/conv.py",
        line=549,
        function="_conv_forward",
        code="return F.conv2d(",
    )
    inner = tuple(Frame(filename="a.py", line=1, function="f") for _ in range(depth))
    finding = check(a_failure(frames=(convolution, *inner)), None, None)
    assert (finding is not None) is fires
    if finding is not None:
        assert finding.confidence <= 0.3
        assert finding.settles is not None
