"""`advise(case) -> Report`: the one entry point."""

from dataclasses import dataclass, field, replace

from advisor.engine.calibration import calibrated
from advisor.engine.collecting import needs_in_words
from advisor.engine.rank import Scored, drop_explained, order
from advisor.engine.resolve import Resolver
from advisor.engine.views import views
from advisor.model.case import Case
from advisor.model.evidence import Evidence
from advisor.model.failure import Failure
from advisor.model.finding import Finding, Observation, RuledOut
from advisor.model.kernels import OperatorCosts
from advisor.model.memory import MemoryLedger
from advisor.model.report import Diagnosis, FaultedRule, Report, SkippedRule
from advisor.model.step_time import StepBreakdown
from advisor.rules.registry import RULES
from advisor.rules.rule import Rule

SMALLEST_SEGMENT_BYTES = 2 * 1024**2
"""What PyTorch's caching allocator asks of the driver at the least."""


@dataclass
class _Outcome:
    """What a rule did over all views."""

    scored: list[Scored] = field(default_factory=list)
    missing: tuple[type[Evidence], ...] = ()
    was_checked: bool = False
    fault: str | None = None


def advise(case: Case, rules: tuple[Rule, ...] = RULES) -> Report:
    """Evaluate all rules on a case and rank what they found.

    A rule without what it needs is reported as skipped, a rule that crashes as faulted; neither stops the others.
    """
    resolvers = [Resolver(view) for view in views(case)]
    outcomes = {rule.code: _evaluate(rule, resolvers) for rule in rules}
    merged = tuple(_merge(outcome.scored) for outcome in outcomes.values() if outcome.scored)
    staying, explains = drop_explained(merged)
    deciding = _deciding_view(staying, resolvers)
    ledger = deciding.primary(MemoryLedger)
    breakdown = deciding.primary(StepBreakdown)
    costs = deciding.primary(OperatorCosts)
    ranked = order(
        staying,
        shortage_bytes=_shortage_bytes(deciding.primary(Failure)),
        device_bytes=ledger.device_bytes if ledger else None,
    )
    return Report(
        diagnoses=tuple(_diagnosis(place, item, explains.get(item.code, ())) for place, item in enumerate(ranked, start=1)),
        memory=ledger,
        time=breakdown,
        operators=costs.operators if costs else (),
        checked_count=sum(outcome.was_checked for outcome in outcomes.values()),
        skipped=_skipped(outcomes),
        faulted=_faulted(outcomes, resolvers),
        unreadable=case.unreadable,
        gaps=tuple(dict.fromkeys(f"{item.source.path}: {gap}" for item in case.evidence for gap in item.gaps)),
    )


def _evaluate(rule: Rule, resolvers: list[Resolver]) -> _Outcome:
    outcome = _Outcome()
    for resolver in resolvers:
        arguments: dict[str, object] = {}
        missing = []
        for need in rule.needs:
            found = resolver.all_of(need.kind)
            if not found and not need.optional:
                missing.append(need.kind)
            arguments[need.parameter] = found if need.many else next(iter(found), None)
        if missing:
            outcome.missing = outcome.missing or tuple(missing)
            continue
        if not any(value for value in arguments.values()):
            outcome.missing = outcome.missing or tuple(need.kind for need in rule.needs)
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


def _scored(rule: Rule, finding: Finding, resolver: Resolver) -> Scored:
    ranks = resolver.case.ranks()
    return Scored(
        code=rule.code,
        name=rule.name,
        confidence=calibrated(finding.confidence),
        finding=finding,
        job_ranks=ranks if len(ranks) == 1 else (),
    )


def _merge(scored: list[Scored]) -> Scored:
    """One finding a rule: the surest, naming the ranks and files on which it was found too."""
    best = max(scored, key=lambda item: (item.finding.severity, item.confidence))
    if len(scored) == 1:
        return best
    ranks = tuple(sorted({rank for item in scored for rank in item.job_ranks}))
    where = f"ranks {', '.join(map(str, ranks))}" if len(ranks) > 1 else f"{len(scored)} inputs"
    others = tuple(item.finding.observations[0].source for item in scored if item is not best)
    seen = Observation(statement=f"found on {where}", value=float(len(scored)), unit="count", source=others[0])
    return replace(best, job_ranks=ranks, finding=replace(best.finding, observations=(*best.finding.observations, seen)))


def _deciding_view(scored: tuple[Scored, ...], resolvers: list[Resolver]) -> Resolver:
    """The view whose ledger and breakdown the report shows: that of the gravest finding, else the first."""
    if len(resolvers) > 1 and scored:
        gravest = max(scored, key=lambda item: (item.finding.severity, item.confidence))
        paths = {observation.source.path for observation in gravest.finding.observations}
        for resolver in resolvers:
            ranks = resolver.case.ranks()
            own = {item.source.path for item in resolver.case.evidence}
            if paths & own and (not gravest.job_ranks or set(ranks) & set(gravest.job_ranks)):
                return resolver
    return resolvers[0]


def _shortage_bytes(failure: Failure | None) -> int | None:
    """What the refused request lacked: the request less what was free, at least one allocator segment."""
    if failure is None or failure.requested_bytes is None:
        return None
    return max(failure.requested_bytes - (failure.free_bytes or 0), SMALLEST_SEGMENT_BYTES)


def _diagnosis(place: int, item: Scored, explains: tuple[str, ...]) -> Diagnosis:
    named = {ruled.code for ruled in item.finding.ruled_out}
    same_cause = tuple(
        RuledOut(code=code, because="the same cause seen from further away; this diagnosis explains it")
        for code in explains
        if code not in named
    )
    return Diagnosis(
        rank=place,
        code=item.code,
        name=item.name,
        confidence=item.confidence,
        finding=replace(item.finding, ruled_out=(*item.finding.ruled_out, *same_cause)),
        job_ranks=item.job_ranks,
        explains=explains,
    )


def _skipped(outcomes: dict[str, _Outcome]) -> tuple[SkippedRule, ...]:
    skipped = []
    for code, outcome in sorted(outcomes.items()):
        if not outcome.was_checked and outcome.missing:
            needs, collect_with = needs_in_words(outcome.missing)
            skipped.append(SkippedRule(code=code, needs=needs, collect_with=collect_with))
    return tuple(skipped)


def _faulted(outcomes: dict[str, _Outcome], resolvers: list[Resolver]) -> tuple[FaultedRule, ...]:
    rules = {code: outcome.fault for code, outcome in sorted(outcomes.items()) if outcome.fault}
    analyses = {function: fault for resolver in resolvers for function, fault in resolver.faults.items()}
    return tuple(FaultedRule(code=code, because=because) for code, because in (rules | analyses).items())
