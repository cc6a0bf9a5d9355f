"""Split a case into views: one a rank, or one a file where several files of a kind name no rank."""

from bisect import bisect_left
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
    own: dict[Key, list[int]] = {}
    context: list[int] = []
    for place, item in enumerate(case.evidence):
        key = _key(item, split)
        (context if key is None else own.setdefault(key, [])).append(place)
    if not own:
        yield case
        return
    shared = tuple(map(case.evidence.__getitem__, context))
    for places in own.values():
        yield Case(evidence=_merged(case.evidence, places, context, shared), unreadable=case.unreadable)


def _merged(evidence: tuple[Evidence, ...], places: list[int], context: list[int], shared: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """A view's own evidence between the context, in the case's order; the context is copied in runs, since there may be much of both."""
    merged: list[Evidence] = []
    begin = 0
    for place in places:
        end = bisect_left(context, place, begin)
        merged += shared[begin:end]
        merged.append(evidence[place])
        begin = end
    return (*merged, *shared[begin:])


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
