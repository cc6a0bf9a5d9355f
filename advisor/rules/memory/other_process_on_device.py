"""Another process holds a large part of the device.

## What it means

The memory of a device is shared by all processes on it. A notebook that still runs, a killed job whose
workers survived, another user, or a second server takes what this program counts on. No change to this
program gives it back.

## How it is recognized

By arithmetic on the message: total less free less this process's use is at least 10% of the device
and 1 GiB. Where the message names no process, the sum contains this process's own context and
libraries too, so that only what exceeds 2.5 GiB counts, with less confidence. A snapshot's refused
request says what was free, which with the device's capacity gives the same sum. Or nvidia-smi lists
other processes.

## What to do

Find the processes (nvidia-smi; fuser -v /dev/nvidia* also finds those of other containers), end those that
are left over, or choose another device.

## What it is confused with

A desktop's display server and browser take some hundred MiB and are not the cause. A context with
cuBLAS and cuDNN takes 0.3 to 1.8 GiB and is this process's own. NCCL's buffers are its own too
(MEM602). Ranks of the same job on one device are MEM603, JAX or TensorFlow beside PyTorch MEM606.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.failure import Failure, LogText, ProcessMemory
from advisor.model.finding import Action, Finding, Impact, Observation, RuledOut, Severity
from advisor.rules.blocks import is_attributed
from advisor.rules.capacity import (
    CONTEXT_BYTES,
    OUTSIDE_BYTES,
    OUTSIDE_RATIO,
    is_capacity_failure,
    severity_of,
)
from advisor.rules.clues import Clue, in_words, is_report
from advisor.rules.device_shares import DeviceShares, device_shares
from advisor.rules.facts import bytes_fact
from advisor.rules.leftover_words import LEFTOVER
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.shortage import Shortage, refusal_facts, shortage_of
from advisor.rules.wording import bytes_text, count_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source
    from advisor.model.memory import AllocatorRecord, MemoryLedger
    from advisor.model.node import GpuReading, NodeReading

LEAST_OTHERS_BYTES = 1 * GIB
"""Below it are display servers, monitoring and what the driver keeps for itself."""

HALF_RATIO = 0.5
"""Share of the device from which the others are the cause whatever this process does."""

QUARTER_RATIO = 0.25
"""Share of the device from which the others are probably the cause."""

DOES_NOT_DECIDE_FACTOR = 0.6
"""Factor where the request was smaller than what was free (MEM708), or would not fit without the others either."""

LISTED_SCORE = 0.6
"""Score for a list of processes without the device's size: they hold memory, how much of it is not known."""

WORDS_SCORE = 0.5
"""Score where only the text speaks of left-over processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others:
    """What other processes hold.

    Attributes:
        held: their bytes.
        device: the device's capacity; None where the text names processes and not what they share.
        is_divided: whether the figures tell them from this process's own memory outside its allocator.
        named: those that are known.
        fact: the observation.
        own_live: live blocks of this process; None where unknown.
        requested / free: what was asked for, and what the device had free; None where unknown.
    """

    held: int
    device: int | None
    is_divided: bool
    named: tuple[ProcessMemory, ...]
    fact: Observation
    own_live: int | None = None
    requested: int | None = None
    free: int | None = None


NVIDIA_PROCESSES = "nvidia-smi; fuser -v /dev/nvidia*"
AMD_PROCESSES = "rocm-smi --showpids; fuser -v /dev/kfd"
"""How to list the processes on a card of each vendor."""


@rule("MEM601", "other-process-on-device")
def other_process_on_device(
    failure: Failure | None,
    reading: NodeReading | None,
    log: LogText | None,
    ledger: MemoryLedger | None,
    record: AllocatorRecord | None,
) -> Finding | None:
    """Others hold at least a tenth of the device."""
    shortage = shortage_of(ledger, None, record) if is_attributed(ledger) else None
    others = _of_message(failure) or _of_shortage(shortage) or _of_reading(failure, reading) or _of_list(failure)
    clue = in_words(LEFTOVER, failure, log)
    if others is None:
        if clue is None or shortage is not None or _has_figures(failure) or (failure is None and not is_report(log)):
            return None
        return _from_words(clue, failure)
    facts = [others.fact]
    if shortage is not None and is_attributed(ledger):
        facts.extend(refusal_facts(ledger, failure, record))
    if clue is not None:
        facts.append(clue.observation("the text speaks of left-over processes"))
    return Finding(
        statement=_statement(others),
        severity=severity_of(failure) if failure is not None or shortage is None else Severity.ERROR,
        confidence=_confidence(others),
        observations=tuple(facts),
        actions=_actions(others, backend=failure.backend if failure is not None else ""),
        settles=None if others.is_divided and others.named else _settles(),
        impact=Impact(recoverable_bytes=others.held if others.is_divided else others.held - CONTEXT_BYTES),
        ruled_out=_ruled_out(others),
    )


def _has_figures(failure: Failure | None) -> bool:
    return failure is not None and device_shares(failure) is not None


def _of_message(failure: Failure | None) -> _Others | None:
    shares = device_shares(failure) if failure is not None and is_capacity_failure(failure) else None
    if failure is None or shares is None or failure.total_bytes is None:
        return None
    if (failure.requested_bytes or 0) > failure.total_bytes:  # an empty device would refuse it too
        return None
    if shares.others_bytes is not None:
        return _divided(failure, shares, shares.others_bytes, failure.total_bytes)
    return _undivided(
        shares.undivided_bytes,
        failure.total_bytes,
        requested=failure.requested_bytes,
        free=failure.free_bytes,
        source=failure.source,
    )


def _of_shortage(shortage: Shortage | None) -> _Others | None:
    """What a snapshot's refused request and the device's capacity leave for others."""
    if shortage is None or shortage.requested > shortage.device:
        return None
    return _undivided(
        shortage.outside,
        shortage.device,
        requested=shortage.requested,
        free=shortage.free,
        source=shortage.source,
    )


def _undivided(outside: int | None, total: int, *, requested: int | None, free: int | None, source: Source) -> _Others | None:
    if outside is None or outside < OUTSIDE_BYTES or outside < OUTSIDE_RATIO * total:
        return None
    text = (
        f"{bytes_text(outside)} of the device's {bytes_text(total)} is neither free nor in this process's allocator "
        f"({bytes_text(CONTEXT_BYTES)} of it can be this process's own context and libraries)"
    )
    return _Others(
        held=outside,
        device=total,
        is_divided=False,
        named=(),
        fact=bytes_fact(text, outside, source),
        requested=requested,
        free=free,
    )


def _divided(failure: Failure, shares: DeviceShares, held: int, total: int) -> _Others | None:
    if held < LEAST_OTHERS_BYTES or held < OUTSIDE_RATIO * total:
        return None
    text = f"other processes hold {bytes_text(held)}, {ratio_text(held / total)} of the device{_names(shares.named)}"
    return _Others(
        held=held,
        device=total,
        is_divided=True,
        named=shares.named,
        fact=bytes_fact(text, held, failure.source),
        own_live=failure.allocated_bytes,
        requested=failure.requested_bytes,
        free=failure.free_bytes,
    )


def _of_reading(failure: Failure | None, reading: NodeReading | None) -> _Others | None:
    """What nvidia-smi lists beside this process; which one that is only its pid tells, else the largest is taken for it."""
    if failure is None or reading is None or not is_capacity_failure(failure) or _has_figures(failure):
        return None
    gpu = _gpu(failure, reading)
    if gpu is None or not gpu.total_bytes:
        return None
    sizes = sorted(
        (process for process in gpu.processes if process.used_bytes),
        key=lambda one: one.used_bytes or 0,
    )
    known = any(process.pid == failure.own_pid for process in sizes)
    rest = tuple(one for one in sizes if one.pid != failure.own_pid) if known else tuple(sizes[:-1])
    held = sum(process.used_bytes or 0 for process in rest)
    if held < LEAST_OTHERS_BYTES or held < OUTSIDE_RATIO * gpu.total_bytes:
        return None
    text = f"nvidia-smi lists {count_text(len(rest), 'other process', 'other processes')} with {bytes_text(held)}{_names(rest)}"
    fact = bytes_fact(text, held, reading.source.at(f"GPU {gpu.index}"))
    return _Others(
        held=held,
        device=gpu.total_bytes,
        is_divided=known,
        named=rest,
        fact=fact,
        own_live=failure.allocated_bytes,
        requested=failure.requested_bytes,
        free=failure.free_bytes,
    )


def _of_list(failure: Failure | None) -> _Others | None:
    """A list of processes beside a message without figures; the largest may be this process itself."""
    if failure is None or not is_capacity_failure(failure) or failure.total_bytes is not None:
        return None
    sizes = sorted(
        (one for one in failure.other_processes if one.used_bytes),
        key=lambda one: one.used_bytes or 0,
    )
    rest = tuple(sizes[:-1])
    held = sum(process.used_bytes or 0 for process in rest)
    if held < LEAST_OTHERS_BYTES:
        return None
    text = f"the text lists {count_text(len(sizes), 'process', 'processes')} on the device; all but the largest hold {bytes_text(held)}"
    return _Others(
        held=held,
        device=None,
        is_divided=True,
        named=tuple(sizes),
        fact=bytes_fact(text, held, failure.source),
    )


def _gpu(failure: Failure, reading: NodeReading) -> GpuReading | None:
    if failure.device_index is not None:
        return next((gpu for gpu in reading.gpus if gpu.index == failure.device_index), None)
    return reading.gpus[0] if len(reading.gpus) == 1 else None


def _confidence(others: _Others) -> float:
    if others.device is None:
        return LISTED_SCORE
    held = others.held if others.is_divided else max(0, others.held - CONTEXT_BYTES)
    share = held / others.device
    scores = (0.95, 0.85, 0.6) if others.is_divided else (0.9, 0.75, 0.5)
    score = scores[0] if share >= HALF_RATIO else scores[1] if share >= QUARTER_RATIO else scores[2]
    requested, free = others.requested, others.free
    if requested is not None and free is not None and not free < requested <= free + held:
        score *= DOES_NOT_DECIDE_FACTOR
    return round(score, 3)


def _statement(others: _Others) -> str:
    if others.device is None:
        return f"Several processes are on the device; beside the largest, others hold {bytes_text(others.held)}."
    share = ratio_text(others.held / others.device)
    if others.is_divided:
        return (
            f"Other processes hold {bytes_text(others.held)} of the device's {bytes_text(others.device)} ({share}); "
            "this program cannot have it, whatever it changes."
        )
    return (
        f"{bytes_text(others.held)} of the device ({share}) is outside this process's allocator, more than a context and its libraries "
        "take: another process holds it, or a library in this one (MEM602)."
    )


def _names(processes: tuple[ProcessMemory, ...]) -> str:
    if not processes:
        return ""
    largest = sorted(processes, key=lambda one: -(one.used_bytes or 0))[:3]
    words = [
        f"pid {one.pid}" + (f" ({one.name})" if one.name else "") + (f" {bytes_text(one.used_bytes)}" if one.used_bytes is not None else "")
        for one in largest
    ]
    return ": " + ", ".join(words) + (", ..." if len(processes) > len(largest) else "")


def _actions(others: _Others | None, *, backend: str = "") -> tuple[Action, ...]:
    pids = " ".join(str(one.pid) for one in others.named[:8]) if others is not None else ""
    return (
        Action(
            title="End what is left over",
            change=f"ps -fp {pids.replace(' ', ',')}  # then kill those that nobody needs"
            if pids
            else f"{AMD_PROCESSES if backend == 'HIP' else NVIDIA_PROCESSES}  # then kill those that nobody needs",
            cost="whoever owns the process loses it",
        ),
        Action(title="Use a device that is free", change="CUDA_VISIBLE_DEVICES=N python train.py  # N: one that nvidia-smi shows empty"),
    )


def _settles() -> Action:
    return Action(
        title="List the processes at the moment of the failure",
        change="nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv -l 1 > processes.csv",
    )


def _ruled_out(others: _Others) -> tuple[RuledOut, ...]:
    if not others.is_divided or others.own_live is None or others.device is None:
        return ()
    if others.own_live >= HALF_RATIO * others.device:
        return ()
    because = f"this process's live tensors take only {bytes_text(others.own_live)} of {bytes_text(others.device)}"
    return (RuledOut(code="MEM201", because=because),)


def _from_words(clue: Clue, failure: Failure | None) -> Finding:
    return Finding(
        statement="The text speaks of processes that still hold the device's memory.",
        severity=severity_of(failure) if is_capacity_failure(failure) else Severity.WARNING,
        confidence=WORDS_SCORE,
        observations=(clue.observation("the text speaks of left-over processes"),),
        actions=_actions(None),
        settles=_settles(),
    )


def fires() -> Case:
    """A server of 52 GiB runs on the same device; this process has 22 GiB."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            free_bytes=1 * GIB,
            allocated_bytes=21 * GIB,
            reserved_unallocated_bytes=400 * MIB,
            process_bytes=22 * GIB,
            other_processes=(ProcessMemory(pid=4711, used_bytes=52 * GIB),),
        )
    )


def clean() -> Case:
    """A desktop: the display server takes 200 MiB of a device that this process fills."""
    return a_case(
        a_failure(
            total_bytes=int(23.65 * GIB),
            requested_bytes=64 * MIB,
            free_bytes=30 * MIB,
            allocated_bytes=22 * GIB,
            reserved_unallocated_bytes=40 * MIB,
            process_bytes=int(23.1 * GIB),
            other_processes=(ProcessMemory(pid=1200, used_bytes=200 * MIB, name="Xorg"),),
        )
    )
