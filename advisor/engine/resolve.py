"""Find what a rule needs: evidence of the case, or a measure made from it, once."""

from typing import TypeVar, cast

from advisor.engine.measures import MEASURES, Measure
from advisor.model.case import Case
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Evidence

E = TypeVar("E", bound=Evidence)


@dataclass
class Resolver:
    """Evidence and measures of one view of a case; each measure is made at most once.

    Kinds are asked for by their names, so that nothing is imported only to find that a case does not have it.

    Attributes:
        case: the view.
        measures: the table of analyses.
        faults: "module:function" → what went wrong, for analyses that crashed.
    """

    case: Case
    measures: tuple[Measure, ...] = MEASURES
    faults: dict[str, str] = field(default_factory=dict)
    _made: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)

    def named(self, kind: str) -> tuple[Evidence, ...]:
        """All of a kind, the primary one first; empty where there is none."""
        if kind not in self._made:
            self._made[kind] = ()  # a measure that needs itself finds nothing instead of recursing
            given = tuple(item for item in self.case.evidence if type(item).__name__ == kind)
            self._made[kind] = given or self._make(kind)
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
        if any(type(item).__name__ == kind for item in self.case.evidence):
            return True
        return any(all(self.can_have(need) for need in measure.required) for measure in self.measures if measure.makes == kind)

    def _make(self, kind: str) -> tuple[Evidence, ...]:
        return tuple(made for measure in self.measures if measure.makes == kind for made in self._run(measure))

    def _run(self, measure: Measure) -> tuple[Evidence, ...]:
        if not all(self.named(need) for need in measure.required):
            return ()
        inputs = [next(iter(self.named(need.rstrip("?"))), None) for need in measure.needs]
        try:
            result = measure.load()(*inputs)
        except Exception as fault:  # noqa: BLE001 - a crash in one analysis is reported, the others go on
            self.faults[measure.function] = f"{type(fault).__name__}: {fault}"
            return ()
        if result is None:
            return ()
        return result if isinstance(result, tuple) else (result,)
