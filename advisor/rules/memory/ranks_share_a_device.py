"""Several ranks of one job are on the same device while others are idle.

## What it means

Every rank should have a device of its own. Without torch.cuda.set_device(local_rank), or with a checkpoint
loaded to cuda:0 by every rank, all of them put contexts and tensors on the first device, and that
one runs out of memory first.

## How it is recognized

The message of a rank names a device that is not its own while other processes hold a good part of
it; or several processes of the same name are on one device and another device of the node is empty;
or the text says so. That all ranks say "GPU 0" proves nothing by itself: where every rank sees only
its own device, that is what each calls it.

## What to do

Bind each rank to its device before anything touches CUDA, and load checkpoints with
map_location="cpu".

## What it is confused with

Another job on the device (MEM601). Inference engines put several processes of one name on a device on
purpose, and leave no device of theirs empty.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from advisor.model.failure import Failure, LogText, ProcessMemory
from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.rules.capacity import OUTSIDE_RATIO, is_capacity_failure, severity_of
from advisor.rules.clues import anywhere, is_report, words
from advisor.rules.device_shares import device_shares
from advisor.rules.facts import bytes_fact, count_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure, a_log
from advisor.rules.wording import bytes_text, count_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.node import GpuReading, NodeReading

RANKS_OF_A_NODE = 8
"""Largest world size that is taken for one node, so that a rank's number is its device's."""

CONTEXT_LEAST_BYTES = 200 * MIB
CONTEXT_MOST_BYTES = int(1.3 * GIB)
"""Between these a process on another rank's device is a bare context: no tensors of its own."""

IDLE_RATIO = 0.05
"""Share of a device in use below which it is idle: the driver's own part."""

SURE_SCORE = 0.7
"""Score from which the other processes on the device are taken to be ranks of this job."""

Found = tuple[float, Observation]
"""How sure it is, and the fact that says so."""

_SAID = words(
    "cuda:0|gpu0|gpu 0|device0|device 0|first gpu|same gpu|same device|duplicate gpu",
    r"(?:all|every|each|both)\b.{0,12}\b(?:rank|process|worker|replica)\w*\b.{0,60}(?:cuda:0|gpu ?0|device ?0|first gpu|same "
    r"(?:gpu|device))"
    r"|(?:cuda:0|gpu ?0|device ?0)\b.{0,30}\b(?:in|by|from|on) (?:all|every|each)\b.{0,12}\b(?:rank|process)"
    r"|duplicate gpu detected",
)


@rule("MEM603", "ranks-share-a-device")
def ranks_share_a_device(failure: Failure | None, log: LogText | None, reading: NodeReading | None) -> Finding | None:
    """Several ranks on one device."""
    found = _foreign_device(failure, log) or _bare_contexts(failure, log) or _crowded(failure, log, reading) or _said(failure, log)
    if found is None:
        return None
    score, fact = found
    return Finding(
        statement=f"Several ranks of this job are on the same device: {fact.statement}.",
        severity=severity_of(failure) if is_capacity_failure(failure) else Severity.WARNING,
        confidence=score,
        observations=(fact,),
        actions=(
            Action(
                title="Bind each rank to its device first",
                change='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # before init_process_group and any .cuda()',
            ),
            Action(
                title="Load checkpoints to host memory",
                change='torch.load(path, map_location="cpu")  # then load_state_dict; or map_location=f"cuda:{local_rank}"',
            ),
        ),
        settles=Action(
            title="See which process is on which device",
            change="nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv  # each pid should be on one device",
        ),
        supersedes=("MEM601",) if score >= SURE_SCORE else (),
    )


def _foreign_device(failure: Failure | None, log: LogText | None) -> Found | None:
    """A rank that fails on a device with another number, with others on it."""
    if failure is None or failure.rank is None or failure.device_index is None or not is_capacity_failure(failure):
        return None
    world = log.world_size if log is not None else None
    if world is None or world > RANKS_OF_A_NODE or failure.rank == failure.device_index:
        return None
    shares = device_shares(failure)
    others = shares.others_bytes if shares is not None else None
    if others is None or not failure.total_bytes or others < OUTSIDE_RATIO * failure.total_bytes:
        return None
    text = f"rank {failure.rank} of {world} failed on GPU {failure.device_index}, where other processes hold {bytes_text(others)}"
    return 0.75, bytes_fact(text, others, failure.source)


def _bare_contexts(failure: Failure | None, log: LogText | None) -> Found | None:
    """Processes of about a context each on this device, no more of them than there are other ranks."""
    world = (log.world_size if log is not None else None) or 0
    if failure is None or not is_capacity_failure(failure):
        return None
    shares = device_shares(failure)
    named = shares.named if shares is not None else ()
    bare = [one for one in named if one.used_bytes is not None and CONTEXT_LEAST_BYTES <= one.used_bytes <= CONTEXT_MOST_BYTES]
    if len(bare) < 2 or len(named) != len(bare) or len(bare) > world - 1:  # noqa: PLR2004 - several
        return None
    text = f"{count_text(len(bare), 'other process', 'other processes')} with a context and little else are on GPU {failure.device_index}"
    return 0.6, count_fact(text, len(bare), failure.source)


def _crowded(failure: Failure | None, log: LogText | None, reading: NodeReading | None) -> Found | None:
    """Several processes of one name on a device, and another device of the node with none."""
    is_distributed = log is not None and (log.world_size or 1) > 1
    if reading is None or not (is_distributed or is_capacity_failure(failure)):
        return None
    if not any(_is_idle(gpu) for gpu in reading.gpus):
        return None
    for gpu in reading.gpus:
        names = Counter(one.name for one in gpu.processes if one.name and (one.used_bytes or 0) >= CONTEXT_LEAST_BYTES)
        name, count = next(iter(names.most_common(1)), ("", 0))
        if count > 1:
            text = f"{count} processes {name} are on GPU {gpu.index} while another GPU of the node is empty"
            return 0.7 if is_distributed else 0.5, count_fact(text, count, reading.source.at(f"GPU {gpu.index}"))
    return None


def _is_idle(gpu: GpuReading) -> bool:
    if gpu.processes or gpu.used_bytes is None or not gpu.total_bytes:
        return False
    return gpu.used_bytes <= IDLE_RATIO * gpu.total_bytes


def _said(failure: Failure | None, log: LogText | None) -> Found | None:
    clue = anywhere(_SAID, failure, log) if failure is not None or is_report(log) else None
    return (0.55, clue.observation("the text says so")) if clue is not None else None


def fires() -> Case:
    """Rank 3 of 4 fails on GPU 0, where three other ranks hold 48 GiB."""
    return a_case(
        a_failure(
            rank=3,
            requested_bytes=1 * GIB,
            free_bytes=200 * MIB,
            allocated_bytes=29 * GIB,
            reserved_unallocated_bytes=300 * MIB,
            process_bytes=30 * GIB,
            other_processes=tuple(ProcessMemory(pid=pid, used_bytes=16 * GIB) for pid in (11, 12, 13)),
        ),
        a_log(world_size=4),
    )


def clean() -> Case:
    """Rank 3 sees only its own device, which it calls GPU 0, and fills it alone."""
    return a_case(
        a_failure(
            rank=3,
            requested_bytes=1 * GIB,
            free_bytes=200 * MIB,
            allocated_bytes=77 * GIB,
            reserved_unallocated_bytes=300 * MIB,
            process_bytes=int(78.5 * GIB),
        ),
        a_log(world_size=4),
    )
