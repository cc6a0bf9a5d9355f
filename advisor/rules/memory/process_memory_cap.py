"""This process may only use a part of the device, and that part is full.

## What it means

torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction among the allocator's settings,
caps what PyTorch reserves. The device may be nearly empty: the cap decides. It stays for as long as
the process lives, so a test or a library that set it once limits all that follows.

## How it is recognized

The message prints what is "allowed", less than the total, and what is reserved plus the request
exceeds it.

## What to do

Raise the fraction, or find who set it.

## What it is confused with

"allowed" in the messages of Apple's MPS is another limit (MEM804). A full device (MEM102, MEM201) has
nothing free; here most of it may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Impact, Prediction, RuledOut, Verification
from advisor.rules.capacity import is_capacity_failure, reserved_bytes, severity_of
from advisor.rules.facts import bytes_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.failure import Failure

CAP_RATIO = 0.99
"""Allowed over total from which it is no cap: a fraction of 1.0 is printed too, rounded."""


@rule("MEM605", "process-memory-cap")
def process_memory_cap(failure: Failure) -> Finding | None:
    """Reserved plus the request exceeds what is allowed."""
    allowed, total = failure.allowed_bytes, failure.total_bytes
    if not is_capacity_failure(failure) or allowed is None or not total or allowed >= CAP_RATIO * total:
        return None
    reserved, requested = reserved_bytes(failure), failure.requested_bytes
    slack = 2 * (failure.resolution_bytes or 0)
    reached = reserved is not None and requested is not None and reserved + requested + slack > allowed
    known = reserved is not None and requested is not None
    if known and not reached:
        return None
    free = failure.free_bytes
    fits = free is not None and requested is not None and free >= requested
    facts = [
        bytes_fact(
            f"{bytes_text(allowed)} of {bytes_text(total)} is allowed, {ratio_text(allowed / total)}",
            allowed,
            failure.source,
        )
    ]
    if reserved is not None and requested is not None:
        text = f"{bytes_text(reserved)} is reserved and {bytes_text(requested)} more was asked for"
        facts.append(bytes_fact(text, reserved + requested, failure.source))
    if free is not None:
        facts.append(bytes_fact(f"{bytes_text(free)} of the device is free", free, failure.source))
    return Finding(
        statement=f"This process may use {bytes_text(allowed)} of the device's {bytes_text(total)}, and that is used up"
        + (f", while {bytes_text(free)} of the device is free." if fits and free is not None else "."),
        severity=severity_of(failure),
        confidence=0.95 if reached else 0.7,
        observations=tuple(facts),
        actions=(
            Action(
                title="Raise or drop the cap",
                change="torch.cuda.set_per_process_memory_fraction(1.0)  # or remove per_process_memory_fraction from the allocator's "
                "settings",
                cost="other processes on the device have less",
                predicted=Prediction(fits=True if fits else None),
                verified_by=Verification.ARITHMETIC if fits else Verification.NONE,
            ),
            Action(
                title="Run what sets the cap in a process of its own",
                change='grep -rn "set_per_process_memory_fraction" .  # tests that set it should restore 1.0',
            ),
        ),
        impact=Impact(recoverable_bytes=min(total - allowed, free) if free is not None else total - allowed),
        ruled_out=_ruled_out(failure),
        supersedes=("MEM708",),
    )


def _ruled_out(failure: Failure) -> tuple[RuledOut, ...]:
    free, requested = failure.free_bytes, failure.requested_bytes
    if free is None or requested is None or free < requested:
        return ()
    because = f"{bytes_text(free)} of the device is free and {bytes_text(requested)} was asked for"
    return tuple(RuledOut(code=code, because=because) for code in ("MEM201", "MEM601"))


def fires() -> Case:
    """A test left a cap of 2 GiB on a 192 GiB device."""
    return a_case(
        a_failure(
            total_bytes=192 * GIB,
            requested_bytes=64 * MIB,
            free_bytes=188 * GIB,
            allowed_bytes=2 * GIB,
            allocated_bytes=1950 * MIB,
            reserved_unallocated_bytes=50 * MIB,
        )
    )


def clean() -> Case:
    """A cap that is far from reached: the device is full of other processes."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            free_bytes=1 * GIB,
            allowed_bytes=60 * GIB,
            allocated_bytes=20 * GIB,
            reserved_unallocated_bytes=200 * MIB,
        )
    )
