"""A case: all the evidence about one job, or about one rank of it."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence

E = TypeVar("E", bound=Evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An input that could not be read, and why."""

    path: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Evidence in the order in which it was given; the first of a kind is the primary one."""

    evidence: tuple[Evidence, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    def of(self, kind: type[E]) -> Iterator[E]:
        """All evidence of a kind, in order."""
        return (item for item in self.evidence if isinstance(item, kind))

    def first(self, kind: type[E]) -> E | None:
        """The primary evidence of a kind, or None."""
        return next(self.of(kind), None)

    def ranks(self) -> tuple[int, ...]:
        """The ranks that any evidence belongs to, sorted."""
        return tuple(sorted({item.rank for item in self.evidence if item.rank is not None}))

    def with_evidence(self, extra: Iterable[Evidence]) -> "Case":
        """The same case with more evidence behind what it has."""
        return Case(evidence=(*self.evidence, *extra), unreadable=self.unreadable)
