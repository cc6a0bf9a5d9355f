"""Split a case into views: one a rank, or one a file where several files of a kind name no rank."""

from collections.abc import Iterator

from advisor.model.case import Case
from advisor.model.evidence import Evidence

Key = int | str | None


def views(case: Case) -> Iterator[Case]:
    """The views of a case; evidence that belongs to no rank and is alone of its kind is part of every view.

    Evidence of a known rank goes to that rank's view. Several files of one kind without a rank are looked at one by one, since nothing
    says that they belong together.
    """
    keys = [_key(item, case) for item in case.evidence]
    distinct = list(dict.fromkeys(key for key in keys if key is not None))
    if not distinct:
        yield case
        return
    for chosen in distinct:
        members = tuple(item for item, key in zip(case.evidence, keys, strict=True) if key in (chosen, None))
        yield Case(evidence=members, unreadable=case.unreadable)


def _key(item: Evidence, case: Case) -> Key:
    if item.rank is not None:
        return item.rank
    siblings = {other.source.path for other in case.of(type(item)) if other.rank is None}
    return item.source.path if len(siblings) > 1 else None
