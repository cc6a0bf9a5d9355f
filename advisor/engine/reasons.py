"""Why a case looks healthy, as far as its evidence itself says so; the report of a healthy run prints it."""

from advisor.model.case import Case
from advisor.model.failure import Failure, LogText


def reasons_of(case: Case) -> tuple[str, ...]:
    """One sentence for each log without a failure; measures add theirs when the report is rendered."""
    failed = {failure.source.path for failure in case.of(Failure)}
    return tuple(
        f"{log.source.path} names no failure in its {log.line_count:,} {'line' if log.line_count == 1 else 'lines'}"
        for log in case.of(LogText)
        if log.source.path not in failed
    )
