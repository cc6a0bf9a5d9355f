"""How the memory outside the allocator is divided."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.model.failure import ProcessMemory
from advisor.rules.device_shares import device_shares, is_oversubscribed
from advisor.rules.samples import GIB, a_failure

GIBIBYTES = st.integers(0, 30).map(lambda count: count * GIB)


@given(
    free=GIBIBYTES,
    allocated=GIBIBYTES,
    idle=GIBIBYTES,
    own=st.none() | GIBIBYTES,
    sizes=st.lists(GIBIBYTES, max_size=3),
)
def test_the_shares_are_never_negative_and_never_more_than_what_is_outside(
    free: int, allocated: int, idle: int, own: int | None, sizes: list[int]
) -> None:
    failure = a_failure(
        total_bytes=40 * GIB, free_bytes=free, allocated_bytes=allocated, reserved_unallocated_bytes=idle, process_bytes=own,
        other_processes=tuple(ProcessMemory(pid=pid, used_bytes=size) for pid, size in enumerate(sizes, start=1)),
    )  # fmt: skip
    shares = device_shares(failure)
    if shares is None:
        assert is_oversubscribed(failure)
        return
    parts = [part for part in (shares.own_bytes, shares.others_bytes, shares.undivided_bytes) if part is not None]
    assert parts
    assert all(part >= 0 for part in parts)
    if own is None and not sizes:
        assert parts == [max(0, 40 * GIB - free - allocated - idle)]


def test_this_process_and_the_others_close_the_equation() -> None:
    failure = a_failure(
        total_bytes=40 * GIB, free_bytes=GIB, allocated_bytes=20 * GIB, reserved_unallocated_bytes=GIB, process_bytes=22 * GIB,
        other_processes=(ProcessMemory(pid=7, used_bytes=15 * GIB),),
    )  # fmt: skip
    shares = device_shares(failure)
    assert shares is not None
    assert (shares.own_bytes, shares.others_bytes) == (1 * GIB, 17 * GIB)
    assert [process.pid for process in shares.named] == [7]


def test_two_processes_that_together_exceed_what_is_used_are_one() -> None:
    failure = a_failure(
        total_bytes=40 * GIB, free_bytes=0, allocated_bytes=25 * GIB, reserved_unallocated_bytes=0,
        other_processes=(ProcessMemory(pid=7, used_bytes=36 * GIB),),
    )  # fmt: skip
    shares = device_shares(failure)
    assert shares is not None
    assert (shares.own_bytes, shares.others_bytes) == (11 * GIB, 4 * GIB)


def test_a_small_named_process_is_another_one() -> None:
    failure = a_failure(
        total_bytes=40 * GIB, free_bytes=0, allocated_bytes=25 * GIB, reserved_unallocated_bytes=0,
        other_processes=(ProcessMemory(pid=7, used_bytes=10 * GIB),),
    )  # fmt: skip
    shares = device_shares(failure)
    assert shares is not None
    assert (shares.own_bytes, shares.others_bytes) == (5 * GIB, 10 * GIB)


def test_missing_figures_are_not_divided() -> None:
    assert device_shares(a_failure(free_bytes=None)) is None
    assert device_shares(a_failure(free_bytes=0, allocated_bytes=60 * GIB, reserved_unallocated_bytes=30 * GIB)) is None
