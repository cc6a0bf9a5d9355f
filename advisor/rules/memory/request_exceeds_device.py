"""One single request is larger than the device, or nearly as large.

## What it means

No tensor of a sane job is larger than the whole device. Such a request comes from a shape that grew
by mistake (a broadcast to N × N, a wrong dimension, a mask over all tokens), from an index that was
read as a size, or from a program that was written for a larger card.

## How it is recognized

The refused request exceeds the device's total, by the message's own figures; or it is three quarters
of it and more, which leaves no room for what it is computed from.

## What to do

Print the shape of the operands in the failing line. The square that the request corresponds to often
tells which dimension was doubled.

## What it is confused with

Logits (MEM203) and attention scores (MEM202), which are that large at long sequences and are named
where their shape fits. A device that reports less than it has (MEM604).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, Frame
from advisor.model.finding import Action, Finding, Impact, Observation, RuledOut
from advisor.rules.capacity import (
    failure_fact,
    idle_reserved_bytes,
    is_capacity_failure,
    severity_of,
)
from advisor.rules.clues import frame_text, quoted
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, a_case, a_failure
from advisor.rules.tensor_shapes import side_of_square
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case

NEARLY_RATIO = 0.75
"""Share of the device from which one request cannot stand beside what it is computed from."""

EXCEEDS_SCORE = 0.85
"""Score where the request exceeds the device: no other change makes it fit."""

NEARLY_SCORE = 0.45
"""Score where it is most of the device: a large model's cache is allocated in one piece too."""

ABSURD_BYTES = 1 << 50
"""Beyond a PiB a request is garbage that was read as a size, and MEM709 says so."""


@rule("MEM701", "request-exceeds-device")
def request_exceeds_device(failure: Failure) -> Finding | None:
    """The request is larger than the device, or most of it."""
    request, total = failure.requested_bytes, failure.total_bytes
    if not is_capacity_failure(failure) or request is None or not total or request >= ABSURD_BYTES:
        return None
    ratio = request / total
    if ratio < NEARLY_RATIO:
        return None
    exceeds = request > total
    place = failure.frames[-1] if failure.frames else None
    shape = Observation(
        statement=f"{bytes_text(request)} is {request // 4:,} numbers in fp32 or {request // 2:,} in bf16: a square of "
        f"{side_of_square(request, 4):,} or {side_of_square(request, 2):,} a side",
        source=failure.source,
        value=float(request // 4),
        unit="count",
    )
    where = (Observation(statement=f'asked for by "{quoted(frame_text(place))}"', source=failure.source),) if place is not None else ()
    return Finding(
        statement=f"One request of {bytes_text(request)} is "
        + (
            f"larger than the whole device ({bytes_text(total)}): look for a shape that grew by mistake."
            if exceeds
            else f"{ratio_text(ratio)} of the whole device ({bytes_text(total)}) in one piece."
        ),
        severity=severity_of(failure),
        confidence=EXCEEDS_SCORE if exceeds else NEARLY_SCORE,
        observations=(failure_fact(failure), shape, *where),
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
        impact=Impact(recoverable_bytes=request if exceeds else None),
        ruled_out=_ruled_out(failure, request),
        supersedes=("MEM201", "MEM101", "MEM102") if exceeds else (),
    )


def _ruled_out(failure: Failure, request: int) -> tuple[RuledOut, ...]:
    idle = idle_reserved_bytes(failure)
    if idle is None or idle >= request:
        return ()
    return (RuledOut(code="MEM401", because=f"only {bytes_text(idle)} is reserved and unused"),)


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
