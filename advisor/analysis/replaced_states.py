"""Find, within an optimizer's step that makes its states anew, those of before whose successors exist already."""

from collections import Counter

import numpy as np

from advisor.analysis.device_record import Attribution, Flags, Record, Rows
from advisor.analysis.stack_frames import Role
from advisor.analysis.training_phases import BACKWARD, FORWARD, OPTIMIZER

WHY = "a state of before the step, or its successor: one of the two, since the step makes its states anew"


def replaced_states(record: Record, found: Attribution, is_state: Flags, moment: int) -> list[int]:
    """Positions of live blocks that no state needs: a step like `m = beta * m + ...` holds the old and the new one for a moment.

    What persists across the step is as many blocks of a size as there were at its start. Where the step frees lasting blocks of a size
    and keeps new ones, those live beyond that number are temporary: the old ones that it is about to free, else (where the record ends
    within the step) the newest. A step that only creates states frees none, so none of them is temporary.
    """
    run = _run(record, moment)
    if run is None:
        return []
    since, until = run
    uses = record.timeline.uses
    is_live = (uses.start <= moment) & (moment < uses.end)
    freed_by = np.array([int(reading.role) for reading in record.readings] + [int(Role.UNKNOWN)], np.int8)[uses.free_stack]
    is_lasting = is_state | ((uses.start == -1) & (record.role == Role.UNKNOWN))
    leaves = is_lasting & (uses.start < since) & (since <= uses.freed) & (uses.freed < until) & (freed_by == Role.OPTIMIZER)
    arrives = is_state & (uses.start >= since) & is_live
    made = Counter(uses.requested_bytes[arrives].tolist())
    gone = Counter(uses.requested_bytes[leaves & ~is_live].tolist())
    replacing = set(uses.requested_bytes[leaves].tolist())
    beyond = {size: count - gone[size] for size, count in made.items() if size in replacing}
    is_cut = until > uses.event_count
    open_ = found.undecided()
    about_to_go = _in_order(found, open_ & leaves[found.rows], uses.freed)
    newest = _in_order(found, open_ & arrives[found.rows], -uses.start) if is_cut else []
    chosen = []
    for at in (*about_to_go, *newest):
        size = int(uses.requested_bytes[found.rows[at]])
        if beyond.get(size, 0) > 0:
            beyond[size] -= 1
            chosen.append(at)
    return chosen


def _run(record: Record, moment: int) -> tuple[int, int] | None:
    """First event of the step that a moment lies in, and the first of what follows it; None where it lies in none."""
    if int(record.phases.at(np.array([moment]))[0]) != OPTIMIZER:
        return None
    starts = record.phases.run_starts(OPTIMIZER)
    since = starts[starts <= moment]
    return int(since[-1]), int(record.phases.next_of((FORWARD, BACKWARD), np.array([moment]))[0])


def _in_order(found: Attribution, chosen: Flags, by: Rows) -> list[int]:
    at = np.flatnonzero(chosen)
    order: list[int] = at[np.argsort(by[found.rows[at]], kind="stable")].tolist()
    return order
