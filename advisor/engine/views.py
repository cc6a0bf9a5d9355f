"""Split a case into views: one a rank, or one a file where several files of a kind name no rank."""

from collections.abc import Iterator

from advisor.model.case import Case
from advisor.model.evidence import Evidence

SUBJECTS = ("Failure", "AllocatorSnapshot", "KinetoTrace", "OperatorTable", "MemorySummary", "KernelLog", "NodeReading", "RunSteps")
"""Kinds that describe one process or one node: two files of one of them are two subjects. Logs and declarations are context."""

Key = int | str | None


def views(case: Case) -> Iterator[Case]:
    """The views of a case; evidence that belongs to no rank and to no file of a split kind is part of every view.

    Evidence of a known rank goes to that rank's view. Several files of one kind without a rank are looked at one by one, with whatever
    else stands in the same file, since nothing says that they belong together.
    """
    split = _split_paths(case)
    keys = [_key(item, split) for item in case.evidence]
    distinct = list(dict.fromkeys(key for key in keys if key is not None))
    if not distinct:
        yield case
        return
    for chosen in distinct:
        members = tuple(item for item, key in zip(case.evidence, keys, strict=True) if key in (chosen, None))
        yield Case(evidence=members, unreadable=case.unreadable)


def _split_paths(case: Case) -> set[str]:
    by_kind: dict[str, set[str]] = {}
    for item in case.evidence:
        kind = type(item).__name__
        if item.rank is None and kind in SUBJECTS:
            by_kind.setdefault(kind, set()).add(item.source.path)
    return {path for paths in by_kind.values() if len(paths) > 1 for path in paths}


def _key(item: Evidence, split: set[str]) -> Key:
    if item.rank is not None:
        return item.rank
    return item.source.path if item.source.path in split else None
