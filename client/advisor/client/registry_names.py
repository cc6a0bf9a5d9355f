"""Names of storages: put together at the end of a walk, for the largest only."""

from typing import Any

Name = Any
"""A text; or (Name of the holder or None, own name); or (what, Name, "of"): "exp_avg of blocks.0.mlp.weight". A walk makes thousands."""

WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"})
"""Modules between a user's module and its parameters (torch.compile, FSDP, checkpoint_wrapper, Lightning Fabric): no part of a name."""

OUTER_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine", "AveragedModel"})
"""Classes that hold the user's model as `module`."""

MOST_PARTS = 64
"""Parts of a name: a module that holds itself has no end."""


def is_wrapper(name: str, owner_class: str) -> bool:
    """Whether a child module's name is no part of its parameters' names."""
    return name in WRAPPERS or (name == "module" and owner_class in OUTER_WRAPPERS)


def text_of(name: Name) -> str:
    """The name as people write it: "blocks.0.mlp.weight", "exp_avg of blocks.0.mlp.weight"."""
    parts: list[str] = []
    while type(name) is tuple and len(parts) < MOST_PARTS:
        if len(name) == 3:  # noqa: PLR2004 - see Name
            parts.append(f"{name[0]} of {text_of(name[1])}")
            name = ""
        else:
            name, own = name
            parts.append(str(own))
    if name:
        parts.append(str(name))
    parts.reverse()
    return ".".join(parts)
