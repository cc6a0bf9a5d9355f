"""Settings of PyTorch's caching allocator that several rules advise, by what a version can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Action, Prediction

if TYPE_CHECKING:
    from advisor.model.failure import Failure

VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""Where the settings are read from: the first since torch 2.9, the others before (and still)."""

EXPANDABLE = "expandable_segments"

NOT_REPLAYED = "was not replayed on a snapshot of yours"

OLDEST_EXPANDABLE = (2, 1)
"""First release with usable expandable segments."""

OLDEST_SETTINGS = (1, 8)
"""First release that reads allocator settings at all (max_split_size_mb)."""


def version_of(failure: Failure | None) -> tuple[int, int] | None:
    """The earliest torch release that a message's wording belongs to; None where it does not tell."""
    for word in failure.generation.split() if failure is not None else ():
        major, _, minor = word.partition(".")
        if major.isdigit():
            return int(major), int(minor) if minor.isdigit() else 0
    return None


def is_on(settings: str, name: str) -> bool:
    """Whether a printed setting switches something on: "expandable_segments:True,..."."""
    pairs = (pair.partition(":") for pair in settings.replace("'", "").replace('"', "").split(","))
    return any(key.strip() == name and value.strip().lower() == "true" for key, _, value in pairs)


def expandable_segments(predicted: Prediction | None = None) -> Action:
    """Let segments grow instead of adding new ones."""
    return Action(
        title="Let the allocator's segments grow (expandable segments)",
        change="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # in the environment, before python starts; "
        "PYTORCH_ALLOC_CONF since torch 2.9; Linux only",
        cost=f"a little slower where segments grow; no CUDA IPC of such tensors before torch 2.7; {NOT_REPLAYED}",
        predicted=predicted or Prediction(),
    )


def largest_split(split_mib: int) -> Action:
    """Keep large blocks whole."""
    return Action(
        title="Do not split large blocks",
        change=f"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:{split_mib}  # blocks above it are kept whole; where expandable segments "
        "cannot be used (Windows, torch before 2.1)",
        cost=f"more driver allocations, so slower steps; {NOT_REPLAYED}",
    )


def garbage_collection(threshold_ratio: float = 0.8) -> Action:
    """Return unused cached blocks before the device is full."""
    return Action(
        title="Give unused cached blocks back before the device is full",
        change=f"PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:{threshold_ratio}",
        cost=f"frees and new driver allocations in some steps; {NOT_REPLAYED}",
    )


def padded_shapes() -> Action:
    """Few distinct sizes."""
    return Action(
        title="Pad inputs to a few lengths",
        change="collate with pad_to_multiple_of=256 (or bucket by length), so that blocks of one step fit the next",
        cost="padding is computed too: on average half a bucket a sample",
    )
