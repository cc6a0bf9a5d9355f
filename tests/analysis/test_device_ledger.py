"""A snapshot's ledger closed to the device by the driver's figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingest.a_snapshot import FORWARD, MIB, MOVE, Allocator, read

from advisor.analysis.device_ledger import device_ledger
from advisor.model.ceilings import DeviceCeilings
from advisor.model.dataclass import replace
from advisor.model.evidence import Source
from advisor.model.failure import ProcessMemory
from advisor.model.memory import Moment
from advisor.model.node import GpuReading, NodeReading
from advisor.rules.samples import GIB, a_failure

PRINTED = 5_368_709
"""Half of the last digit of "79.15 GiB", bytes."""


def a_refusal(device=1, requested=2 * GIB, free=256 * MIB, live=GIB):
    """A snapshot of a process that holds `live` bytes, and was refused `requested` with `free` left."""
    allocator = Allocator(device=device)
    for _ in range(4):
        allocator.alloc(live // 8, MOVE)
    for _ in range(4):
        allocator.alloc(live // 8, FORWARD[:1] + FORWARD)
    allocator.fail(requested, free)
    return allocator


def a_card(memory_bytes=80 * GIB, **fields):
    return DeviceCeilings(
        source=Source(path="command line"),
        name="card",
        matched_name="card",
        vendor="NVIDIA",
        architecture="",
        capability="",
        sm_count=None,
        memory_bytes=memory_bytes,
        bandwidth=None,
        dense_peaks={},
        measured_peaks={},
        **fields,
    )


def the_ledger(allocator, *, failures=(), reading=None, ceilings=()):
    (ledger,) = device_ledger(read(allocator.raw()), failures, None, reading, ceilings)
    return ledger


def held(ledger):
    return sum(size for size in ledger.entries.values() if size is not None)


def a_message(**fields):
    """The message of the same refusal."""
    base = {"device_index": 1, "requested_bytes": 2 * GIB, "free_bytes": 256 * MIB, "resolution_bytes": PRINTED}
    return a_failure(**(base | fields))


def test_what_the_driver_had_free_is_in_the_ledger_without_any_capacity():
    ledger = the_ledger(a_refusal())
    assert ledger.at is Moment.OOM
    assert ledger.entries["free"] == 256 * MIB
    assert ledger.device_bytes is None
    assert held(ledger) == ledger.reserved_bytes + 256 * MIB
    assert any("--device" in note for note in ledger.notes)


def test_with_a_declared_device_the_rest_is_named_as_outside_pytorch():
    ledger = the_ledger(a_refusal(), ceilings=(a_card(),))
    assert ledger.device_bytes == held(ledger) == 80 * GIB
    assert ledger.outside_bytes == ledger.unsplit_bytes == 80 * GIB - GIB - 256 * MIB
    assert ledger.entries["other_processes"] is None
    assert ledger.entries["non_pytorch"] is None
    assert any("outside PyTorch" in note and "as declared" in note for note in ledger.notes)
    assert ledger.kept_bytes == 0


def test_of_a_maker_s_figure_the_driver_keeps_a_part():
    ledger = the_ledger(a_refusal(), ceilings=(a_card(memory_kind="HBM3", unverified=("memory_bytes",)),))
    assert ledger.kept_bytes == 80 * GIB - int(0.98 * 80 * GIB)
    assert any("80 GB of HBM3 (not verified)" in note for note in ledger.notes)
    full = the_ledger(a_refusal(live=GIB, free=79 * GIB - MIB), ceilings=(a_card(memory_kind="HBM3"),))
    assert full.kept_bytes == full.unsplit_bytes == MIB


def test_a_message_of_the_same_refusal_divides_what_lies_outside():
    failure = a_message(process_bytes=3 * GIB, other_processes=(ProcessMemory(pid=7, used_bytes=70 * GIB),))
    ledger = the_ledger(a_refusal(), failures=(failure,), ceilings=(a_card(),))
    assert ledger.device_bytes == held(ledger) == failure.total_bytes
    assert ledger.entries["non_pytorch"] == 2 * GIB
    assert ledger.entries["other_processes"] == 70 * GIB
    assert ledger.unsplit_bytes == failure.total_bytes - 256 * MIB - 3 * GIB - 70 * GIB


@pytest.mark.parametrize(
    "other",
    [
        {"requested_bytes": 3 * GIB},
        {"free_bytes": 300 * MIB},
        {"requested_bytes": None},
        {"free_bytes": None},
    ],
)
def test_a_message_of_another_refusal_tells_the_capacity_and_nothing_else(other):
    failure = a_message(process_bytes=3 * GIB, **other)
    ledger = the_ledger(a_refusal(), failures=(failure,))
    assert ledger.device_bytes == failure.total_bytes
    assert ledger.entries["non_pytorch"] is None
    assert ledger.entries["free"] == 256 * MIB


def test_a_small_request_is_the_same_refusal_though_messages_print_the_segment():
    failure = a_message(requested_bytes=20 * MIB, resolution_bytes=5000, process_bytes=3 * GIB)
    ledger = the_ledger(a_refusal(requested=3 * MIB), failures=(failure,))
    assert ledger.entries["non_pytorch"] == 2 * GIB


def test_a_message_of_another_device_is_not_heard():
    ledger = the_ledger(a_refusal(), failures=(a_message(device_index=0, total_bytes=24 * GIB),))
    assert ledger.device_bytes is None


def test_a_message_without_a_device_is_the_only_device_s():
    ledger = the_ledger(a_refusal(), failures=(a_message(device_index=None, total_bytes=24 * GIB),))
    assert ledger.device_bytes == 24 * GIB


def test_a_capacity_that_is_too_small_is_another_device_s():
    ledger = the_ledger(a_refusal(live=8 * GIB), ceilings=(a_card(8 * GIB),))
    assert ledger.device_bytes is None
    assert ledger.unsplit_bytes == 0
    assert any("another device's figure" in gap for gap in ledger.gaps)


def test_a_printed_capacity_may_be_low_by_half_a_digit():
    exact = GIB + 256 * MIB
    within = the_ledger(a_refusal(), failures=(a_message(total_bytes=exact - PRINTED),))
    assert within.device_bytes == held(within) == exact
    beyond = the_ledger(a_refusal(), failures=(a_message(total_bytes=exact - PRINTED - 1),))
    assert beyond.device_bytes is None


def test_at_a_peak_the_rest_of_the_device_is_not_called_outside():
    allocator = Allocator()
    allocator.alloc(GIB, FORWARD)
    ledger = the_ledger(allocator, ceilings=(a_card(),))
    assert ledger.at is Moment.PEAK
    assert ledger.device_bytes == held(ledger) == 80 * GIB
    assert ledger.entries["free"] is None
    assert ledger.outside_bytes is None
    assert ledger.unsplit_bytes == 79 * GIB
    assert any("it is free or lies outside" in note for note in ledger.notes)


def a_reading(*totals):
    return NodeReading(
        source=Source(path="smi.txt"), gpus=tuple(GpuReading(index=index, total_bytes=total) for index, total in enumerate(totals))
    )


def test_nvidia_smi_tells_the_capacity_where_all_its_gpus_are_alike():
    assert the_ledger(a_refusal(), reading=a_reading(24 * GIB, 24 * GIB)).device_bytes == 24 * GIB
    assert the_ledger(a_refusal(), reading=a_reading(24 * GIB, 48 * GIB)).device_bytes is None
    assert the_ledger(a_refusal(), reading=a_reading()).device_bytes is None


def test_two_kinds_of_declared_devices_tell_nothing():
    assert the_ledger(a_refusal(), ceilings=(a_card(), a_card(40 * GIB))).device_bytes is None
    assert the_ledger(a_refusal(), ceilings=(a_card(None),)).device_bytes is None


def test_an_event_without_the_driver_s_figure_leaves_free_unknown():
    allocator = a_refusal()
    del allocator.events[-1]["device_free"]
    ledger = the_ledger(allocator, ceilings=(a_card(),))
    assert ledger.at is Moment.OOM
    assert ledger.entries["free"] is None
    assert ledger.outside_bytes is None
    assert held(ledger) == 80 * GIB


@given(
    st.integers(0, 90 * GIB),
    st.one_of(st.none(), st.integers(0, 100 * GIB)),
    st.lists(st.integers(0, 90 * GIB), max_size=3),
    st.integers(1, 100 * GIB),
)
def test_the_ledger_closes_whatever_the_message_says(free, own, others, total):
    processes = tuple(ProcessMemory(pid=10 + number, used_bytes=used) for number, used in enumerate(others))
    failure = a_message(free_bytes=free, total_bytes=total, process_bytes=own, other_processes=processes)
    ledger = the_ledger(a_refusal(free=free), failures=(failure,))
    if ledger.device_bytes is None:
        assert held(ledger) == ledger.reserved_bytes + free
    else:
        assert held(ledger) == ledger.device_bytes
        assert ledger.outside_bytes == ledger.device_bytes - ledger.reserved_bytes - free
    assert all(size is None or size >= 0 for size in ledger.entries.values())


def test_each_device_has_its_own_message():
    one, other = a_refusal(device=0), a_refusal(device=1)
    raw = one.raw()
    raw["segments"] += other.raw()["segments"]
    raw["device_traces"] = [one.events, other.events]
    failures = (a_message(device_index=0, total_bytes=24 * GIB), a_message(total_bytes=48 * GIB))
    ledgers = device_ledger(read(raw), failures, None, None, ())
    assert {ledger.device_index: ledger.device_bytes for ledger in ledgers} == {0: 24 * GIB, 1: 48 * GIB}
    nameless = (replace(failures[0], device_index=None),)
    assert all(ledger.device_bytes is None for ledger in device_ledger(read(raw), nameless, None, None, ()))
