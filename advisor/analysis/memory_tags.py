"""Read what a snapshot itself says of its blocks: the profiler's categories, `annotate` events, and metadata set by the program."""

import numpy as np
from numpy.typing import NDArray

from advisor.analysis.allocation_lifetimes import Lifetimes
from advisor.model.memory import BLOCKS
from advisor.model.snapshot import Action, AllocatorSnapshot, DeviceSnapshot

PROFILER_CATEGORIES = {
    "parameter": "weights",
    "gradient": "gradients",
    "optimizer_state": "optimizer_states",
    "activation": "activations",
    "input": "inputs",
    "temporary": "temporaries",
    "autograd_detail": "temporaries",
}
"""torch.profiler._memory_profiler.Category, in lower case; "unknown" says nothing."""

NOT_TAGS = (
    "allocator_rounding",
    "allocator_cached",
    "private_pools",
    "non_pytorch",
    "other_processes",
    "free",
    "unattributed",
)

TAGS = {name: name for name in BLOCKS if name not in NOT_TAGS} | PROFILER_CATEGORIES
"""Texts that count as tags, whole; any other metadata is the program's own business."""


def tagged_blocks(
    snapshot: AllocatorSnapshot,
    device: DeviceSnapshot,
    uses: Lifetimes,
    rows: NDArray[np.int64],
    moment: int,
) -> dict[int, str]:
    """The entry of the ledger for each live use that carries a tag, by its position in `rows`; the newest tag counts."""
    found: dict[int, str] = {}
    category_block = [TAGS.get(name) for name in snapshot.categories]
    text_block = [TAGS.get(text.strip().lower()) for text in snapshot.texts]
    if any(category_block) or any(text_block):
        for at, (category, text) in enumerate(zip(uses.category[rows].tolist(), uses.text[rows].tolist(), strict=True)):
            block = (category_block[category] if category >= 0 else None) or (text_block[text] if text >= 0 else None)
            if block:
                found[at] = block
    events = device.events
    marks = np.flatnonzero((events.action == Action.ANNOTATE) & (events.text >= 0))
    position = {address: at for at, address in enumerate(uses.address[rows].tolist())} if len(marks) else {}
    for mark in marks.tolist():
        at = position.get(int(events.address[mark]), -1)
        block = text_block[events.text[mark]]
        # What a tensor is holds for its whole life: a tag that comes after the moment counts where none came before it.
        if at >= 0 and block and uses.start[rows[at]] < mark < uses.end[rows[at]] and (mark <= moment or at not in found):
            found[at] = block
    return found
