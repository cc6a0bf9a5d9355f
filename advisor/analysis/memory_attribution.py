"""Say what each live block is, by the stack that allocated it, by its lifetime and by its size.

The order is: tags that the snapshot itself carries; stacks that decide; lifetimes against the phases of training; then, for memory that is
older than the record, its fate within it and the sizes of the parameters. What none of this explains stays unattributed.
"""

import numpy as np

from advisor.analysis.device_record import Attribution, Record
from advisor.analysis.forward_memory import forward_memory
from advisor.analysis.lasting_memory import lasting_memory, parameter_sizes
from advisor.analysis.memory_tags import tagged_blocks
from advisor.analysis.stack_frames import Role
from advisor.analysis.step_memory import backward_memory, gradients, optimizer_memory
from advisor.model.snapshot import NOT_RECORDED


def attribute(record: Record, moment: int) -> Attribution:
    """Attribute every block that is live at a moment."""
    uses = record.timeline.uses
    rows = record.timeline.live(moment)
    found = Attribution(rows=rows, block=[""] * len(rows), why=[""] * len(rows))
    for at, block in tagged_blocks(record.snapshot, record.device, uses, rows, moment).items():
        found.decide([at], block, "the snapshot itself says so")
    _by_stack(record, found)
    is_gradient = gradients(record)
    backward_memory(record, found, is_gradient)
    is_state = optimizer_memory(record, found)
    forward_memory(record, found)
    found.parameter_sizes = parameter_sizes(record, is_gradient)
    lasting_memory(record, found, is_state, moment, makes_gradients=bool(is_gradient.any()))
    left = np.flatnonzero(found.undecided())
    for at in left.tolist():
        reason = "allocated before the record, or without a stack" if uses.stack[rows[at]] == NOT_RECORDED else "its stack does not tell"
        found.decide([at], "unattributed", reason)
    return found


def _by_stack(record: Record, found: Attribution) -> None:
    decided = (
        (Role.LOADING, "weights", "made while a module was built, moved or loaded"),
        (Role.CACHE, "kv_cache", "made by a cache of keys and values"),
        (
            Role.COMMUNICATION,
            "communication_buffers",
            "made by collectives, buckets or gathered parameters",
        ),
        (Role.INPUT, "inputs", "made by a data loader or a transfer of inputs"),
        (Role.SAVING, "temporaries", "a copy made while a state_dict was saved"),
    )
    role = record.role[found.rows]
    for wanted, block, why in decided:
        found.decide(np.flatnonzero(role == wanted).tolist(), block, why)
