"""A report for a terminal: the verdict in one line, why, what to do, what was ruled out."""

from collections.abc import Iterator

from advisor.model.evidence import Source
from advisor.model.finding import Action, Observation, Severity, Verification
from advisor.model.report import Diagnosis, Report, SkippedRule
from advisor.render.blocks import Row, memory_rows, memory_title, time_rows, time_title
from advisor.render.layout import Line, colored_text, columns, paragraph, plain_text, shortened_to
from advisor.render.verdict import reasons, sureness, verdict
from advisor.rules.wording import bytes_text, count_text, seconds_text

COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
BAR_WIDTH = 16
FULL_DIAGNOSES = 3
"""Diagnoses printed in full at the most; the others get a line each, since people act on the first."""

LEAST_FULL_CONFIDENCE = 0.2
"""A later diagnosis below this confidence (a frequency) gets a line, no advice: four in five times it would be followed in vain."""

PLAIN_WIDTH = 80

SHOWN_INPUTS = 12
"""Inputs, gaps and unreadable files that are listed each; of a thousand ranks nobody reads more."""

SHOWN_PATH = 56
"""Characters of a path that are printed: its end tells files apart."""

SHOWN_OPERATORS = 8
"""Operators in the table, costliest first."""

SHOWN_NAME = 40
"""Columns of an operator's name; templates of kernels are longer than a line."""


def as_text(report: Report, *, width: int | None = None, color: bool = False) -> str:
    """The report as text.

    Args:
        report: what to print.
        width: columns; 80 by default.
        color: whether to write terminal colors.
    """
    lines = _Page(width or PLAIN_WIDTH).report(report)
    return colored_text(lines) if color else plain_text(lines)


class _Page:
    """The parts of a report as lines of one width."""

    def __init__(self, width: int) -> None:
        self._width = width

    def report(self, report: Report) -> Iterator[Line]:
        problems = [item for item in report.diagnoses if item.finding.severity > Severity.INFO]
        yield from self._text(verdict(report), COLORS[problems[0].finding.severity] if problems else "bold green")
        yield from self._inputs(report.read)
        if not problems:
            for reason in reasons(report):
                yield from self._text(f"because {reason}", indent=2)
        in_full = [item for item in report.diagnoses[:FULL_DIAGNOSES] if item.rank == 1 or item.confidence >= LEAST_FULL_CONFIDENCE]
        for diagnosis in in_full:
            yield from self._diagnosis(diagnosis, has_one_input=len(report.read) == 1)
        yield from self._others(tuple(item for item in report.diagnoses if item not in in_full))
        if report.memory and (rows := memory_rows(report.memory)):
            yield from self._shares(memory_title(report.memory), rows, report.memory.notes)
        if report.time and (report.time.parts or report.time.notes):
            yield from self._shares(time_title(report.time), time_rows(report.time), report.time.notes)
        if report.operators:
            yield from self._operators(report)
        yield from self._unchecked(report)
        yield from self._rests_on(report)

    def _text(self, text: str, style: str = "", indent: int = 0) -> Iterator[Line]:
        yield from paragraph((text, style), width=self._width, indent=indent)

    def _heading(self, text: str) -> Iterator[Line]:
        yield ()
        yield from self._text(text, "bold")

    def _bullet(self, mark: str, text: str, aside: str = "") -> Iterator[Line]:
        spans = ((text, ""), (f" {aside}", "dim")) if aside else ((text, ""),)
        yield from paragraph(*spans, width=self._width, indent=2, mark=mark)

    def _inputs(self, read: tuple[str, ...]) -> Iterator[Line]:
        for line in read[:SHOWN_INPUTS]:
            path, _, kinds = line.rpartition(": ")
            yield from self._text(f"read {kinds} from {shortened(path)}", "dim", indent=2)
        if len(read) > SHOWN_INPUTS:
            yield from self._text(f"and {count_text(len(read) - SHOWN_INPUTS, 'more input')}", "dim", indent=2)

    def _diagnosis(self, diagnosis: Diagnosis, *, has_one_input: bool) -> Iterator[Line]:
        finding = diagnosis.finding
        heading = f"{diagnosis.rank}. {diagnosis.code} {diagnosis.name}"
        yield ()
        yield (heading, COLORS[finding.severity]), (f" {'-' * (self._width - len(heading) - 1)}", "dim")
        yield from self._text(f"{finding.severity.name.lower()}, {sureness(diagnosis.confidence)}", "dim")
        yield from self._text(finding.statement)
        yield from self._heading("Why")
        for item in finding.observations:
            yield from self._bullet("-", item.statement, f"[{_place(item, has_one_input=has_one_input)}]")
        if finding.actions:
            yield from self._heading("What to do")
            for number, action in enumerate(finding.actions, start=1):
                yield from self._action(f"{number}.", action)
        if finding.ruled_out:
            yield from self._heading("Ruled out")
            for ruled in finding.ruled_out:
                yield from self._bullet("-", f"{ruled.code}: {ruled.because}")
        if finding.settles:
            yield from self._heading("To be sure")
            yield from self._action("-", finding.settles)

    def _action(self, mark: str, action: Action) -> Iterator[Line]:
        yield from self._bullet(mark, action.title)
        if action.change:
            yield from self._text(action.change, "cyan", indent=6)
        effect = _effect(action)
        if effect:
            yield from self._text(effect, "dim", indent=5)

    def _others(self, diagnoses: tuple[Diagnosis, ...]) -> Iterator[Line]:
        if diagnoses:
            yield from self._heading("Also possible")
        for diagnosis in diagnoses:
            line = f"{diagnosis.code} {diagnosis.name} ({diagnosis.finding.severity.name.lower()}, {sureness(diagnosis.confidence)})"
            yield from self._bullet(f"{diagnosis.rank}.", f"{line}: {diagnosis.finding.statement}")

    def _shares(self, title: str, rows: tuple[Row, ...], notes: tuple[str, ...]) -> Iterator[Line]:
        yield from self._heading(title)
        if rows:
            bars = [f"{'#' * round(share * BAR_WIDTH):<{BAR_WIDTH}} {share:4.0%}" for _, _, share in rows]
            cells = [((label, ""), (figure, ""), (bar, "dim")) for (label, figure, _), bar in zip(rows, bars, strict=True)]
            yield from columns(cells, width=self._width)
        for note in notes:
            yield from self._text(note, "dim", indent=2)

    def _operators(self, report: Report) -> Iterator[Line]:
        yield from self._heading("Costliest operators")
        rows = [
            (
                (shortened_to(operator.name, SHOWN_NAME), ""),
                (seconds_text(operator.device_seconds), ""),
                (count_text(operator.calls, "call"), ""),
                ("" if operator.bound.value == "UNKNOWN" else operator.bound.value.lower(), ""),
            )
            for operator in report.operators[:SHOWN_OPERATORS]
        ]
        yield from columns(rows, width=self._width)

    def _unchecked(self, report: Report) -> Iterator[Line]:
        if not report.skipped:
            return
        yield from self._heading(f"Not checked: {count_text(len(report.skipped), 'rule')} lacked evidence")
        for line in _missing(report.skipped):
            yield from self._text(line, indent=2)

    def _rests_on(self, report: Report) -> Iterator[Line]:
        if report.faulted or report.gaps or report.unreadable:
            yield from self._heading("What this rests on")
        for fault in report.faulted:
            yield from self._bullet("!", f"{fault.code} crashed and was left out, a fault of the advisor: {fault.because}")
        for gap in report.gaps[:SHOWN_INPUTS]:
            yield from self._bullet("!", gap)
        for item in report.unreadable[:SHOWN_INPUTS]:
            yield from self._bullet("!", f"could not read {item.path}: {item.because}")
        left_out = max(0, len(report.gaps) - SHOWN_INPUTS) + max(0, len(report.unreadable) - SHOWN_INPUTS)
        if left_out:
            yield from self._bullet("!", f"and {left_out:,} more of these: --format json lists all")


def _place(item: Observation, *, has_one_input: bool) -> str:
    """Where something was seen, short: the file's name, and of a single file only the place inside it."""
    source: Source = item.source
    name = source.path.rsplit("/", 1)[-1]
    if has_one_input and source.where and source.path != "command line":
        return source.where
    return f"{name}: {source.where}" if source.where else name


def shortened(path: str) -> str:
    """The end of a path, since that tells files apart."""
    return path if len(path) <= SHOWN_PATH else f"...{path[-SHOWN_PATH:]}"


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


def _missing(skipped: tuple[SkippedRule, ...]) -> Iterator[str]:
    """A line for each kind of evidence that rules lack alone, those that would allow most first, and one for the rest."""
    alone = [rule for rule in skipped if len(rule.needs) == 1]
    by_way: dict[tuple[str, str], int] = {}
    for rule in alone:
        way = rule.kind or rule.needs[0], rule.hint or rule.collect_with
        by_way[way] = by_way.get(way, 0) + 1
    for (kind, hint), count in sorted(by_way.items(), key=lambda pair: -pair[1]):
        yield f"{count} with {kind}: {hint}"
    if len(alone) < len(skipped):
        yield f"{len(skipped) - len(alone)} with several of these; --format json lists them all"
