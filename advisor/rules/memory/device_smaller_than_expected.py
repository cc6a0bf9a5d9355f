"""The device has less memory than the one the job was meant for.

## What it means

A MIG slice, a board of another size, an integrated GPU with a small carve-out, or a scheduler that handed
out another card: the program is as it should be and the device is not.

## How it is recognized

The runtime's total is less than 80% of what the catalogue gives for the device's name, or matches a
MIG slice of a larger device. Runtimes report up to 9% less than the nominal size (ECC, firmware),
which is not meant. Without a name, the very first request of a process that exceeds the whole device,
by less than a factor of two, makes it a candidate.

## What to do

Ask for the device that was meant, or change the partition or the carve-out.

## What it is confused with

A request that exceeds any device (MEM701). A cap on this process (MEM605) leaves the total as it is.
Another process (MEM601) takes from what is free, not from the total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.ceilings import DeviceCeilings
from advisor.model.dataclass import dataclass
from advisor.model.finding import Action, Finding, Observation, RuledOut, Severity
from advisor.rules.capacity import is_capacity_failure, severity_of
from advisor.rules.clues import quoted
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, LOG, a_case, a_failure
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure, LogText
    from advisor.model.node import NodeReading

LEAST_RATIO = 0.8
"""Reported over nominal below which it is another device: ECC and firmware take at most 9%."""

SLICE_TOLERANCE_RATIO = 0.05
"""How near the reported total must be to the size of a MIG slice."""

FIRST_REQUEST_SCORE = 0.4
STATED_SCORE = 0.7
"""Scores of a first request beyond the device: alone, and where the text speaks of a carve-out or a slice."""

FIRST_REQUEST_FACTOR = 2.0
"""Request over total up to which the program may simply have been meant for the next larger device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Smaller:
    reported: int
    expected: int
    score: float
    why: str
    facts: tuple[Observation, ...]


@rule("MEM604", "device-smaller-than-expected")
def device_smaller_than_expected(
    failure: Failure | None,
    ceilings: DeviceCeilings | None,
    reading: NodeReading | None,
    log: LogText | None,
) -> Finding | None:
    """The reported total is below what the name promises."""
    found = _below_catalogue(failure, ceilings) or _slice(failure, reading) or _first_request(failure, log)
    if found is None:
        return None
    failed = is_capacity_failure(failure)
    return Finding(
        statement=f"The device has {bytes_text(found.reported)}, {ratio_text(found.reported / found.expected)} of the "
        f"{bytes_text(found.expected)} that {found.why}.",
        severity=severity_of(failure) if failed else Severity.WARNING,
        confidence=found.score,
        observations=found.facts,
        actions=(
            Action(
                title="Ask for the device that was meant",
                change="nvidia-smi -L; in Slurm --gres=gpu:a100:1, in Kubernetes a node selector or resource name without mig-",
            ),
            Action(
                title="Change the partition or the carve-out",
                change="nvidia-smi mig -lgi  # larger instance; integrated GPUs: UMA frame buffer size in the firmware, amdgpu.gttsize",
                cost="needs an administrator, and no process on the device",
            ),
        ),
        settles=Action(
            title="Print what the runtime sees",
            change="torch.cuda.get_device_properties(0)  # name and total_memory",
        ),
        ruled_out=_ruled_out(failure),
        supersedes=("MEM701",) if found.score >= STATED_SCORE else (),
    )


def _below_catalogue(failure: Failure | None, ceilings: DeviceCeilings | None) -> _Smaller | None:
    reported = failure.total_bytes if failure is not None else None
    if failure is None or reported is None or ceilings is None or not ceilings.memory_bytes:
        return None
    if reported >= LEAST_RATIO * ceilings.memory_bytes:
        return None
    return _Smaller(
        reported=reported,
        expected=ceilings.memory_bytes,
        score=0.9,
        why=f"{ceilings.matched_name or ceilings.name} has",
        facts=(
            _total(reported, failure.source),
            bytes_fact(
                f"{ceilings.name} has {bytes_text(ceilings.memory_bytes)}",
                ceilings.memory_bytes,
                ceilings.source,
            ),
        ),
    )


def _slice(failure: Failure | None, reading: NodeReading | None) -> _Smaller | None:
    if failure is None or failure.total_bytes is None or reading is None:
        return None
    for gpu in reading.gpus:
        for name, size in gpu.mig_devices:
            near = abs(size - failure.total_bytes) <= SLICE_TOLERANCE_RATIO * size
            if near and gpu.total_bytes and size < LEAST_RATIO * gpu.total_bytes:
                text = f"GPU {gpu.index} is divided, and its slice {name} has {bytes_text(size)}"
                return _Smaller(
                    reported=failure.total_bytes,
                    expected=gpu.total_bytes,
                    score=0.85,
                    why="the whole device has: it is a MIG slice",
                    facts=(
                        _total(failure.total_bytes, failure.source),
                        bytes_fact(text, size, reading.source.at(f"GPU {gpu.index}")),
                    ),
                )
    return None


def _first_request(failure: Failure | None, log: LogText | None) -> _Smaller | None:
    if failure is None or not is_capacity_failure(failure) or failure.allocated_bytes != 0:
        return None
    requested, total = failure.requested_bytes, failure.total_bytes
    if requested is None or not total or not total < requested <= FIRST_REQUEST_FACTOR * total:
        return None
    mention = log.mentioned("carve-out", "mig") if log is not None else None
    facts = [
        _total(total, failure.source),
        bytes_fact(f"the first request was {bytes_text(requested)}", requested, failure.source),
    ]
    if log is not None and mention is not None:
        said = f'the text speaks of a part of a device: "{quoted(mention.text)}"'
        facts.append(plain_fact(said, log.source.at(f"line {mention.line}")))
    return _Smaller(
        reported=total,
        expected=requested,
        score=STATED_SCORE if mention is not None else FIRST_REQUEST_SCORE,
        why="this process asked for before it had anything, as if it were meant for a larger device",
        facts=tuple(facts),
    )


def _total(reported: int, source: Source) -> Observation:
    return bytes_fact(f"the runtime reports {bytes_text(reported)} in all", reported, source)


def _ruled_out(failure: Failure | None) -> tuple[RuledOut, ...]:
    if failure is None or failure.allowed_bytes is not None:
        return ()
    return (
        RuledOut(
            code="MEM605",
            because="the total itself is small; the message names no cap on this process",
        ),
    )


def fires() -> Case:
    """A job written for an 80 GiB A100 runs on a slice of 19.5 GiB."""
    return a_case(
        a_failure(
            total_bytes=int(19.5 * GIB),
            requested_bytes=2 * GIB,
            free_bytes=1 * GIB,
            allocated_bytes=17 * GIB,
        ),
        _ceilings(80 * GIB),
    )


def clean() -> Case:
    """A 16 GB card with ECC reports 14.6 GiB."""
    return a_case(
        a_failure(
            total_bytes=int(14.56 * GIB),
            requested_bytes=2 * GIB,
            free_bytes=1 * GIB,
            allocated_bytes=12 * GIB,
        ),
        _ceilings(16 * GIB),
    )


def _ceilings(memory_bytes: int) -> DeviceCeilings:
    return DeviceCeilings(
        source=LOG,
        name="A100 SXM4 80GB" if memory_bytes > 16 * GIB else "T4",
        matched_name="NVIDIA A100-SXM4-80GB" if memory_bytes > 16 * GIB else "Tesla T4",
        vendor="NVIDIA",
        architecture="Ampere" if memory_bytes > 16 * GIB else "Turing",
        capability="8.0" if memory_bytes > 16 * GIB else "7.5",
        sm_count=None,
        memory_bytes=memory_bytes,
        bandwidth=None,
        dense_peaks={},
        measured_peaks={},
    )
