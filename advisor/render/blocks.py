"""The memory ledger and the breakdown of time as rows of a table, for every text format."""

from advisor.model.memory import BLOCKS, Basis, MemoryLedger
from advisor.model.step_time import PARTS, StepBreakdown
from advisor.rules.wording import bytes_text, seconds_text

Row = tuple[str, str, float]
"""A label, a figure with its unit, and its share of the whole (0 to 1)."""

BLOCK_LABELS = {
    "kv_cache": "KV cache",
    "non_pytorch": "outside PyTorch (context, libraries)",
    "other_processes": "other processes",
    "unattributed": "not attributed",
    "allocator_cached": "cached by the allocator",
    "allocator_rounding": "rounding by the allocator",
}

UNSPLIT = "outside PyTorch, owner not known"
UNSPLIT_WITH_FREE = "free, or outside PyTorch"
"""Rows of what is not the allocator's and not told apart; the contract counts both to `unattributed`."""

PART_LABELS = {
    "exposed_communication": "communication, not hidden",
    "exposed_copies": "copies, not hidden",
    "input_wait": "waiting for input",
    "synchronization": "waiting in synchronization",
    "launch": "waiting for kernel launches",
    "other_idle": "idle for other reasons",
}

SMALLEST_SHARE = 0.0005
"""Blocks below this share of the whole are left out of a table (ratio): they would print as 0.0%."""


def memory_rows(ledger: MemoryLedger) -> tuple[Row, ...]:
    """The known entries of the ledger, largest first, free memory last; what lies outside PyTorch and is nobody's by name is a row."""
    known = [(name, size) for name in BLOCKS if (size := ledger.entries.get(name)) is not None]
    if unsplit := ledger.unsplit_bytes:
        known = [(name, size - unsplit if name == "unattributed" else size) for name, size in known]
        known.append((UNSPLIT if ledger.entries.get("free") is not None else UNSPLIT_WITH_FREE, unsplit))
    whole = sum(size for _, size in known)
    if whole <= 0:
        return ()
    known.sort(key=lambda pair: (pair[0] == "free", -pair[1]))
    return tuple(
        (BLOCK_LABELS.get(name, name.replace("_", " ")), bytes_text(size), size / whole)
        for name, size in known
        if size / whole >= SMALLEST_SHARE
    )


def memory_title(ledger: MemoryLedger) -> str:
    """What the table shows: which device, when, on which basis."""
    moment = {"OOM": "when the request was refused", "PEAK": "at the peak", "DUMP": "when it was saved"}[ledger.at.value]
    basis = {"REGISTRY": "the trainer's own tensors", "STACKS": "allocation stacks", "TEXT": "the printed figures"}[ledger.basis.value]
    explained = any(ledger.entry(name) for name in BLOCKS[:8])
    if ledger.basis is Basis.STACKS and not explained:
        basis = "the blocks' sizes alone: no allocation stacks were recorded"
    capacity = f", {bytes_text(ledger.device_bytes)} in all" if ledger.device_bytes else ""
    return f"Memory of device {ledger.device_index} {moment}{capacity} (from {basis})"


def time_rows(breakdown: StepBreakdown) -> tuple[Row, ...]:
    """The parts of the window, largest first."""
    ratios = [(name, breakdown.parts[name]) for name in PARTS if breakdown.parts.get(name)]
    ratios.sort(key=lambda pair: -pair[1])
    return tuple(
        (PART_LABELS.get(name, name.replace("_", " ")), seconds_text(breakdown.seconds[name]), ratio)
        for name, ratio in ratios
        if ratio >= SMALLEST_SHARE
    )


def time_title(breakdown: StepBreakdown) -> str:
    """What the table shows: which device, how long, how many steps."""
    device = "the CPU" if breakdown.device_index is None else f"device {breakdown.device_index}"
    steps = ""
    if breakdown.step_count and breakdown.step_seconds is not None:
        noun = "step" if breakdown.step_count == 1 else "steps"
        steps = f", {breakdown.step_count} {noun} of {seconds_text(breakdown.step_seconds)} (median)"
    return f"Time of {device} over {seconds_text(breakdown.window_seconds)}{steps}"
