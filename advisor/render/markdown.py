"""A report as markdown, for an issue or a chat."""

from collections.abc import Iterator

from advisor.model.finding import Action, Severity
from advisor.model.report import Diagnosis, Report
from advisor.render.blocks import Row, memory_rows, memory_title, time_rows, time_title
from advisor.render.plain import printable
from advisor.render.verdict import reasons, sureness, verdict
from advisor.rules.wording import count_text, ratio_text


def as_markdown(report: Report) -> str:
    """The report as a markdown document."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"**{_plain(verdict(report))}**"
    yield ""
    yield from (f"- read {_plain(line)}" for line in report.read)
    if all(item.finding.severity is Severity.INFO for item in report.diagnoses):
        yield from (f"- because {_plain(reason)}" for reason in reasons(report))
    for diagnosis in report.diagnoses:
        yield from _diagnosis(diagnosis)
    if report.memory and (rows := memory_rows(report.memory)):
        yield from _table(memory_title(report.memory), "block", rows, report.memory.notes)
    if report.time and (report.time.parts or report.time.notes):
        yield from _table(time_title(report.time), "part", time_rows(report.time), report.time.notes)
    if report.skipped:
        yield ""
        yield f"{count_text(len(report.skipped), 'rule')} lacked evidence: {', '.join(rule.code for rule in report.skipped)}."
    yield from (f"- {fault.code} crashed, a fault of the advisor: {_plain(fault.because)}" for fault in report.faulted)
    yield from (f"- {_plain(gap)}" for gap in report.gaps)
    yield from (f"- could not read {_plain(item.path)}: {_plain(item.because)}" for item in report.unreadable)


def _diagnosis(diagnosis: Diagnosis) -> Iterator[str]:
    finding = diagnosis.finding
    yield ""
    yield f"### {diagnosis.rank}. {diagnosis.code} {diagnosis.name}"
    yield ""
    yield f"{finding.severity.name.lower()}, {sureness(diagnosis.confidence)}. {_plain(finding.statement)}"
    yield ""
    yield from (f"- {_plain(item.statement)} (*{_plain(str(item.source))}*)" for item in finding.observations)
    if finding.actions:
        yield ""
    for number, action in enumerate(finding.actions, start=1):
        yield f"{number}. {_action(action)}"
    if finding.ruled_out or finding.settles:
        yield ""
    yield from (f"- ruled out {item.code}: {_plain(item.because)}" for item in finding.ruled_out)
    if finding.settles:
        yield f"- to be sure: {_action(finding.settles)}"


def _action(action: Action) -> str:
    change = f": `{printable(action.change).replace('`', chr(39))}`" if action.change else ""
    cost = f" (costs: {_plain(action.cost)})" if action.cost else ""
    return f"{_plain(action.title)}{change}{cost}".replace("\n", " ")


def _table(title: str, heading: str, rows: tuple[Row, ...], notes: tuple[str, ...]) -> Iterator[str]:
    yield ""
    yield f"**{_plain(title)}**"
    if rows:
        yield ""
        yield f"| {heading} | | share |"
        yield "|---|---:|---:|"
    yield from (f"| {_plain(label)} | {figure} | {ratio_text(share)} |" for label, figure, share in rows)
    if notes:
        yield ""
    yield from (f"- {_plain(note)}" for note in notes)


def _plain(text: str) -> str:
    """Text of an input without what markdown or HTML would act on."""
    escaped = printable(text).replace("\\", "\\\\").replace("<", "&lt;").replace("|", "\\|")
    for mark in ("`", "*", "[", "]"):
        escaped = escaped.replace(mark, f"\\{mark}")
    return " ".join(escaped.split())
