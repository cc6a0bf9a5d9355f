"""MEM604: a device below its name's size, and not the few percent that ECC takes."""

import pytest

from advisor.model.evidence import Source
from advisor.model.failure import Mention
from advisor.model.node import GpuReading, NodeReading
from advisor.rules.memory.device_smaller_than_expected import (
    _ceilings,
    device_smaller_than_expected,
)
from advisor.rules.samples import GIB, a_failure, a_log

check = device_smaller_than_expected.check


@pytest.mark.parametrize(("total", "fires"), [(64 * GIB - 1, True), (64 * GIB, False), (int(79.15 * GIB), False)])
def test_it_takes_a_fifth_less_than_the_catalogue(total: int, fires: bool) -> None:
    assert (check(a_failure(total_bytes=total), _ceilings(80 * GIB), None, None) is not None) is fires


def test_a_slice_is_recognized_by_its_size() -> None:
    gpu = GpuReading(index=0, total_bytes=80 * GIB, mig_devices=(("2g.20gb", int(19.5 * GIB)),))
    reading = NodeReading(source=Source(path="smi.txt"), gpus=(gpu,))
    assert check(a_failure(total_bytes=int(19.4 * GIB)), None, reading, None) is not None
    assert check(a_failure(total_bytes=int(79.15 * GIB)), None, reading, None) is None


@pytest.mark.parametrize(
    ("requested", "allocated", "fires"),
    [(16 * GIB, 0, True), (15 * GIB, 0, False), (31 * GIB, 0, False), (16 * GIB, GIB, False)],
)
def test_a_first_request_somewhat_beyond_the_device_is_a_candidate(requested: int, allocated: int, fires: bool) -> None:
    failure = a_failure(total_bytes=int(15.24 * GIB), requested_bytes=requested, allocated_bytes=allocated)
    finding = check(failure, None, None, a_log())
    assert (finding is not None) is fires
    if finding is not None:
        assert finding.confidence < 0.5


def test_words_of_a_carve_out_make_it_the_likelier_one() -> None:
    failure = a_failure(total_bytes=int(15.24 * GIB), requested_bytes=16 * GIB, allocated_bytes=0)
    log = a_log(mentions=(Mention(topic="carve-out", line=1, text="96 GB carve-out in the firmware"),))
    finding = check(failure, None, None, log)
    assert finding is not None
    assert "MEM701" in finding.supersedes
