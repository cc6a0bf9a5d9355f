"""A ledger from the allocator's counters: `memory_summary()` and `memory_stats()`.

Counters are sums: they tell what was live, what was cached and what rounding cost, and not what the live memory is for.
"""

from advisor.analysis.device_capacity import closed, device_capacity, of_device
from advisor.model.ceilings import DeviceCeilings
from advisor.model.failure import Failure
from advisor.model.memory import BLOCKS, Basis, MemoryLedger, Moment
from advisor.model.node import NodeReading
from advisor.model.tables import MemorySummary
from advisor.model.trace import KinetoTrace

TRUNCATED_UNITS = 2
"""Each printed figure may lie a unit too low (`resolution_bytes` is half of one), so that a difference of two misses by a unit."""


def summary_ledger(
    summary: MemorySummary,
    failures: tuple[Failure, ...],
    trace: KinetoTrace | None,
    reading: NodeReading | None,
    ceilings: tuple[DeviceCeilings, ...],
) -> MemoryLedger | None:
    """The ledger when the counters were read; None where they tell neither live nor reserved memory.

    - `allocator_cached`: reserved less active (active is what is allocated and what waits for another stream);
    - `allocator_rounding`: active less requested, where the counters have requested memory;
    - `unattributed`: the rest of active memory, and what the device has beyond reserved memory where its capacity is known.

    Without a capacity the entries sum to reserved memory, or to active memory where the table is cut before that row.
    """
    counters = summary.current
    allocated, reserved = counters.get("allocated"), counters.get("reserved")
    live = counters.get("active", allocated)
    if live is None and reserved is None:
        return None
    notes, gaps = [], list(summary.gaps)
    entries: dict[str, int | None] = dict.fromkeys(BLOCKS)
    if live is not None and reserved is not None and live > reserved + TRUNCATED_UNITS * summary.resolution_bytes:
        gaps.append(f"the counters contradict each other: {live:,} bytes active and {reserved:,} reserved; the reserved ones are left out")
        reserved = None
    if live is not None and reserved is not None:
        live = min(live, reserved)
        entries["allocator_cached"] = reserved - live
    requested = counters.get("requested")
    if live is not None and requested is not None and requested <= live:
        entries["allocator_rounding"] = live - requested
    whole = reserved if reserved is not None else live
    entries["unattributed"] = (whole or 0) - (entries["allocator_cached"] or 0) - (entries["allocator_rounding"] or 0)
    if live is not None:
        notes.append("counters do not say what the live memory is for")
    pending = max(0, (live or 0) - allocated) if allocated is not None else 0
    if pending > TRUNCATED_UNITS * summary.resolution_bytes:
        notes.append(f"{pending:,} bytes of it was freed and waits for another stream")
    if split := counters.get("inactive_split"):
        notes.append(f"{split:,} bytes of the cache lies in split segments, which cannot be given back to the driver")
    ledger = MemoryLedger(
        source=summary.source,
        rank=summary.rank,
        gaps=tuple(gaps),
        device_index=summary.device_index or 0,
        at=Moment.DUMP,
        device_bytes=None,
        entries=entries,
        basis=Basis.TEXT,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        notes=tuple(notes),
    )
    own = of_device(failures, ledger.device_index, is_only_device=True)
    capacity = device_capacity(ledger.device_index, failures=own, trace=trace, reading=reading, ceilings=ceilings)
    return closed(ledger, capacity, {})
