"""One single request is larger than the device, or nearly as large.

## What it means

No tensor of a sane job is larger than the whole device. Such a request comes from a shape that grew
by mistake (a broadcast to N × N, a wrong dimension, a mask over all tokens), from an index that was
read as a size, or from a program that was written for a larger card.

## How it is recognized

The refused request exceeds the device's total, by the message's own figures or by a snapshot's event and
the known capacity; or it is three quarters of it and more, which leaves no room for what it is computed
from.

## What to do

Print the shape of the operands in the failing line. The square that the request corresponds to often
tells which dimension was doubled.

## What it is confused with

Logits (MEM203) and attention scores (MEM202), which are that large at long sequences and are named
where their shape fits. A device that reports less than it has (MEM604).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.failure import Failure, Frame
from advisor.model.finding import Action, Finding, Impact, Observation, RuledOut, Severity
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.blocks import is_attributed
from advisor.rules.capacity import (
    failure_fact,
    idle_reserved_bytes,
    is_capacity_failure,
    severity_of,
)
from advisor.rules.clues import frame_text, quoted
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure
from advisor.rules.shortage import refusal_facts
from advisor.rules.tensor_shapes import side_of_square
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source

NEARLY_RATIO = 0.75
"""Share of the device from which one request cannot stand beside what it is computed from."""

EXCEEDS_SCORE = 0.85
"""Score where the request exceeds the device: no other change makes it fit."""

NEARLY_SCORE = 0.45
"""Score where it is most of the device: a large model's cache is allocated in one piece too."""

ABSURD_BYTES = 1 << 50
"""Beyond a PiB a request is garbage that was read as a size, and MEM709 says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One refused request, bytes; the facts that tell of it, and what was reserved and unused then, where known."""

    size: int
    device: int
    idle: int | None
    facts: tuple[Observation, ...]
    source: Source
    severity: Severity


@rule("MEM701", "request-exceeds-device")
def request_exceeds_device(failure: Failure | None, ledger: MemoryLedger | None, record: AllocatorRecord | None) -> Finding | None:
    """The request is larger than the device, or most of it."""
    request = _of_message(failure) or _of_record(ledger, record)
    if request is None or request.size >= ABSURD_BYTES or request.size < NEARLY_RATIO * request.device:
        return None
    exceeds = request.size > request.device
    place = failure.frames[-1] if failure is not None and failure.frames else None
    shape = Observation(
        statement=f"{bytes_text(request.size)} is {request.size // 4:,} numbers in fp32 or {request.size // 2:,} in bf16: a square of "
        f"{side_of_square(request.size, 4):,} or {side_of_square(request.size, 2):,} a side",
        source=request.source,
        value=float(request.size // 4),
        unit="count",
    )
    where = (Observation(statement=f'asked for by "{quoted(frame_text(place))}"', source=request.source),) if place is not None else ()
    return Finding(
        statement=f"One request of {bytes_text(request.size)} is "
        + (
            f"larger than the whole device ({bytes_text(request.device)}): look for a shape that grew by mistake."
            if exceeds
            else f"{ratio_text(request.size / request.device)} of the whole device ({bytes_text(request.device)}) in one piece."
        ),
        severity=request.severity,
        confidence=EXCEEDS_SCORE if exceeds else NEARLY_SCORE,
        observations=(*request.facts, shape, *where),
        actions=(
            Action(
                title="Print the shapes in the failing line",
                change="print(a.shape, b.shape, a.dtype)  # a broadcast of (N, 1) with (1, N) makes N × N",
            ),
            Action(
                title="If the shape is meant to be so, do it in pieces",
                change="for part in x.split(n): ...",
                cost="more launches",
            ),
        ),
        impact=Impact(recoverable_bytes=request.size if exceeds else None),
        ruled_out=_ruled_out(request),
        supersedes=("MEM201", "MEM101", "MEM102") if exceeds else (),
    )


def _of_message(failure: Failure | None) -> _Request | None:
    if failure is None or not is_capacity_failure(failure) or failure.requested_bytes is None or not failure.total_bytes:
        return None
    return _Request(
        size=failure.requested_bytes,
        device=failure.total_bytes,
        idle=idle_reserved_bytes(failure),
        facts=(failure_fact(failure),),
        source=failure.source,
        severity=severity_of(failure),
    )


def _of_record(ledger: MemoryLedger | None, record: AllocatorRecord | None) -> _Request | None:
    """The refused request of a snapshot, on a device whose capacity is known."""
    if not is_attributed(ledger) or ledger.device_bytes is None or record is None or record.oom_requested_bytes is None:
        return None
    known = ledger.at is Moment.OOM and ledger.reserved_bytes is not None and ledger.allocated_bytes is not None
    return _Request(
        size=record.oom_requested_bytes,
        device=ledger.device_bytes,
        idle=(ledger.reserved_bytes or 0) - (ledger.allocated_bytes or 0) if known else None,
        facts=refusal_facts(ledger, None, record),
        source=record.source,
        severity=Severity.ERROR,
    )


def _ruled_out(request: _Request) -> tuple[RuledOut, ...]:
    if request.idle is None or request.idle >= request.size:
        return ()
    return (RuledOut(code="MEM401", because=f"only {bytes_text(request.idle)} is reserved and unused"),)


def fires() -> Case:
    """A distance matrix of all points with all points, 256 GiB."""
    return a_case(
        a_failure(
            requested_bytes=256 * GIB,
            allocated_bytes=2 * GIB,
            free_bytes=76 * GIB,
            frames=(
                Frame(
                    filename="points.py",
                    line=22,
                    function="distances",
                    code="return (x[:, None] - x[None]).pow(2).sum(-1)",
                ),
            ),
        )
    )


def clean() -> Case:
    """A large request on a device that is nearly full: a third of the device, not more than it."""
    return a_case(a_failure(requested_bytes=26 * GIB, allocated_bytes=60 * GIB, free_bytes=10 * GIB))
