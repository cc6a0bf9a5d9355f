from typing import Any

import pytest
from failure_messages import GIB, MIB, failures_of, new_cuda, old_cuda, printed, the_failure
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.text_ledger import DRIVER_SHARE_BYTES, text_ledger
from advisor.model.evidence import Source
from advisor.model.failure import Failure, FailureKind, ProcessMemory
from advisor.model.memory import BLOCKS, Basis, MemoryLedger, Moment


def a_failure(**fields: Any) -> Failure:
    base: dict[str, Any] = {
        "source": Source(path="train.log", where="line 9"),
        "kind": FailureKind.DEVICE_OUT_OF_MEMORY,
        "message": "CUDA out of memory.",
        "line": 9,
        "device_index": 0,
        "total_bytes": 80 * GIB,
        "resolution_bytes": 5 * MIB,
    }
    return Failure(**(base | fields))


def the_ledger(failure: Failure) -> MemoryLedger:
    ledger = text_ledger(failure)
    assert ledger is not None
    assert ledger.at is Moment.OOM
    assert ledger.basis is Basis.TEXT
    assert set(ledger.entries) == set(BLOCKS)
    assert sum(size for size in ledger.entries.values() if size is not None) == ledger.device_bytes
    assert all(size >= 0 for size in ledger.entries.values() if size is not None)
    return ledger


def test_a_whole_message_closes_to_the_byte() -> None:
    failure = the_failure(new_cuda(private="with 1.25 GiB allocated in private pools (e.g., CUDA Graphs), "))

    ledger = the_ledger(failure)

    assert ledger.entries["free"] == printed("1.31", GIB)
    assert ledger.entries["allocator_cached"] == printed("6.75", GIB)
    assert ledger.entries["private_pools"] == printed("1.25", GIB)
    assert ledger.entries["non_pytorch"] == printed("77.83", GIB) - printed("70.50", GIB) - printed("6.75", GIB)
    assert ledger.entries["weights"] is None
    assert ledger.allocated_bytes == printed("70.50", GIB)
    unattributed = ledger.entry("unattributed")
    assert abs(unattributed - (printed("70.50", GIB) - printed("1.25", GIB))) < 50 * MIB


def test_listed_processes_are_the_others() -> None:
    ledger = the_ledger(
        a_failure(
            free_bytes=GIB,
            process_bytes=50 * GIB,
            allocated_bytes=45 * GIB,
            reserved_bytes=48 * GIB,
            reserved_unallocated_bytes=3 * GIB,
            other_processes=(ProcessMemory(pid=7, used_bytes=20 * GIB), ProcessMemory(pid=8, used_bytes=None)),
        )
    )

    assert ledger.entries["other_processes"] == 20 * GIB
    assert ledger.entries["non_pytorch"] == 2 * GIB
    assert ledger.entries["unattributed"] == 80 * GIB - GIB - 3 * GIB - 20 * GIB - 2 * GIB


@pytest.mark.parametrize(("beyond", "expected"), [(0, None), (1, DRIVER_SHARE_BYTES + 1)])
def test_more_than_a_drivers_share_outside_the_process_is_another_process(beyond: int, expected: int | None) -> None:
    own = 80 * GIB - GIB - DRIVER_SHARE_BYTES - beyond
    ledger = the_ledger(
        a_failure(free_bytes=GIB, process_bytes=own, allocated_bytes=40 * GIB, reserved_bytes=40 * GIB, reserved_unallocated_bytes=0)
    )

    assert ledger.entries["other_processes"] == expected


def test_without_the_processs_use_the_rest_is_not_split() -> None:
    ledger = the_ledger(the_failure(old_cuda()))

    assert ledger.entries["non_pytorch"] is None
    assert ledger.entries["other_processes"] is None
    assert any("cannot be split" in note for note in ledger.notes)
    assert ledger.entries["unattributed"] == printed("15.90", GIB) - printed("768.44", MIB) - (
        printed("13.75", GIB) - printed("11.25", GIB)
    )


def test_a_process_that_does_not_know_itself_is_found_among_the_listed() -> None:
    """In a container PyTorch prints its own host process id as another process."""
    ledger = the_ledger(
        a_failure(
            free_bytes=GIB,
            allocated_bytes=70 * GIB,
            reserved_bytes=77 * GIB,
            reserved_unallocated_bytes=7 * GIB,
            other_processes=(ProcessMemory(pid=4242, used_bytes=78 * GIB),),
        )
    )

    assert ledger.entries["non_pytorch"] == GIB
    assert ledger.entries["other_processes"] is None
    assert any("4242" in note for note in ledger.notes)


def test_a_listed_process_that_fits_beside_this_one_is_another() -> None:
    ledger = the_ledger(
        a_failure(
            free_bytes=0,
            allocated_bytes=10 * GIB,
            reserved_bytes=11 * GIB,
            reserved_unallocated_bytes=GIB,
            other_processes=(ProcessMemory(pid=4242, used_bytes=60 * GIB),),
        )
    )

    assert ledger.entries["other_processes"] == 60 * GIB


def test_more_allocated_than_the_card_has_is_said_and_not_squeezed_in() -> None:
    ledger = the_ledger(
        a_failure(
            total_bytes=8 * GIB,
            free_bytes=0,
            allocated_bytes=14 * GIB,
            reserved_bytes=15 * GIB,
            reserved_unallocated_bytes=GIB,
        )
    )

    assert ledger.entries["free"] == 0
    assert ledger.entries["allocator_cached"] is None
    assert ledger.entries["unattributed"] == 8 * GIB
    assert any("exceed the device" in note for note in ledger.notes)
    assert ledger.gaps


def test_a_cap_on_the_process_is_noted() -> None:
    ledger = the_ledger(a_failure(free_bytes=70 * GIB, allowed_bytes=2 * GIB))

    assert any("capped" in note for note in ledger.notes)


def test_a_device_that_is_not_named_is_said() -> None:
    assert any("which device" in note for note in the_ledger(a_failure(device_index=None)).notes)


def test_without_the_capacity_or_for_another_kind_there_is_no_ledger() -> None:
    assert text_ledger(a_failure(total_bytes=None)) is None
    assert text_ledger(a_failure(kind=FailureKind.UNIFIED_MEMORY_LIMIT)) is None


SIZES = st.one_of(st.none(), st.integers(0, 100 * GIB))


@given(
    total=st.integers(0, 100 * GIB),
    free=SIZES,
    allocated=SIZES,
    unallocated=SIZES,
    private=SIZES,
    process=SIZES,
    others=st.lists(SIZES, max_size=3),
)
def test_any_figures_close_without_a_negative_entry(  # noqa: PLR0913, PLR0917 - one drawn figure each
    total: int,
    free: int | None,
    allocated: int | None,
    unallocated: int | None,
    private: int | None,
    process: int | None,
    others: list[int | None],
) -> None:
    the_ledger(
        a_failure(
            total_bytes=total,
            free_bytes=free,
            allocated_bytes=allocated,
            reserved_unallocated_bytes=unallocated,
            reserved_bytes=None if allocated is None or unallocated is None else allocated + unallocated,
            private_pool_bytes=private,
            process_bytes=process,
            other_processes=tuple(ProcessMemory(pid=pid, used_bytes=size) for pid, size in enumerate(others)),
        )
    )


@given(st.data())
def test_every_cut_of_a_message_closes(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from([new_cuda(), old_cuda()]))
    for failure in failures_of(message[: data.draw(st.integers(0, len(message)))]):
        if text_ledger(failure) is not None:
            the_ledger(failure)
