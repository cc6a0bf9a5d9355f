"""The JSON documents of a run's folder → evidence: its record, its failures, how it ended."""

from collections.abc import Mapping
from typing import Any

import msgspec

from advisor.model.errors import UnreadableInput
from advisor.model.evidence import Source
from advisor.model.run import RECORD_ITEMS, RunEnd, RunRecord

DAMAGED = "it was damaged after it was written; the rest of the folder is still read"

ENDS = ("exit", "exception", "signal", "host_oom", "abrupt", "detached", "unknown", "running")


def read_document(data: bytes, path: str) -> dict[str, Any]:
    """A JSON object of the run's folder.

    Raises:
        UnreadableInput: if it is none.
    """
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableInput(f"{path}: no JSON ({error})", DAMAGED) from None
    if not isinstance(found, dict):
        raise UnreadableInput(f"{path}: no JSON object", DAMAGED)
    return found


def run_record(at_attach: Mapping[str, Any], later: Mapping[str, Any], metrics: tuple[tuple[str, float], ...], path: str) -> RunRecord:
    """The record: what attach() wrote at once, what the sidecar added, and the last metrics."""
    items: dict[str, Any] = {}
    for document in (at_attach, later):
        known = document.get("items")
        if isinstance(known, Mapping):
            items |= {name: value for name, value in known.items() if name in RECORD_ITEMS and value is not None}
    items.setdefault("run_id", at_attach.get("run_id"))
    if metrics:
        items["metrics"] = {**dict(metrics), **(items.get("metrics") or {})}
    facts = {name: value for document in (at_attach, later) for name, value in document.items() if name != "items"}
    rank = at_attach.get("rank")
    return RunRecord(source=Source(path=path), rank=rank if isinstance(rank, int) else None, items=items, facts=facts)


def run_end(document: Mapping[str, Any], path: str, rank: int | None) -> RunEnd:
    """How the trainer ended, by the sidecar's account; fields of a wrong type are unknown."""
    how, code, step = document.get("how"), document.get("exit_code"), document.get("step")
    told = document.get("statements")
    return RunEnd(
        source=Source(path=path),
        rank=rank,
        how=how if how in ENDS else "unknown",
        signal=_text(document.get("signal")),
        exit_code=code if isinstance(code, int) else None,
        phase=_text(document.get("phase")),
        step=step if isinstance(step, int) else None,
        statements=tuple(item for item in told if isinstance(item, str)) if isinstance(told, list) else (),
    )


def failure_text(document: Mapping[str, Any]) -> str:
    """The text of a failure, as a log would hold it; empty where there is none."""
    return _text(document.get("text"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
