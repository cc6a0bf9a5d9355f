"""Find what a rule needs: evidence of the case, or a measure made from it, once."""

from functools import lru_cache
from typing import TypeVar, cast

from advisor.engine.measures import MEASURES, Measure
from advisor.model.case import Case
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Evidence

E = TypeVar("E", bound=Evidence)


@lru_cache(maxsize=64)
def reachable(kinds: frozenset[str]) -> frozenset[str]:
    """The kinds that evidence of the given kinds can lead to, those themselves included, if every analysis yields something."""
    found = set(kinds)
    while more := {measure.makes for measure in MEASURES if measure.makes not in found and found.issuperset(measure.required)}:
        found |= more
    return frozenset(found)


@dataclass
class Resolver:
    """Evidence and measures of one view of a case; each measure is made at most once.

    Kinds are asked for by their names, so that nothing is imported only to find that a case does not have it.

    Attributes:
        case: the view.
        faults: "module:function" → what went wrong, for analyses that crashed.
    """

    case: Case
    faults: dict[str, str] = field(default_factory=dict)
    _made: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)
    _given: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)
    _reachable: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Sort the evidence by kind once: each rule asks for several kinds of every view."""
        by_kind: dict[str, list[Evidence]] = {}
        for item in self.case.evidence:
            by_kind.setdefault(type(item).__name__, []).append(item)
        self._given = {kind: tuple(items) for kind, items in by_kind.items()}
        self._reachable = reachable(frozenset(by_kind))

    def named(self, kind: str) -> tuple[Evidence, ...]:
        """All of a kind, the primary one first; empty where there is none."""
        if kind not in self._made:
            self._made[kind] = ()  # a measure that needs itself finds nothing instead of recursing
            self._made[kind] = self._given.get(kind) or self._make(kind)
        return self._made[kind]

    def all_of(self, kind: type[E]) -> tuple[E, ...]:
        """The same, by the kind itself."""
        return cast("tuple[E, ...]", self.named(kind.__name__))

    def primary(self, kind: type[E]) -> E | None:
        """The primary one of a kind."""
        return next(iter(self.all_of(kind)), None)

    def can_have(self, kind: str) -> bool:
        """Whether there is evidence of a kind, or an analysis whose required needs can be met; makes nothing."""
        if kind in self._made:
            return bool(self._made[kind])
        if kind in self._given:
            return True
        if kind not in self._reachable:
            return False
        return any(all(self.can_have(need) for need in measure.required) for measure in MEASURES if measure.makes == kind)

    def _make(self, kind: str) -> tuple[Evidence, ...]:
        return tuple(made for measure in MEASURES if measure.makes == kind for made in self._run(measure))

    def _run(self, measure: Measure) -> tuple[Evidence, ...]:
        if not all(self.named(need) for need in measure.required):
            return ()
        inputs = [self._input(need) for need in measure.needs]
        try:
            result = measure.load()(*inputs)
        except Exception as fault:  # noqa: BLE001 - a crash in one analysis is reported, the others go on
            self.faults[measure.function] = f"{type(fault).__name__}: {fault}"
            return ()
        if result is None:
            return ()
        return result if isinstance(result, tuple) else (result,)

    def _input(self, need: str) -> Evidence | tuple[Evidence, ...] | None:
        """What one parameter of an analysis gets: all of a kind, or its primary one."""
        found = self.named(need.rstrip("?*"))
        return found if need.endswith("*") else next(iter(found), None)
