"""Much of the live memory was allocated before the record began, so the record cannot say what it is.

## What it means

An allocator snapshot only knows where memory was allocated for what it saw being allocated. Weights that were
loaded before recording began, or events that the ring buffer dropped, have no stack: they are counted, and not
explained.

## How it is recognized

At least a fifth of what is live at the moment that this report explains (the failure, else the peak, else the
dump), and 256 MiB, has no allocation event in the record.

## What to do

Start recording before the model is built, and keep more events.

## What it is confused with

Memory outside PyTorch (MEM602) has no events either, and is not in the snapshot at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Finding, Observation, Severity
from advisor.model.memory import Moment
from advisor.rules.blocks import is_attributed
from advisor.rules.facts import bytes_fact, count_fact
from advisor.rules.rule import rule
from advisor.rules.samples import GIB, MIB, a_case, a_record
from advisor.rules.wording import bytes_text, count_text, ratio_text

if TYPE_CHECKING:
    from advisor.model.case import Case
    from advisor.model.memory import AllocatorRecord, MemoryLedger

UNRECORDED_RATIO = 0.2
"""Share of the live memory without an event above which the ledger's largest entry may be the unexplained one."""

LEAST_UNRECORDED_BYTES = 256 * MIB
"""Below it nothing that matters is missing."""


AT = {Moment.OOM: "when the request was refused", Moment.PEAK: "at the peak", Moment.DUMP: "at the dump"}

SCORE = 0.85
"""What is missing is a fact; that it matters for the answer is usual."""

NO_HISTORY_EVENTS = 1
"""A record of at most this many events has none of the job's: a snapshot adds one itself."""


@rule("MEM901", "recording-started-late")
def recording_started_late(record: AllocatorRecord, ledger: MemoryLedger | None) -> Finding | None:
    """Live memory without an allocation event."""
    missing, live = record.unrecorded_live_bytes, _live(record)
    if missing < max(LEAST_UNRECORDED_BYTES, UNRECORDED_RATIO * live):
        return None
    facts: list[Observation] = [
        bytes_fact(
            f"{bytes_text(missing)} of {bytes_text(live)} live {AT[record.moment]} has no allocation event",
            missing,
            record.source,
        ),
        count_fact(
            f"the record has {count_text(record.event_count, 'event')}",
            record.event_count,
            record.source,
        ),
    ]
    is_of_same_moment = ledger is not None and is_attributed(ledger) and ledger.at is record.moment
    is_inferred = is_of_same_moment and ledger is not None and ledger.entry("unattributed") < missing / 2
    return Finding(
        statement=_began(record)
        + (
            f"what {bytes_text(missing)} is was inferred from sizes and lifetimes, not read from stacks."
            if is_inferred
            else f"what {bytes_text(missing)} is, this file cannot say."
        ),
        severity=Severity.INFO,
        confidence=SCORE,
        observations=tuple(facts),
        actions=(
            Action(
                title="Record from the start",
                change="torch.cuda.memory._record_memory_history(max_entries=1_000_000)  # before the model is built",
                cost="about 0.5 to 1.3 kB of host memory an event, and 1 to 2 µs an allocation",
            ),
        ),
    )


def _began(record: AllocatorRecord) -> str:
    if record.event_count <= NO_HISTORY_EVENTS:
        return "The snapshot has no history of allocations: "
    missing, live = record.unrecorded_live_bytes, _live(record)
    share = ratio_text(min(1.0, missing / live)) if live else "All"
    return f"{share} of what is live {AT[record.moment]} was allocated before the record began or fell out of it: "


def _live(record: AllocatorRecord) -> int:
    return record.dump_allocated_bytes if record.moment_live_bytes is None else record.moment_live_bytes


def fires() -> Case:
    """Recording began after the model was loaded: 16 of 20 GiB have no event."""
    return a_case(a_record(record_is_complete=False, unrecorded_live_bytes=16 * GIB))


def clean() -> Case:
    """A few buffers of the libraries were there first."""
    return a_case(a_record(unrecorded_live_bytes=120 * MIB))
