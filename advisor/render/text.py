"""A report for a terminal: the verdict in one line, why, what to do, what was ruled out."""

import io
import os
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule as Line
from rich.table import Table
from rich.text import Text

from advisor.model.evidence import Source
from advisor.model.finding import Action, Observation, Severity, Verification
from advisor.model.report import Diagnosis, Report
from advisor.render.blocks import Row, memory_rows, memory_title, time_rows, time_title
from advisor.render.plain import printable
from advisor.render.verdict import reasons, sureness, verdict
from advisor.rules.wording import bytes_text, count_text, seconds_text

COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
BAR_WIDTH = 16
FULL_DIAGNOSES = 3
"""Diagnoses printed in full at the most; the others get a line each, since people act on the first."""

LEAST_FULL_CONFIDENCE = 0.2
"""A later diagnosis below this confidence (a frequency) gets a line, no advice: four in five times it would be followed in vain."""

PLAIN_WIDTH = 80

SHOWN_NEEDS = 4
"""Kinds of missing evidence that are listed: the reader collects the first one or two."""

SHOWN_INPUTS = 12
"""Inputs, gaps and unreadable files that are listed each; of a thousand ranks nobody reads more."""

SHOWN_PATH = 56
"""Characters of a path that are printed: its end tells files apart."""


def as_text(report: Report, *, width: int | None = None, color: bool = False) -> str:
    """The report as text.

    Args:
        report: what to print.
        width: columns; 80 by default.
        color: whether to write terminal colors.
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or PLAIN_WIDTH,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={} if color else dict(os.environ),
    )
    console.print(Group(*_parts(report)), soft_wrap=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _parts(report: Report) -> Iterable[RenderableType]:
    yield _verdict(report)
    for line in report.read[:SHOWN_INPUTS]:
        path, _, kinds = line.rpartition(": ")
        yield _indented(f"read {kinds} from {shortened(path)}", "dim")
    if len(report.read) > SHOWN_INPUTS:
        yield _indented(f"and {count_text(len(report.read) - SHOWN_INPUTS, 'more input')}", "dim")
    problems = [item for item in report.diagnoses if item.finding.severity > Severity.INFO]
    if not problems:
        yield from (_indented(f"because {reason}") for reason in reasons(report))
    in_full = [item for item in report.diagnoses[:FULL_DIAGNOSES] if item.rank == 1 or item.confidence >= LEAST_FULL_CONFIDENCE]
    for diagnosis in in_full:
        yield from _diagnosis(diagnosis, has_one_input=len(report.read) == 1)
    yield from _others(tuple(item for item in report.diagnoses if item not in in_full))
    if report.memory and (rows := memory_rows(report.memory)):
        yield from _table(memory_title(report.memory), rows, report.memory.notes)
    if report.time and (report.time.parts or report.time.notes):
        yield from _table(time_title(report.time), time_rows(report.time), report.time.notes)
    if report.operators:
        yield from _operators(report)
    yield from _unchecked(report)


def _verdict(report: Report) -> Text:
    problems = [item for item in report.diagnoses if item.finding.severity > Severity.INFO]
    style = COLORS[problems[0].finding.severity] if problems else "bold green"
    return Text(printable(verdict(report)), style=style)


def _diagnosis(diagnosis: Diagnosis, *, has_one_input: bool) -> Iterable[RenderableType]:
    finding = diagnosis.finding
    heading = f"{diagnosis.rank}. {diagnosis.code} {diagnosis.name}"
    yield Text()
    yield Line(Text(heading, style=COLORS[finding.severity]), align="left", style="dim", characters="-")
    yield Text(f"{finding.severity.name.lower()}, {sureness(diagnosis.confidence)}", style="dim")
    yield Text(printable(finding.statement))
    yield _heading("Why")
    yield from (_observation(item, has_one_input=has_one_input) for item in finding.observations)
    if finding.actions:
        yield _heading("What to do")
        for number, action in enumerate(finding.actions, start=1):
            yield from _action(f"{number}.", action)
    if finding.ruled_out:
        yield _heading("Ruled out")
        yield from (_bullet("-", f"{item.code}: {item.because}") for item in finding.ruled_out)
    if finding.settles:
        yield _heading("To be sure")
        yield from _action("-", finding.settles)


def _observation(item: Observation, *, has_one_input: bool) -> RenderableType:
    return _bullet("-", item.statement, f"[{_place(item.source, has_one_input=has_one_input)}]")


def _place(source: Source, *, has_one_input: bool) -> str:
    """Where something was seen, short: the file's name, and of a single file only the place inside it."""
    name = source.path.rsplit("/", 1)[-1]
    if has_one_input and source.where and source.path != "command line":
        return source.where
    return f"{name}: {source.where}" if source.where else name


def shortened(path: str) -> str:
    """The end of a path, since that tells files apart."""
    return path if len(path) <= SHOWN_PATH else f"...{path[-SHOWN_PATH:]}"


def _action(mark: str, action: Action) -> Iterable[RenderableType]:
    yield _bullet(mark, action.title, indent=2)
    if action.change:
        yield Padding(Text(printable(action.change), style="cyan"), (0, 0, 0, 6))
    effect = _effect(action)
    if effect:
        yield _indented(effect, "dim", indent=5)


def _effect(action: Action) -> str:
    predicted, parts = action.predicted, []
    if predicted.peak_bytes is not None:
        parts.append(f"peak then {bytes_text(predicted.peak_bytes)}")
    if predicted.fits is not None:
        parts.append("fits" if predicted.fits else "does not fit yet")
    if predicted.step_seconds is not None:
        parts.append(f"step then at best {seconds_text(predicted.step_seconds)}")
    if action.verified_by is not Verification.NONE:
        parts.append(f"by {action.verified_by.value.lower()}")
    if action.cost:
        parts.append(f"costs: {action.cost}")
    return "; ".join(parts)


def _others(diagnoses: tuple[Diagnosis, ...]) -> Iterable[RenderableType]:
    if diagnoses:
        yield _heading("Also possible")
    for diagnosis in diagnoses:
        line = f"{diagnosis.code} {diagnosis.name} ({diagnosis.finding.severity.name.lower()}, {sureness(diagnosis.confidence)})"
        yield _bullet(f"{diagnosis.rank}.", f"{line}: {diagnosis.finding.statement}")


def _table(title: str, rows: tuple[Row, ...], notes: tuple[str, ...]) -> Iterable[RenderableType]:
    yield _heading(title)
    if rows:
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        for label, figure, share in rows:
            bar = "#" * round(share * BAR_WIDTH)
            table.add_row(Text(label), Text(figure), Text(f"{bar:<{BAR_WIDTH}} {share:4.0%}", style="dim"))
        yield Padding(table, (0, 0, 0, 2))
    yield from (_indented(note, "dim") for note in notes)


def _operators(report: Report) -> Iterable[RenderableType]:
    yield _heading("Costliest operators")
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="ellipsis", max_width=40, no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    for operator in report.operators[:8]:
        bound = operator.bound.value.lower() if operator.bound.value != "UNKNOWN" else ""
        table.add_row(
            Text(printable(operator.name)),
            Text(seconds_text(operator.device_seconds)),
            Text(count_text(operator.calls, "call")),
            Text(bound),
        )
    yield Padding(table, (0, 0, 0, 2))


def _unchecked(report: Report) -> Iterable[RenderableType]:
    if report.skipped:
        yield _heading(f"Not checked: {count_text(len(report.skipped), 'rule')} lacked evidence")
        by_need: dict[tuple[tuple[str, ...], str], list[str]] = {}
        for rule in report.skipped:
            by_need.setdefault((rule.needs, rule.collect_with), []).append(rule.code)
        for (needs, how), codes in sorted(by_need.items(), key=lambda pair: -len(pair[1]))[:SHOWN_NEEDS]:
            verb = "needs" if len(codes) == 1 else "need"
            yield _bullet("-", f"{count_text(len(codes), 'rule')} ({_few(codes)}) {verb} {' and '.join(needs)}: {how}")
        if len(by_need) > SHOWN_NEEDS:
            yield _bullet("-", "the others need more than one of these, or rarer evidence: --format json lists all")
    if report.faulted or report.gaps or report.unreadable:
        yield _heading("What this rests on")
    for fault in report.faulted:
        yield _bullet("!", f"{fault.code} crashed and was left out, a fault of the advisor: {fault.because}")
    for gap in report.gaps[:SHOWN_INPUTS]:
        yield _bullet("!", gap)
    left_out = max(0, len(report.gaps) - SHOWN_INPUTS) + max(0, len(report.unreadable) - SHOWN_INPUTS)
    for item in report.unreadable[:SHOWN_INPUTS]:
        yield _bullet("!", f"could not read {item.path}: {item.because}")
    if left_out:
        yield _bullet("!", f"and {left_out:,} more of these: --format json lists all")


def _few(codes: list[str]) -> str:
    return ", ".join(codes) if len(codes) <= 3 else f"{', '.join(codes[:3])}, ..."  # noqa: PLR2004 - a line holds three


def _heading(text: str) -> RenderableType:
    return Padding(Text(printable(text), style="bold"), (1, 0, 0, 0))


def _bullet(mark: str, text: str, aside: str = "", indent: int = 2) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    body = Text(printable(text), overflow="fold")
    if aside:
        body.append(f" {printable(aside)}", style="dim")
    grid.add_row(Text(mark), body)
    return Padding(grid, (0, 0, 0, indent))


def _indented(text: str, style: str = "", indent: int = 2) -> RenderableType:
    return Padding(Text(printable(text), style=style, overflow="fold"), (0, 0, 0, indent))
