"""Apple's GPU shares the machine's memory, and PyTorch's limit on its part of it is reached.

## What it means

On a Mac the GPU has no memory of its own. PyTorch stops at a high watermark (1.7 times what Metal recommends),
because beyond it the whole machine swaps or freezes. "Other allocations" are what Metal itself and
PyTorch's cache hold.

## How it is recognized

"MPS backend out of memory" with its figures: allocated plus other allocations plus the request exceed
what is allowed.

## What to do

Where other allocations are large, torch.mps.empty_cache() first. Otherwise a smaller model, batch or
image. Raising the watermark ratio lifts the limit and may freeze the machine.

## What it is confused with

A single buffer that is too large for Metal has a limit of its own (MEM707).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.failure import Failure, FailureKind
from advisor.model.finding import Action, Finding, Impact, Observation
from advisor.rules.capacity import severity_of
from advisor.rules.clues import quoted
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_failure
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case

OTHERS_RATIO = 0.3
"""Share of the limit in "other allocations" from which giving the cache back is the first thing to try."""


@rule("MEM804", "unified-memory-limit")
def unified_memory_limit(failure: Failure) -> Finding | None:
    """The watermark of MPS is reached."""
    if failure.kind is not FailureKind.UNIFIED_MEMORY_LIMIT or failure.generation == "Metal buffer limit":
        return None
    held = (failure.allocated_bytes or 0) + (failure.other_allocations_bytes or 0)
    allowed, requested = failure.allowed_bytes, failure.requested_bytes
    closes = allowed is not None and requested is not None and held + requested + 3 * (failure.resolution_bytes or 0) > allowed
    return Finding(
        statement=_statement(held, allowed, requested),
        severity=severity_of(failure),
        confidence=0.95 if closes else 0.85,
        observations=_facts(failure),
        actions=_actions(failure),
        impact=Impact(recoverable_bytes=_cache_bytes(failure)),
    )


def _statement(held: int, allowed: int | None, requested: int | None) -> str:
    if allowed is None or requested is None:
        return "PyTorch reached its limit on the memory that the Mac's GPU shares with everything else."
    return (
        f"{bytes_text(held)} is in use on the Mac's GPU and {bytes_text(requested)} more was asked for; PyTorch's limit on this machine is "
        f"{bytes_text(allowed)}, shared with everything else."
    )


def _facts(failure: Failure) -> tuple[Observation, ...]:
    facts = [
        bytes_fact(f"{bytes_text(size)} {name}", size, failure.source)
        for size, name in (
            (failure.allocated_bytes, "allocated by PyTorch"),
            (failure.other_allocations_bytes, "in other allocations (Metal, and PyTorch's cache)"),
            (failure.requested_bytes, "asked for"),
            (failure.allowed_bytes, "allowed"),
        )
        if size is not None
    ]
    return tuple(facts) or (plain_fact(f'the message: "{quoted(failure.message)}"', failure.source),)


def _others_share(failure: Failure) -> float:
    others, allowed = failure.other_allocations_bytes, failure.allowed_bytes
    return others / allowed if others is not None and allowed else 0.0


def _cache_bytes(failure: Failure) -> int | None:
    """What giving the cache back may win: Metal's own part of the other allocations is not known."""
    return failure.other_allocations_bytes if _others_share(failure) >= OTHERS_RATIO else None


def _actions(failure: Failure) -> tuple[Action, ...]:
    share = _others_share(failure)
    title = "Give the cache back"
    if share >= OTHERS_RATIO:
        title += f": other allocations are {ratio_text(share)} of the limit"
    cache = Action(
        title=title,
        change="torch.mps.empty_cache()  # between phases; PYTORCH_MPS_LOW_WATERMARK_RATIO=1.0 lets PyTorch do it earlier",
        cost="the next allocations are slower",
    )
    smaller = Action(
        title="Use less",
        change="half precision, a smaller batch, image or model; attention slicing where the library has it",
        cost="smaller work at a time",
    )
    limit = Action(
        title="Lift the limit, knowing the risk",
        change="PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 python ...  # in the environment: it is read once, before the first use",
        cost="macOS swaps, and may freeze or end other programs",
    )
    return (cache, smaller, limit) if share >= OTHERS_RATIO else (smaller, cache, limit)


def fires() -> Case:
    """An 8 GB Mac: 7.4 of 9.07 GiB are other allocations."""
    return a_case(
        a_failure(
            kind=FailureKind.UNIFIED_MEMORY_LIMIT,
            message="MPS backend out of memory",
            backend="MPS",
            generation="MPS GiB",
            total_bytes=None,
            allocated_bytes=int(1.4 * GIB),
            other_allocations_bytes=int(7.4 * GIB),
            allowed_bytes=int(9.07 * GIB),
            requested_bytes=560 * MIB,
        )
    )


def clean() -> Case:
    """A CUDA device with a cap: the same word "allowed", another limit."""
    return a_case(
        a_failure(
            requested_bytes=560 * MIB,
            allowed_bytes=9 * GIB,
            allocated_bytes=8 * GIB,
            free_bytes=60 * GIB,
        )
    )
