"""The ranking, as one pure function; docs/ranking.md explains it to users."""

from advisor.model.dataclass import dataclass
from advisor.model.finding import Finding, Severity

UNKNOWN_RESCUE = 0.5
"""Share of a failure's shortage that a finding of unknown size is taken to cover: neither trusted nor dismissed."""

UNKNOWN_SAVING = 0.1
"""Share of the step (or the device) that a finding of unknown size is taken to save: a tenth, the smallest that rules report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A finding with its rule and its calibrated confidence."""

    code: str
    name: str
    confidence: float
    finding: Finding
    job_ranks: tuple[int, ...] = ()


def order(scored: tuple[Scored, ...], *, shortage_bytes: int | None, device_bytes: int | None) -> tuple[Scored, ...]:
    """Order by severity, then confidence × what can be won, then code.

    What can be won is taken from each finding alone and never summed. For a failure (ERROR) it is the share of the shortage that the
    finding would give back, and it moves the score by at most a half: a failed job needs the right cause first. For a cost it is the
    share of the step, or of the device's memory.

    Args:
        scored: what the rules found.
        shortage_bytes: what the failed request lacked; None where nothing failed or the text does not say.
        device_bytes: the device's capacity; None where unknown.
    """
    return tuple(
        sorted(
            scored,
            key=lambda item: (
                -item.finding.severity,
                -round(item.confidence * _won(item.finding, shortage_bytes, device_bytes), 6),
                item.code,
            ),
        )
    )


def _won(finding: Finding, shortage_bytes: int | None, device_bytes: int | None) -> float:
    impact = finding.impact
    if finding.severity is Severity.ERROR:
        covered = UNKNOWN_RESCUE
        if impact.recoverable_bytes is not None and shortage_bytes:
            covered = min(1.0, impact.recoverable_bytes / shortage_bytes)
        return 0.5 + 0.5 * covered
    if impact.step_ratio is not None:
        return min(1.0, max(0.0, impact.step_ratio))
    if impact.recoverable_bytes is not None and device_bytes:
        return min(1.0, impact.recoverable_bytes / device_bytes)
    return UNKNOWN_SAVING


def drop_explained(scored: tuple[Scored, ...]) -> tuple[tuple[Scored, ...], dict[str, tuple[str, ...]]]:
    """Leave one finding a cause: what another finding supersedes goes, and is named by it.

    Returns:
        The findings that stay, and for each of their codes the codes that it explains. Of two findings that supersede each other the
        one with the higher confidence stays.
    """
    found = {item.code: item for item in scored}
    explained: dict[str, str] = {}
    for item in sorted(scored, key=lambda one: -one.confidence):
        for code in item.finding.supersedes:
            if code in found and code != item.code and item.code not in explained:
                explained.setdefault(code, item.code)
    stay = tuple(item for item in scored if item.code not in explained)
    by_explainer: dict[str, tuple[str, ...]] = {}
    for code, explainer in sorted(explained.items()):
        by_explainer[explainer] = (*by_explainer.get(explainer, ()), code)
    return stay, by_explainer
