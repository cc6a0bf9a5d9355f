"""The one line that a report begins with, and for a healthy run the reasons."""

from advisor.model.finding import Severity
from advisor.model.memory import MemoryLedger
from advisor.model.report import Report
from advisor.model.step_time import Bound
from advisor.rules.wording import count_text

SETTLED = 0.8
"""From this confidence on (a frequency) the verdict names the cause without a qualifier: four in five are right."""

HEALTHY_BUSY_RATIO = 0.7
"""Below this share of the window a device idles too much for "nothing wrong", whatever rules say."""

MOST_UNEXPLAINED_RATIO = 0.3
"""Of a processor's window: with more of it unexplained nobody can say that nothing is wrong."""

CANDIDATE = 0.6
"""Up to this confidence a diagnosis is a candidate: the evidence does not carry the cause."""


def verdict(report: Report) -> str:
    """One line: the first problem and how sure it is, or that nothing wrong was found."""
    problems = [item for item in report.diagnoses if item.finding.severity > Severity.INFO]
    if not problems:
        return _no_problem(report, count_text(len(report.diagnoses), "remark") if report.diagnoses else "")
    first = problems[0]
    if report.ended and first.finding.severity is not Severity.ERROR:
        return f"The training failed: {report.ended}. Why is not settled; besides, {first.name} ({first.code})."
    said = f"{first.name} ({first.code}, {sureness(first.confidence)})"
    if first.confidence >= SETTLED:
        return f"The cause: {said}." if first.finding.severity is Severity.ERROR else f"It costs: {said}."
    if first.confidence > CANDIDATE:
        return f"Probably {said}."
    return f"Not settled by what was given; first candidate: {said}."


def sureness(confidence: float) -> str:
    """A confidence as people say it: "90% sure" means right in nine of ten such cases."""
    return f"{round(confidence * 100)}% sure"


def _no_problem(report: Report, remarks: str) -> str:
    """What is said without a problem; `remarks` counts the diagnoses that are none, since the exit code tells of them too."""
    if not report.read:
        return "Nothing could be read."
    doubt = _no_verdict(report) or _doubt(report)
    if doubt:
        return f"{doubt} {remarks} below." if remarks else doubt
    rules = count_text(report.checked_count, "rule")
    if remarks:
        return f"No fault found, {remarks}: {rules} looked at what was read."
    if report.time is None and report.memory is None:
        return f"No problem found: {rules} looked at what was read and none found one."
    return f"Nothing wrong found: {rules} were checked and none found a problem."


def _no_verdict(report: Report) -> str:
    """Why nothing can be said of what was read; empty where something can."""
    if report.faulted:
        return f"No verdict: {report.faulted[0].code} crashed, a fault of the advisor; what else was checked named no problem."
    if report.ended:
        return f"The training failed: {report.ended}. No rule knows the cause."
    if report.failures:
        return f"A failure was read, and no rule knows its cause: {report.failures[0]}."
    return "" if report.checked_count else "No verdict: no rule had the evidence it needs."


def _doubt(report: Report) -> str:
    """Why the measures do not let the report say that nothing is wrong; empty where they do."""
    time = report.time
    if time is not None and (time.bound is Bound.UNKNOWN and not time.parts):
        return "No verdict on speed: what was recorded does not show where the time goes."
    if time is not None and time.busy_ratio is not None and time.busy_ratio < HEALTHY_BUSY_RATIO:
        return f"No cause found, yet the device was busy only {time.busy_ratio:.1%} of {time.window_seconds:.3g} s."
    if time is not None and time.device_index is None and time.parts.get("other_idle", 0.0) > MOST_UNEXPLAINED_RATIO:
        return f"No cause found, yet {time.parts['other_idle']:.0%} of {time.window_seconds:.3g} s is not explained."
    if time is None and report.memory is not None and _is_mostly_unattributed(report.memory):
        return "No verdict on memory: what was recorded does not show what most of it is."
    return ""


def _is_mostly_unattributed(ledger: MemoryLedger) -> bool:
    """Whether half of what was live is not attributed."""
    unattributed = ledger.entry("unattributed") - ledger.unsplit_bytes
    return bool(ledger.allocated_bytes) and 2 * unattributed > (ledger.allocated_bytes or 0)


def reasons(report: Report) -> tuple[str, ...]:
    """Why nothing wrong was found: what the evidence and the measures say; not the measures where they leave a doubt."""
    found = list(report.reasons)
    if _doubt(report):
        return tuple(found)
    time, memory = report.time, report.memory
    if time is not None and time.busy_ratio is not None:
        found.append(f"the device was busy {time.busy_ratio:.0%} of {time.window_seconds:.3g} s ({time.source})")
    if memory is not None and memory.device_bytes and memory.entries.get("free") is not None:
        free_ratio = (memory.entries["free"] or 0) / memory.device_bytes
        found.append(f"{free_ratio:.0%} of the device's memory is free at the {memory.at.value.lower()} ({memory.source})")
    return tuple(found)
