"""Find what a rule needs: evidence of the case, or a measure made from it, once."""

from dataclasses import dataclass, field
from typing import TypeVar, cast

from advisor.engine.measures import MEASURES, Measure
from advisor.model.case import Case
from advisor.model.evidence import Evidence

E = TypeVar("E", bound=Evidence)


@dataclass
class Resolver:
    """Evidence and measures of one view of a case; each measure is made at most once.

    Attributes:
        case: the view.
        measures: the table of analyses.
        faults: "module:function" → what went wrong, for analyses that crashed.
    """

    case: Case
    measures: tuple[Measure, ...] = MEASURES
    faults: dict[str, str] = field(default_factory=dict)
    _made: dict[type[Evidence], tuple[Evidence, ...]] = field(default_factory=dict)

    def all_of(self, kind: type[E]) -> tuple[E, ...]:
        """All of a kind, the primary one first; empty where there is none."""
        if kind not in self._made:
            self._made[kind] = ()  # a measure that needs itself finds nothing instead of recursing
            given = tuple(self.case.of(kind))
            self._made[kind] = given or self._make(kind)
        return cast("tuple[E, ...]", self._made[kind])

    def primary(self, kind: type[E]) -> E | None:
        """The primary one of a kind."""
        return next(iter(self.all_of(kind)), None)

    def _make(self, kind: type[Evidence]) -> tuple[Evidence, ...]:
        made: list[Evidence] = []
        for measure in self.measures:
            if measure.makes is kind:
                made.extend(self._run(measure))
        return tuple(made)

    def _run(self, measure: Measure) -> tuple[Evidence, ...]:
        inputs = [self.primary(need) for need in measure.needs]
        required = inputs[: len(inputs) - measure.optional]
        if any(item is None for item in required):
            return ()
        try:
            result = measure.load()(*inputs)
        except Exception as fault:  # noqa: BLE001 - a crash in one analysis is reported, the others go on
            self.faults[measure.function] = f"{type(fault).__name__}: {fault}"
            return ()
        if result is None:
            return ()
        return result if isinstance(result, tuple) else (result,)
