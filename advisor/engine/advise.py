"""`advise(case) -> Report`: the one entry point."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from advisor.engine.collecting import in_short, needs_in_words
from advisor.engine.evaluate import Outcome, evaluate
from advisor.engine.measures import MEASURES
from advisor.engine.merge import deciding_view, merged
from advisor.engine.rank import Scored, drop_explained, order
from advisor.engine.reasons import reasons_of
from advisor.engine.resolve import Resolver
from advisor.engine.views import views
from advisor.model.case import Case
from advisor.model.dataclass import replace
from advisor.model.failure import Failure
from advisor.model.finding import RuledOut
from advisor.model.memory import AllocatorRecord, MemoryLedger
from advisor.model.report import Diagnosis, FaultedRule, Report, SkippedRule
from advisor.model.run import FAILED_ENDS, RunEnd, RunRecord
from advisor.model.step_time import StepBreakdown
from advisor.rules.registry import REGISTRY, Entry
from advisor.rules.rule import Rule

if TYPE_CHECKING:
    from advisor.model.kernels import OperatorCosts
    from advisor.model.run import LoopTimes

SHOWN_MESSAGE = 120
"""Characters of a failure message that stand for it in a verdict."""

SMALLEST_SEGMENT_BYTES = 2 * 1024**2
"""What PyTorch's caching allocator asks of the driver at the least."""


def advise(case: Case, rules: Sequence[Rule | Entry] = REGISTRY) -> Report:
    """Evaluate all rules on a case and rank what they found.

    A rule without what it needs is reported as skipped, a rule that crashes as faulted; neither stops the others.
    """
    resolvers = [Resolver(view) for view in views(case)]
    outcomes = {rule.code: evaluate(rule, resolvers) for rule in rules}
    found = tuple(merged(outcome.scored) for outcome in outcomes.values() if outcome.scored)
    staying, explains = drop_explained(found)
    deciding = deciding_view(staying, resolvers)
    ledger = deciding.primary(MemoryLedger)
    ranked = order(
        staying,
        shortage_bytes=_shortage_bytes(deciding.primary(Failure), deciding.primary(AllocatorRecord)),
        device_bytes=ledger.device_bytes if ledger else None,
    )
    return Report(
        diagnoses=tuple(_diagnosis(place, item, explains.get(item.code, ())) for place, item in enumerate(ranked, start=1)),
        memory=ledger,
        time=_time(deciding),
        operators=costs.operators if (costs := _costs(deciding)) else (),
        checked_count=sum(outcome.was_checked for outcome in outcomes.values()),
        skipped=_skipped(outcomes, _crashed_kinds(resolvers)),
        faulted=_faulted(outcomes, resolvers),
        unreadable=case.unreadable,
        reasons=reasons_of(case),
        record=case.first(RunRecord),
        ended=_ended(case),
        failures=tuple(f"{failure.message[:SHOWN_MESSAGE]} ({failure.source})" for failure in case.of(Failure) if not failure.recovered),
        gaps=tuple(dict.fromkeys(f"{item.source.path}: {gap}" for item in case.evidence for gap in item.gaps)),
    )


def _costs(resolver: Resolver) -> "OperatorCosts | None":
    found = cast("tuple[OperatorCosts, ...]", resolver.named("OperatorCosts"))
    return next(iter(found), None)


def _time(resolver: Resolver) -> StepBreakdown | None:
    """The breakdown, with the MFU where the shapes and the device's peak are known; one above 1 is a contradiction, hence unknown."""
    breakdown, costs = resolver.primary(StepBreakdown) or _loop_breakdown(resolver), _costs(resolver)
    if breakdown is None or costs is None or costs.mfu_ratio is None or costs.mfu_ratio > 1:
        return breakdown
    return replace(breakdown, mfu_ratio=costs.mfu_ratio)


def _loop_breakdown(resolver: Resolver) -> StepBreakdown | None:
    """The breakdown by a watched loop's phases, where no trace gives one."""
    loops = resolver.named("LoopTimes")
    if not loops:
        return None
    from advisor.analysis.loop_breakdown import loop_breakdown  # noqa: PLC0415 - only runs need it

    return loop_breakdown(cast("LoopTimes", loops[0]))


def _shortage_bytes(failure: Failure | None, record: AllocatorRecord | None) -> int | None:
    """What the refused request lacked: the request less what was free, at least one allocator segment."""
    if failure is not None and failure.requested_bytes is not None:
        requested, free = failure.requested_bytes, failure.free_bytes
    elif record is not None and record.oom_requested_bytes is not None:
        requested, free = record.oom_requested_bytes, record.oom_free_bytes
    else:
        return None
    return max(requested - (free or 0), SMALLEST_SEGMENT_BYTES)


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


def _ended(case: Case) -> str:
    """How the first rank that failed did, and what it was doing then."""
    for end in case.of(RunEnd):
        if end.how in FAILED_ENDS:
            place = f" in {end.phase.replace('_', ' ')}" if end.phase not in {"", "other"} else ""
            step = f" behind step {end.step}" if end.step is not None else ""
            rank = f"rank {end.rank} " if end.rank is not None else ""
            return f"{rank}{end.statements[0] if end.statements else end.how}{place}{step}"
    return ""


def _crashed_kinds(resolvers: list[Resolver]) -> frozenset[str]:
    """The kinds of measure that could not be made since their analysis crashed: nobody is told to collect what is there."""
    crashed = {function for resolver in resolvers for function in resolver.faults}
    return frozenset(measure.makes for measure in MEASURES if measure.function in crashed)


def _skipped(outcomes: dict[str, Outcome], crashed: frozenset[str]) -> tuple[SkippedRule, ...]:
    skipped = []
    for code, outcome in sorted(outcomes.items()):
        if not outcome.was_checked and outcome.missing and not crashed.intersection(outcome.missing):
            needs, collect_with = needs_in_words(outcome.missing, is_alternative=outcome.is_alternative)
            kind, hint = in_short(collect_with)
            skipped.append(SkippedRule(code=code, needs=needs, collect_with=collect_with, kind=kind, hint=hint))
    return tuple(skipped)


def _faulted(outcomes: dict[str, Outcome], resolvers: list[Resolver]) -> tuple[FaultedRule, ...]:
    rules = {code: outcome.fault for code, outcome in sorted(outcomes.items()) if outcome.fault}
    analyses = {function: fault for resolver in resolvers for function, fault in resolver.faults.items()}
    return tuple(FaultedRule(code=code, because=because) for code, because in (rules | analyses).items())
