"""Evaluate one rule on the views of a case."""

from advisor.engine.calibration import calibrated
from advisor.engine.rank import Scored
from advisor.engine.resolve import Resolver
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Evidence
from advisor.model.finding import Finding
from advisor.rules.registry import Entry
from advisor.rules.rule import Rule


@dataclass
class Outcome:
    """What a rule did over all views.

    Attributes:
        scored: what it found, one a view at the most.
        missing: the kinds that it lacked in the first view that lacked any.
        is_alternative: whether any one of them would have done.
        was_checked: whether any view had what it needs.
        fault: the last crash.
    """

    scored: list[Scored] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    is_alternative: bool = False
    was_checked: bool = False
    fault: str | None = None


def evaluate(rule: Rule | Entry, resolvers: list[Resolver]) -> Outcome:
    """Run a rule on every view that has what it needs; a rule that no view can serve is not even loaded."""
    outcome = Outcome()
    if isinstance(rule, Entry):
        lacking = _out_of_reach(rule, resolvers[0])
        if lacking and all(_out_of_reach(rule, resolver) for resolver in resolvers[1:]):
            outcome.missing, outcome.is_alternative = lacking, not rule.required
            return outcome
        rule = rule.load()
    for resolver in resolvers:
        arguments, missing = _arguments(rule, resolver)
        if missing:
            outcome.missing = outcome.missing or missing
            outcome.is_alternative = all(need.optional for need in rule.needs)
            continue
        outcome.was_checked = True
        try:
            finding = rule.check(**arguments)
        except Exception as fault:  # noqa: BLE001 - a crash in a rule is reported, the rest goes on
            outcome.fault = f"{type(fault).__name__}: {fault}"
            continue
        if finding is not None:
            outcome.scored.append(_scored(rule, finding, resolver))
    return outcome


def _out_of_reach(entry: Entry, resolver: Resolver) -> tuple[str, ...]:
    """The kinds that a view cannot have and the rule cannot do without; empty where the rule can be tried."""
    missing = tuple(kind for kind in entry.required if not resolver.can_have(kind))
    if missing or entry.required or any(resolver.can_have(kind) for kind in entry.optional):
        return missing
    return entry.optional


def _arguments(rule: Rule, resolver: Resolver) -> tuple[dict[str, object], tuple[str, ...]]:
    arguments: dict[str, object] = {}
    missing = []
    for need in rule.needs:
        found: tuple[Evidence, ...] = resolver.named(need.kind)
        if not found and not need.optional:
            missing.append(need.kind)
        arguments[need.parameter] = found if need.many else (found[0] if found else None)
    if not missing and not any(arguments.values()):
        missing = [need.kind for need in rule.needs]
    return arguments, tuple(missing)


def _scored(rule: Rule, finding: Finding, resolver: Resolver) -> Scored:
    ranks = resolver.case.ranks()
    return Scored(
        code=rule.code,
        name=rule.name,
        confidence=calibrated(finding.confidence),
        finding=finding,
        job_ranks=ranks if len(ranks) == 1 else (),
    )
