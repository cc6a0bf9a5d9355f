"""Bring together what the views of a case gave: one finding a rule, and the view that the report shows."""

from advisor.engine.rank import Scored
from advisor.engine.resolve import Resolver
from advisor.model.dataclass import replace
from advisor.model.finding import Observation


def merged(scored: list[Scored]) -> Scored:
    """One finding a rule: the surest, naming the ranks or the number of inputs on which it was found too."""
    best = max(scored, key=lambda item: (item.finding.severity, item.confidence))
    if len(scored) == 1:
        return best
    ranks = tuple(sorted({rank for item in scored for rank in item.job_ranks}))
    where = f"ranks {', '.join(map(str, ranks))}" if len(ranks) > 1 else f"{len(scored)} inputs"
    others = [item.finding.observations[0].source for item in scored if item is not best]
    seen = Observation(statement=f"found on {where}", value=float(len(scored)), unit="count", source=others[0])
    finding = replace(best.finding, observations=(*best.finding.observations, seen))
    return replace(best, job_ranks=ranks, finding=finding)


def deciding_view(scored: tuple[Scored, ...], resolvers: list[Resolver]) -> Resolver:
    """The view whose ledger and breakdown the report shows: that of the gravest finding, else the first."""
    if len(resolvers) == 1 or not scored:
        return resolvers[0]
    gravest = max(scored, key=lambda item: (item.finding.severity, item.confidence))
    paths = {observation.source.path for observation in gravest.finding.observations}
    for resolver in resolvers:
        own = {item.source.path for item in resolver.case.evidence}
        same_rank = not gravest.job_ranks or set(resolver.case.ranks()) & set(gravest.job_ranks)
        if paths & own and same_rank:
            return resolver
    return resolvers[0]
