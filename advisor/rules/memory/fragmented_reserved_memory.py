"""Enough memory is reserved and unused for the request, but in pieces that are too small.

## What it means

PyTorch takes memory from the driver in large segments, splits them, and keeps the pieces. Long-lived
tensors between short-lived ones leave gaps that no large tensor fits into. Before it fails, the
allocator gives every wholly unused segment back; what is then still reserved and unused is such gaps.

## How it is recognized

By arithmetic on the message: reserved but unallocated is at least what was asked for, and free is
less. The larger that share of the device and the request, the surer: a device full of live memory has
a few percent in gaps anyway. From a snapshot taken at the failure: the largest free block is smaller
than the request, the sum is larger. Without figures only where the text speaks of fragmentation.
The sentence "try setting expandable_segments to avoid fragmentation" proves nothing: it is part of
every message, whatever its figures.

## What to do

Expandable segments (torch 2.1 and later, Linux) make the pieces joinable. Where they cannot be used,
max_split_size_mb keeps large blocks whole. Few distinct sizes, and allocating what lives long first,
help everywhere.

## What it is confused with

A full device: live memory fills it, and reserved but unallocated is less than the request (MEM102,
MEM201). Private pools of CUDA graphs (MEM405) are reserved for their graph alone. Model states that
do not fit at all (MEM102) leave gaps too, but joining them would not help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.dataclass import dataclass
from advisor.model.finding import (
    Action,
    Finding,
    Impact,
    Observation,
    Prediction,
    RuledOut,
    Severity,
)
from advisor.model.memory import AllocatorRecord, MemoryLedger, Moment
from advisor.rules.allocator_advice import (
    EXPANDABLE,
    OLDEST_EXPANDABLE,
    VARIABLES,
    expandable_segments,
    garbage_collection,
    is_on,
    largest_split,
    version_of,
)
from advisor.rules.blocks import is_attributed
from advisor.rules.capacity import (
    idle_reserved_bytes,
    is_capacity_failure,
    severity_of,
    what_would_settle,
)
from advisor.rules.clues import quoted
from advisor.rules.device_shares import is_oversubscribed
from advisor.rules.facts import bytes_fact, plain_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, LOG, MIB, SNAPSHOT, a_case, a_failure, a_record
from advisor.rules.wording import bytes_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.evidence import Source
    from advisor.model.failure import Failure, LogText
    from advisor.model.tables import MemorySummary

LOWEST_SCORE = 0.3
"""Score where next to nothing of the device is in gaps: then they only decide when a full device fails."""

HIGHEST_SCORE = 0.85
"""Score from `AMPLE_DEVICE_RATIO` on, where the message alone is the evidence."""

AMPLE_DEVICE_RATIO = 0.1
"""Share of the device in gaps from which joining them is worth more than shrinking the model; below it the score falls in proportion."""

NORMAL_DEVICE_RATIO = 0.03
"""Share of the device that allocators of healthy jobs have in gaps."""

LARGE_REQUEST_RATIO = 0.03
"""Share of the device from which a request is of the size that gaps keep out: small ones mostly find a place."""

LARGE_REQUEST_BONUS = 0.1
"""What a large request adds to the score."""

SNAPSHOT_SCORE = 0.95
"""Score where a snapshot at the failure shows that no block was large enough."""

DOUBTFUL_SCORE = 0.5
"""Highest score where expandable segments are on already, or the gaps may be those of private pools."""

WORDS_SCORE = 0.55
"""Score where the message has no figures and the text speaks of fragmentation."""

SUMMARY_IDLE_RATIO = 0.5
"""Share of the reserved peak that was never live at the peak of live memory, in a summary after a failure."""

SPLIT_MIB = 512
"""Advised max_split_size_mb: above it lie the large tensors that gaps keep out, below it most others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gaps:
    """The figures of one refused request."""

    requested: int
    idle: int
    allocated: int | None
    device: int | None
    largest_free: int | None
    free: int | None
    source: Source


@rule("MEM401", "fragmented-reserved-memory")
def fragmented_reserved_memory(
    failure: Failure | None,
    record: AllocatorRecord | None,
    ledger: MemoryLedger | None,
    log: LogText | None,
    summary: MemorySummary | None,
) -> Finding | None:
    """Reserved but unallocated memory would have sufficed."""
    gaps = _of_record(record, ledger) or _of_message(failure)
    if gaps is None:
        return _of_summary(failure, summary) or _of_words(failure, log)
    if gaps.idle < gaps.requested or _states_alone_exceed(ledger):
        return None
    if max(gaps.largest_free or 0, gaps.free or 0) >= gaps.requested:
        return None
    applied = _is_expandable(record, log)
    score = _confidence(gaps, failure, applied=applied)
    # A few percent in gaps are what a full device has anyway: no setting wins them back.
    wins = score >= DOUBTFUL_SCORE
    return Finding(
        statement=f"{bytes_text(gaps.requested)} was refused although {bytes_text(gaps.idle)} was reserved and unused: "
        "the unused memory is in pieces too small for it."
        + (" Expandable segments were already on, so the usual remedy is spent." if applied else ""),
        severity=Severity.ERROR if failure is None else severity_of(failure),
        confidence=score,
        observations=_facts(gaps, failure),
        actions=_actions(gaps, failure, applied=applied, wins=wins),
        settles=None if record is not None and record.event_count else what_would_settle(failure),
        impact=Impact(recoverable_bytes=gaps.idle if wins else None),
        ruled_out=_ruled_out(gaps) if wins else (),
    )


def _of_message(failure: Failure | None) -> _Gaps | None:
    if failure is None or not is_capacity_failure(failure) or is_oversubscribed(failure):
        return None
    idle, requested = idle_reserved_bytes(failure), failure.requested_bytes
    if idle is None or requested is None:
        return None
    return _Gaps(
        requested=requested,
        idle=idle,
        allocated=failure.allocated_bytes,
        device=failure.total_bytes,
        largest_free=None,
        free=failure.free_bytes,
        source=failure.source,
    )


def _of_record(record: AllocatorRecord | None, ledger: MemoryLedger | None) -> _Gaps | None:
    """The figures at the `oom` event; only a ledger of that moment tells what was unused then."""
    if record is None or ledger is None or record.oom_requested_bytes is None:
        return None
    if ledger.at is not Moment.OOM or ledger.allocated_bytes is None or ledger.reserved_bytes is None:
        return None
    return _Gaps(
        requested=record.oom_requested_bytes,
        idle=ledger.reserved_bytes - ledger.allocated_bytes,
        allocated=ledger.allocated_bytes,
        device=ledger.device_bytes,
        largest_free=record.largest_free_block_bytes or None,
        free=record.oom_free_bytes,
        source=ledger.source,
    )


def _of_summary(failure: Failure | None, summary: MemorySummary | None) -> Finding | None:
    """A summary that counts a failure: what was reserved at its peak and cannot have been live."""
    if summary is None or not summary.ooms or (failure is not None and not is_capacity_failure(failure)):
        return None
    reserved, allocated = summary.peak.get("reserved"), summary.peak.get("allocated")
    if not reserved or allocated is None or reserved - allocated < SUMMARY_IDLE_RATIO * reserved:
        return None
    return Finding(
        statement=f"A request was refused in a process whose live memory never exceeded {bytes_text(allocated)} while "
        f"{bytes_text(reserved)} was reserved: at least {bytes_text(reserved - allocated)} lay unused.",
        severity=Severity.ERROR,
        confidence=0.6,
        observations=(
            bytes_fact(
                f"reserved and unused at the peak of reserved memory: at least {bytes_text(reserved - allocated)}",
                reserved - allocated,
                summary.source,
            ),
        ),
        actions=(expandable_segments(), largest_split(SPLIT_MIB), garbage_collection()),
        settles=what_would_settle(None),
        impact=Impact(recoverable_bytes=reserved - allocated),
    )


def _of_words(failure: Failure | None, log: LogText | None) -> Finding | None:
    mention = log.mentioned("fragmentation") if log is not None else None
    if failure is None or log is None or mention is None:
        return None
    if not is_capacity_failure(failure) or failure.reserved_bytes is not None:
        return None
    said = f'the text speaks of it: "{quoted(mention.text)}"'
    return Finding(
        statement="The text says that memory is there and cannot be used, which is fragmentation; the message has no figures to check "
        "it by.",
        severity=severity_of(failure),
        confidence=WORDS_SCORE,
        observations=(plain_fact(said, log.source.at(f"line {mention.line}")),),
        actions=(expandable_segments(), largest_split(SPLIT_MIB), garbage_collection()),
        settles=what_would_settle(failure),
    )


def _states_alone_exceed(ledger: MemoryLedger | None) -> bool:
    """Whether weights, gradients and optimizer states need more than the device: no packing helps then."""
    if ledger is None or not is_attributed(ledger) or ledger.device_bytes is None:
        return False
    states = sum(ledger.entry(block) for block in ("weights", "gradients", "optimizer_states"))
    return states > ledger.device_bytes


def _is_expandable(record: AllocatorRecord | None, log: LogText | None) -> bool:
    recorded = dict(record.allocator_settings).get(EXPANDABLE, "") if record is not None else ""
    if recorded:
        return recorded.lower() == "true"
    return any(is_on(log.setting(name) or "", EXPANDABLE) for name in VARIABLES) if log is not None else False


def _confidence(gaps: _Gaps, failure: Failure | None, *, applied: bool) -> float:
    score = LOWEST_SCORE
    if gaps.device:
        unusual = gaps.idle / gaps.device - NORMAL_DEVICE_RATIO
        share = min(1.0, max(0.0, unusual / (AMPLE_DEVICE_RATIO - NORMAL_DEVICE_RATIO)))
        score += share * (HIGHEST_SCORE - LOWEST_SCORE)
        if gaps.requested >= LARGE_REQUEST_RATIO * gaps.device:
            score = min(HIGHEST_SCORE, score + LARGE_REQUEST_BONUS)
    if gaps.largest_free is not None:
        score = SNAPSHOT_SCORE
    pools = failure.private_pool_bytes if failure is not None else None
    if applied or (pools and pools >= gaps.idle):
        score = min(score, DOUBTFUL_SCORE)
    return round(score, 3)


def _facts(gaps: _Gaps, failure: Failure | None) -> tuple[Observation, ...]:
    share = f", {ratio_text(gaps.idle / gaps.device)} of the device" if gaps.device else ""
    facts = [
        bytes_fact(f"{bytes_text(gaps.requested)} was asked for and refused", gaps.requested, gaps.source),
        bytes_fact(f"{bytes_text(gaps.idle)} was reserved and unused{share}", gaps.idle, gaps.source),
    ]
    if gaps.largest_free is not None:
        largest = f"the largest free block had {bytes_text(gaps.largest_free)}"
        facts.append(bytes_fact(largest, gaps.largest_free, gaps.source))
    if failure is not None and failure.private_pool_bytes:
        pools = failure.private_pool_bytes
        what = f"{bytes_text(pools)} is in private pools, whose gaps only their CUDA graphs can use"
        facts.append(bytes_fact(what, pools, failure.source))
    return tuple(facts)


def _actions(gaps: _Gaps, failure: Failure | None, *, applied: bool, wins: bool) -> tuple[Action, ...]:
    peak = gaps.allocated + gaps.requested if gaps.allocated is not None else None
    joined = expandable_segments(Prediction(peak_bytes=peak, fits=True) if wins else None)
    split, collect = largest_split(SPLIT_MIB), garbage_collection()
    if applied:
        return (collect,)
    version = version_of(failure)
    if version is not None and version < OLDEST_EXPANDABLE:
        return split, collect, joined
    return joined, split, collect


def _ruled_out(gaps: _Gaps) -> tuple[RuledOut, ...]:
    if gaps.allocated is None or gaps.device is None:
        return ()
    return (
        RuledOut(
            code="MEM102",
            because=f"live memory and the request together need {bytes_text(gaps.allocated + gaps.requested)} of "
            f"{bytes_text(gaps.device)}: without gaps this request would have fitted",
        ),
    )


def fires() -> Case:
    """2 GiB refused with 9.5 GiB reserved and unused."""
    return a_case(
        a_failure(
            source=LOG,
            requested_bytes=2 * GIB,
            free_bytes=400 * MIB,
            allocated_bytes=68 * GIB,
            reserved_unallocated_bytes=int(9.5 * GIB),
        )
    )


def clean() -> Case:
    """A full device: 1.9 GiB is unused in gaps, less than the 2 GiB asked for; and a snapshot with cache and no failure."""
    return a_case(
        a_failure(
            requested_bytes=2 * GIB,
            free_bytes=400 * MIB,
            allocated_bytes=int(75.5 * GIB),
            reserved_unallocated_bytes=int(1.9 * GIB),
        ),
        a_record(source=SNAPSHOT, dump_reserved_bytes=30 * GIB),
    )
