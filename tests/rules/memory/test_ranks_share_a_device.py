"""MEM603: ranks on one device, and not ranks that each call their own device 0."""

from advisor.model.evidence import Source
from advisor.model.failure import Failure, Mention, ProcessMemory
from advisor.model.node import GpuReading, NodeReading
from advisor.rules.memory.ranks_share_a_device import ranks_share_a_device
from advisor.rules.samples import GIB, MIB, a_failure, a_log

check = ranks_share_a_device.check


def a_rank(rank: int | None, *, own: int, others: tuple[int, ...] = (), device_index: int = 0) -> Failure:
    return a_failure(
        rank=rank, device_index=device_index, total_bytes=80 * GIB, requested_bytes=GIB, free_bytes=0, allocated_bytes=own - GIB,
        reserved_unallocated_bytes=0, process_bytes=own,
        other_processes=tuple(ProcessMemory(pid=index, used_bytes=size) for index, size in enumerate(others)),
    )  # fmt: skip


def test_a_rank_on_a_foreign_device_with_others_on_it_shares_it() -> None:
    assert check(a_rank(2, own=30 * GIB, others=(50 * GIB,)), a_log(world_size=4), None) is not None


def test_device_0_alone_proves_nothing() -> None:
    log = a_log(world_size=4)
    assert check(a_rank(2, own=79 * GIB), log, None) is None  # alone on what it calls 0
    assert check(a_rank(2, own=30 * GIB, device_index=2), log, None) is None  # its own device, another job on it
    assert check(a_rank(12, own=30 * GIB), a_log(world_size=16), None) is None  # another node numbers anew


def test_bare_contexts_of_the_other_ranks_are_recognized() -> None:
    failure = a_rank(None, own=78 * GIB, others=(500 * MIB, 500 * MIB, 500 * MIB))
    assert check(failure, a_log(world_size=4), None) is not None
    assert check(failure, a_log(world_size=2), None) is None  # more processes than ranks
    assert check(failure, a_log(), None) is None


def a_node(*names: tuple[str, ...]) -> NodeReading:
    gpus = tuple(
        GpuReading(
            index=index, total_bytes=80 * GIB, used_bytes=GIB if not held else 40 * GIB,
            processes=tuple(ProcessMemory(pid=pid, used_bytes=10 * GIB, name=name) for pid, name in enumerate(held)),
        )
        for index, held in enumerate(names)
    )  # fmt: skip
    return NodeReading(source=Source(path="smi.txt"), gpus=gpus)


def test_a_crowded_device_beside_an_empty_one_is_seen() -> None:
    log = a_log(world_size=2)
    assert check(None, log, a_node(("python", "python"), ())) is not None
    assert check(None, log, a_node(("python",), ("python",))) is None
    assert check(None, log, a_node(("server", "python"), ())) is None
    assert check(None, a_log(), a_node(("python", "python"), ())) is None  # nothing failed, no job is known


def test_a_report_may_say_it() -> None:
    said = Mention(topic="map-location", line=1, text="all ranks load the checkpoint to cuda:0")
    assert check(None, a_log(line_count=3, mentions=(said,)), None) is not None
    assert check(None, a_log(line_count=900, mentions=(said,)), None) is None
