"""The one line that a report begins with, and for a healthy run the reasons."""

from advisor.model.finding import Severity
from advisor.model.memory import MemoryLedger
from advisor.model.report import Report
from advisor.model.step_time import Bound

SETTLED = 0.8
"""From this confidence on (a frequency) the verdict names the cause without a qualifier: four in five are right."""

HEALTHY_BUSY_RATIO = 0.7
"""Below this share of the window a device idles too much for "nothing wrong", whatever rules say."""

CANDIDATE = 0.6
"""Up to this confidence a diagnosis is a candidate: the evidence does not carry the cause."""


def verdict(report: Report) -> str:
    """One line: the first problem and how sure it is, or that nothing wrong was found."""
    problems = [item for item in report.diagnoses if item.finding.severity > Severity.INFO]
    if not problems:
        return _nothing_wrong(report)
    first = problems[0]
    said = f"{first.name} ({first.code}, {sureness(first.confidence)})"
    if first.confidence >= SETTLED:
        return f"The cause: {said}." if first.finding.severity is Severity.ERROR else f"It costs: {said}."
    if first.confidence > CANDIDATE:
        return f"Probably {said}."
    return f"Not settled by what was given; first candidate: {said}."


def sureness(confidence: float) -> str:
    """A confidence as people say it: "90% sure" means right in nine of ten such cases."""
    return f"{round(confidence * 100)}% sure"


def _nothing_wrong(report: Report) -> str:
    if not report.read:
        return "Nothing could be read."
    if report.checked_count == 0:
        return "No verdict: no rule had the evidence it needs."
    doubt = _doubt(report)
    if doubt:
        return doubt
    if report.time is None and report.memory is None:
        return f"No problem found: {report.checked_count} rules looked at what was read and none found one."
    return f"Nothing wrong found: {report.checked_count} rules were checked and none found a problem."


def _doubt(report: Report) -> str:
    """Why the measures do not let the report say that nothing is wrong; empty where they do."""
    time = report.time
    if time is not None and (time.bound is Bound.UNKNOWN and not time.parts):
        return "No verdict on speed: what was recorded does not show where the time goes."
    if time is not None and time.busy_ratio is not None and time.busy_ratio < HEALTHY_BUSY_RATIO:
        return f"No cause found, yet the device was busy only {time.busy_ratio:.1%} of {time.window_seconds:.3g} s."
    if time is None and report.memory is not None and _is_mostly_unattributed(report.memory):
        return "No verdict on memory: what was recorded does not show what most of it is."
    return ""


def _is_mostly_unattributed(ledger: MemoryLedger) -> bool:
    """Whether half of what was live is not attributed."""
    return bool(ledger.allocated_bytes) and 2 * ledger.entry("unattributed") > (ledger.allocated_bytes or 0)


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
