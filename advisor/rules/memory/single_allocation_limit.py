"""One allocation is larger than the platform allows for a single one, however much is free.

## What it means

Some platforms bound a single buffer: Intel GPUs 4 GB unless told otherwise, their drivers under WSL less, and
Apple's Metal a part of the machine's memory. The device need not be full.

## How it is recognized

The platform's own words; or on Intel GPUs a request of 1 GiB or more that the unreserved memory would hold
twice over.

## What to do

Split the tensor (smaller batch, chunked attention or loss), or allow larger buffers where the platform can.

## What it is confused with

A request that exceeds the whole device (MEM701). On NVIDIA and AMD there is no such limit: there a request that
fits free memory and fails is MEM708.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import BLOCK_LIMIT, Failure, FailureKind, LogText
from advisor.model.finding import Action, Finding, Observation
from advisor.rules.capacity import is_capacity_failure, reserved_bytes, severity_of
from advisor.rules.clues import Clue, in_words, quoted, words
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.wording import bytes_text

if TYPE_CHECKING:
    from advisor.model.case import Case

XPU_LIMIT_BYTES = 4 * GIB
"""Largest single allocation on Intel GPUs without relaxed limits (Level Zero)."""

LEAST_XPU_BYTES = 1 * GIB
"""Under WSL drivers have refused from 1 GiB on."""

ROOM_FACTOR = 2.0
"""Unreserved memory over the request from which a lack of capacity is unlikely; free memory itself is not printed there."""

_SAID = words(
    "larger than 4|single allocation|allocation size|gb limit|gb allocation limit|max buffer|max alloc|maximum buffer|maximum alloc",
    r"larger than 4 ?GB|single allocation|allocation size.{0,40}(?:exceed|limit)|4 ?GB (?:allocation )?limit|max(?:imum)? "
    r"(?:buffer|alloc\w*) (?:size|length)",
)


@rule("MEM707", "single-allocation-limit")
def single_allocation_limit(failure: Failure, log: LogText | None) -> Finding | None:
    """A platform's limit on one allocation."""
    found = _metal(failure) or _of_message(failure) or _intel(failure, in_words(_SAID, failure, log))
    if found is None:
        return None
    score, why, facts = found
    return Finding(
        statement=f"{why}: the device need not be full.",
        severity=severity_of(failure),
        confidence=score,
        observations=facts,
        actions=(
            Action(
                title="Split the tensor",
                change="a smaller batch with accumulation; chunk attention or the loss so that no tensor exceeds the limit",
                cost="a few more kernels",
            ),
            *_larger_buffers(failure),
        ),
        settles=Action(
            title="Find the limit by trying",
            change=_probe(failure),
        ),
    )


Found = tuple[float, str, tuple[Observation, ...]]


def _metal(failure: Failure) -> Found | None:
    if failure.kind is not FailureKind.UNIFIED_MEMORY_LIMIT or failure.generation != "Metal buffer limit":
        return None
    size = failure.requested_bytes
    if size is None:
        fact = plain_fact(f'the message: "{quoted(failure.message)}"', failure.source)
        return 0.92, "One buffer is larger than Metal allows", (fact,)
    fact = bytes_fact(f"{bytes_text(size)} was asked for in one buffer", size, failure.source)
    return 0.92, f"{bytes_text(size)} in one buffer is more than Metal allows", (fact,)


def _of_message(failure: Failure) -> Found | None:
    """The message says itself that one block is too large."""
    if failure.generation != BLOCK_LIMIT:
        return None
    facts: tuple[Observation, ...] = (plain_fact(f'the message: "{quoted(failure.detail or failure.message)}"', failure.source),)
    requested = failure.requested_bytes
    if requested is None:
        return 0.92, "One block is larger than the platform allows", facts
    asked = bytes_fact(f"{bytes_text(requested)} was asked for at once", requested, failure.source)
    facts = (*facts, asked, *_capacity_facts(failure))
    return 0.95, f"{bytes_text(requested)} in one block is more than the platform allows", facts


def _intel(failure: Failure, clue: Clue | None) -> Found | None:
    requested = failure.requested_bytes
    if failure.backend != "XPU" or not is_capacity_failure(failure):
        return None
    if clue is not None:
        return (
            0.85,
            "The platform bounds a single allocation",
            (clue.observation("the text speaks of the limit"),),
        )
    if requested is None or not _has_room(failure, requested):
        return None
    facts = (
        bytes_fact(f"{bytes_text(requested)} was asked for at once", requested, failure.source),
        *_capacity_facts(failure),
    )
    if requested > XPU_LIMIT_BYTES:
        return (
            0.8,
            f"{bytes_text(requested)} at once exceeds the 4 GiB that Intel GPUs allow for one allocation",
            facts,
        )
    if requested >= LEAST_XPU_BYTES:
        return (
            0.6,
            f"{bytes_text(requested)} was refused with room for several times as much, as drivers do that bound one allocation",
            facts,
        )
    return None


def _capacity_facts(failure: Failure) -> tuple[Observation, ...]:
    known = (
        (failure.total_bytes, "in all"),
        (failure.free_bytes, "free"),
        (reserved_bytes(failure), "reserved"),
    )
    return tuple(bytes_fact(f"the device has {bytes_text(size)} {what}", size, failure.source) for size, what in known if size is not None)


def _has_room(failure: Failure, requested: int) -> bool:
    if failure.free_bytes is not None:
        return failure.free_bytes >= requested
    reserved = reserved_bytes(failure)
    if failure.total_bytes is None or reserved is None:
        return False
    return failure.total_bytes - reserved >= ROOM_FACTOR * requested


def _larger_buffers(failure: Failure) -> tuple[Action, ...]:
    if failure.backend != "XPU":
        return ()
    return (
        Action(
            title="Allow larger allocations",
            change="UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1  # in the environment; under WSL also update the driver",
            cost="kernels on buffers above 4 GB may be slower",
        ),
    )


def _probe(failure: Failure) -> str:
    device = "mps" if failure.backend == "MPS" else "xpu"
    return f"for n in range(28, 36): torch.empty(2**n, dtype=torch.uint8, device='{device}')  # in a fresh python"


def fires() -> Case:
    """A tensor of 6 GiB on an Intel GPU of 48 GiB that is nearly empty."""
    return a_case(
        a_failure(
            backend="XPU",
            total_bytes=48 * GIB,
            requested_bytes=6 * GIB,
            allocated_bytes=2 * GIB,
            reserved_bytes=2 * GIB,
        )
    )


def clean() -> Case:
    """The same request on the same GPU when it is nearly full."""
    return a_case(
        a_failure(
            backend="XPU",
            total_bytes=48 * GIB,
            requested_bytes=6 * GIB,
            free_bytes=900 * MIB,
            allocated_bytes=45 * GIB,
            reserved_bytes=46 * GIB,
        )
    )
