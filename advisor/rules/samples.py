"""Builders of the evidence that rules' own cases are made of; a page's example comes from them."""

from typing import Any

from advisor.model.case import Case
from advisor.model.evidence import Evidence, Source
from advisor.model.failure import Failure, FailureKind, LogText
from advisor.model.memory import BLOCKS, AllocatorRecord, Basis, MemoryLedger, Moment
from advisor.model.step_time import PARTS, Bound, StepBreakdown

GIB = 1024**3
MIB = 1024**2

LOG = Source(path="train.log", where="line 120")
SNAPSHOT = Source(path="snapshot.pickle", where="device 0")
TRACE = Source(path="trace.json.gz", where="device 0")


def a_case(*evidence: Evidence) -> Case:
    """A case of this evidence."""
    return Case(evidence=evidence)


def a_failure(**fields: Any) -> Failure:  # noqa: ANN401 - the fields of Failure
    """An out-of-memory message of torch 2.4 on an 80 GiB card; any field can be replaced."""
    base: dict[str, Any] = {
        "source": LOG,
        "kind": FailureKind.DEVICE_OUT_OF_MEMORY,
        "message": "CUDA out of memory.",
        "line": 120,
        "backend": "CUDA",
        "generation": "torch 2.4",
        "device_index": 0,
        "total_bytes": int(79.15 * GIB),
        "resolution_bytes": int(0.005 * GIB),
    }
    return Failure(**(base | fields))


def a_log(**fields: Any) -> LogText:  # noqa: ANN401 - the fields of LogText
    """A log of 200 lines that tells nothing besides its failures."""
    base: dict[str, Any] = {"source": Source(path="train.log"), "line_count": 200}
    return LogText(**(base | fields))


def a_ledger(*, device_bytes: int | None = 80 * GIB, **fields: Any) -> MemoryLedger:  # noqa: ANN401 - blocks or fields
    """A ledger from stacks; name blocks in bytes, what is left of the device is free."""
    blocks: dict[str, int | None] = {name: fields.pop(name) for name in BLOCKS if name in fields}
    held = sum(size for size in blocks.values() if size)
    entries: dict[str, int | None] = {name: blocks.get(name, 0) for name in BLOCKS}
    if device_bytes is not None and "free" not in blocks:
        entries["free"] = device_bytes - held
    base: dict[str, Any] = {
        "source": SNAPSHOT,
        "device_index": 0,
        "at": Moment.PEAK,
        "device_bytes": device_bytes,
        "entries": entries,
        "basis": Basis.STACKS,
        "allocated_bytes": held,
        "reserved_bytes": held,
    }
    return MemoryLedger(**(base | fields))


def a_record(**fields: Any) -> AllocatorRecord:  # noqa: ANN401 - the fields of AllocatorRecord
    """The record of a healthy allocator: complete, nothing failed."""
    base: dict[str, Any] = {
        "source": SNAPSHOT,
        "device_index": 0,
        "event_count": 10_000,
        "record_is_complete": True,
        "unrecorded_live_bytes": 0,
        "dump_allocated_bytes": 20 * GIB,
        "dump_reserved_bytes": 21 * GIB,
        "peak_allocated_bytes": 24 * GIB,
        "peak_reserved_bytes": 25 * GIB,
    }
    return AllocatorRecord(**(base | fields))


def a_breakdown(*, window_seconds: float = 1.0, step_count: int = 10, **fields: Any) -> StepBreakdown:  # noqa: ANN401 - parts or fields
    """A breakdown of ten steps of 0.1 s; name parts as ratios, what is left of 1 is compute."""
    parts = {name: fields.pop(name, 0.0) for name in PARTS if name != "compute"}
    parts = {"compute": fields.pop("compute", 1.0 - sum(parts.values())), **parts}
    base: dict[str, Any] = {
        "source": TRACE,
        "device_index": 0,
        "window_seconds": window_seconds,
        "step_count": step_count,
        "step_seconds": window_seconds / step_count if step_count else None,
        "busy_ratio": parts["compute"] + parts["exposed_communication"] + parts["exposed_copies"],
        "parts": parts,
        "seconds": {name: ratio * window_seconds for name, ratio in parts.items()},
        "bound": Bound.COMPUTE,
    }
    return StepBreakdown(**(base | fields))
