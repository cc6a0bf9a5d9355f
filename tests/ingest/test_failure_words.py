"""Words about memory that say that nothing failed."""

import pytest

from advisor.ingest.log_text import read_log
from advisor.model.failure import Failure


def failures(text):
    return [item for item in read_log(text.encode(), "log") if isinstance(item, Failure)]


@pytest.mark.parametrize(
    "line",
    [
        "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |",
        "num_ooms: 0",
        "finished without OOM",
        "no out of memory errors were seen",
        "training finished, no OOM",
        "this release fixes the out of memory error of the last one",
        "never ran out of memory",
        "Reason: OOMKilled never",
        "RESOURCE_EXHAUSTED errors: 0",
        "    with pytest.raises(torch.cuda.OutOfMemoryError):",
        "If capture fails with out of memory, set --mem-fraction-static 0.8",
        "to avoid out of memory errors, use a smaller batch",
    ],
)
def test_a_line_that_says_that_memory_sufficed_is_no_failure(line):
    assert failures(line + "\n") == []


@pytest.mark.parametrize(
    "line",
    ["OOM after 3 epochs", "it ran out of memory in evaluation", "CUDA OOM in forward", "[rank 0] OOM in forward", "it did not help: OOM"],
)
def test_a_line_that_says_that_it_did_not_is_one(line):
    assert len(failures(line + "\n")) == 1
