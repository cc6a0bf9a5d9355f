"""`key_averages().table()` as text, in whatever log: all layouts, cut, torn or as markdown."""

import itertools
import re
from collections.abc import Iterator

from advisor.ingest import quantities
from advisor.ingest.operator_columns import INFERRED, Columns, columns_of, expected_shapes, shape_of
from advisor.ingest.plain_text import LINE_LIMIT, decode, lines_from
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source
from advisor.model.tables import OperatorRow, OperatorTable

ROW_LIMIT = 20_000
"""Rows of one table; PyTorch prints 100 unless told otherwise."""

NO_DEVICE_COLUMNS = (
    "the table has no device columns: it tells where the processor's time went, and not whether a device waited for it "
    "(profile with activities=[CPU, CUDA] for that)"
)

_CANDIDATE_LIMIT = 2000
"""Lines that look like a heading or a row and are none; a log has few."""

_GAP = re.compile(r"[ \t]{2,}|\t")
_RULE = re.compile(r"-{3,}(?:[ \t]{1,3}-{3,})+|-{20,}")
_MARKDOWN_RULE = re.compile(r"(?:[|:]|\s|-){3,}")
_FOOTER = re.compile(r"(?:Self )?([A-Za-z0-9_]{2,20}) time total: ([0-9.]{1,20}\s?(?:ns|us|ms|s))\b")
_HEADING_WORDS = (b"Self CPU", b"CPU total", b"CPU time")
_BARE_ROW = re.compile(rb"%[ \t|]{1,20}\d{1,9}\.\d{1,3}(?:us|ms|s)[ \t|]{1,20}\d")

_FOREIGN_LINES = 3
"""Lines in a row that are no part of the table (another process printed too) before it counts as
ended."""

_PREFIX_CHARACTERS = 100
"""What a log may put before each line of a table: a time, a level, a rank."""

_TORN_CELLS = 3
"""A torn row is kept from its name and this many cells on."""


def looks_like_operator_table(head: bytes) -> bool:
    """Whether a text holds an operator table, or rows of one, in its first part."""
    return (b"Self CPU" in head and (b"CPU total" in head or b"CPU time" in head)) or _BARE_ROW.search(head) is not None


def read_operator_table(text: bytes, path: str) -> OperatorTable | None:
    """The first operator table in a text; None where it holds none.

    Times in seconds, memory in bytes, FLOPs as totals of the whole profile. A name that PyTorch
    cut keeps its "...".
    """
    start = _start(text)
    if start is None:
        return None
    reader = _Reader()
    above = text.rfind(b"\n", 0, start - 1) + 1 if start else 0
    for number, line in lines_from(text, above):
        reader.take(line, number)
        if reader.is_finished:
            break
    return reader.table(path, other_tables=max(0, text.count(b"Self CPU %") - 1))


def _start(text: bytes) -> int | None:
    """Where the line begins that is a table's heading, or a row without one; None without any."""
    headings = (start for words in _HEADING_WORDS for start, line in _lines_with(text, words) if columns_of(_headings(line)) is not None)
    bare = (start for start, line in _bare_lines(text) if _inferred(line) is not None)
    places = [place for place in (next(headings, None), next(bare, None)) if place is not None]
    return min(places, default=None)


def _lines_with(text: bytes, words: bytes) -> Iterator[tuple[int, str]]:
    place = text.find(words)
    for _ in range(_CANDIDATE_LIMIT):
        if place < 0:
            return
        start, end = text.rfind(b"\n", 0, place) + 1, text.find(b"\n", place)
        yield start, decode(text[start : min(start + LINE_LIMIT, len(text) if end < 0 else end)])
        if end < 0:
            return
        place = text.find(words, end)


def _bare_lines(text: bytes) -> Iterator[tuple[int, str]]:
    for found in itertools.islice(_BARE_ROW.finditer(text), _CANDIDATE_LIMIT):
        start, end = text.rfind(b"\n", 0, found.start()) + 1, text.find(b"\n", found.start())
        if found.start() - start < LINE_LIMIT:
            end = len(text) if end < 0 else end
            yield start, decode(text[start : min(start + LINE_LIMIT, end)])


def _inferred(line: str) -> Columns | None:
    """The columns of a row without a heading, by the shapes of its cells; None where unknown."""
    cells = _split(line)
    headings = INFERRED.get("".join(shape_of(cell) for cell in cells[1:]))
    return columns_of(headings) if headings is not None and shape_of(cells[0]) == "x" else None


@dataclass
class _Reader:
    """Goes from a heading (or a bare row) to the footer."""

    rows: list[OperatorRow] = field(default_factory=list)
    is_finished: bool = False
    columns: Columns | None = None
    first_line: int = 0
    is_inferred: bool = False
    is_closed: bool = False
    torn: list[int] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    _rule: tuple[tuple[int, int], ...] = ()
    _spans: tuple[tuple[int, int], ...] = ()
    _foreign: int = 0

    def take(self, line: str, number: int) -> None:
        """One line."""
        footer = _FOOTER.search(line)
        if footer is not None:
            self._take_footer(footer)
        elif _is_rule(line):
            self._take_rule(line)
        elif not line.strip():
            return
        elif self.is_closed:
            self.is_finished = True
        elif not self._take_heading(line, number):
            self._take_row(line, number)

    def table(self, path: str, other_tables: int) -> OperatorTable | None:
        """What was found."""
        if self.columns is None or (not self.rows and self.is_inferred):
            return None
        gaps = [f"line {number} is torn" for number in self.torn[:5]]
        if self.is_inferred:
            named = f"; the device's columns are taken for {self.columns.device}" if self.columns.device else ""
            gaps.append(f"the heading is missing, the columns are inferred from the shape of the rows{named}")
        if not self.totals:
            gaps.append("the footer with the totals is missing")
        if not self.columns.device:
            gaps.append(NO_DEVICE_COLUMNS)
        if other_tables:
            gaps.append(f"{other_tables} more tables follow; the first is read")
        if "rate" in self.columns.fields:
            gaps.append("the FLOPS column is a rate, not a total, and is not read")
        return OperatorTable(
            source=Source(path=path, where=f"line {self.first_line}"),
            gaps=tuple(gaps),
            rows=tuple(self.rows),
            device=self.columns.device,
            self_cpu_total_seconds=self.totals.get("cpu"),
            self_device_total_seconds=self.totals.get("device"),
            is_cut=self.is_inferred or not self.totals or bool(self.torn),
            columns=self.columns.headings,
        )

    def _take_footer(self, footer: "re.Match[str]") -> None:
        total = quantities.duration_seconds(footer.group(2))
        if self.columns is not None and total is not None:
            self.totals.setdefault("cpu" if footer.group(1).lower() == "cpu" else "device", total)
            self.is_closed = True

    def _take_rule(self, line: str) -> None:
        if self.rows and not self.is_inferred:
            self.is_closed = True
        if not self.rows:
            self._rule = tuple(match.span() for match in re.finditer(r"-{2,}", line))
            if self.columns is not None and not self._spans and len(self._rule) == len(self.columns.fields):
                self._spans = self._rule

    def _take_heading(self, line: str, number: int) -> bool:
        """Whether the line is a heading; one below rows begins another table."""
        if "CPU" not in line:
            return False
        found = columns_of(_headings(line))
        if found is None:
            return False
        if self.rows and not self.is_inferred:
            self.is_finished = True
            return True
        self.rows.clear()
        self.torn.clear()
        self.columns, self.is_inferred, self.first_line = found, False, number
        self._spans = self._rule if len(self._rule) == len(found.fields) else ()
        return True

    def _take_row(self, line: str, number: int) -> None:
        if self.columns is None and not self._infer(line, number):
            return
        columns = self.columns
        if columns is None or len(self.rows) >= ROW_LIMIT:
            return
        row = None if self._is_short(line, columns) else columns.row(self._cells(line, columns))
        if row is None and "%" in line:
            row = _torn_row(line, columns)
            if len(self.torn) < ROW_LIMIT:
                self.torn.append(number)
        if row is not None:
            self.rows.append(row)
        elif "%" not in line and not (columns.has_stack and line[:1] in " \t"):
            self._foreign += 1
            self.is_finished = self._foreign > _FOREIGN_LINES
            return
        self._foreign = 0

    def _infer(self, line: str, number: int) -> bool:
        """Whether a line without any heading above it is a row of a known layout."""
        self.columns, self.is_inferred, self.first_line = _inferred(line), True, number
        return self.columns is not None

    def _keeps_to_rule(self, line: str) -> bool:
        """Whether the blanks of a row stand where those of the rule stand."""
        ends = [end for _, end in self._spans]
        between = [line[end:start] for end, (start, _) in zip(ends, self._spans[1:], strict=False)]
        return bool(ends) and "|" not in line and not "".join(between).strip()

    def _is_short(self, line: str, columns: Columns) -> bool:
        """Whether a row keeps to the rule and ends before its last, right-aligned column does."""
        if not self._keeps_to_rule(line) or columns.has_stack:
            return False
        return len(line.rstrip()) < self._spans[-1][1]

    def _cells(self, line: str, columns: Columns) -> list[str]:
        """The row's cells, by the rule's spans where the line keeps to them, else by its blanks."""
        if self._keeps_to_rule(line) and not line[self._spans[-1][1] :].strip():
            return [line[start:end].strip() for start, end in self._spans]
        cells = _split(line)
        extra = len(cells) - len(columns.fields)
        return [" ".join(cells[: extra + 1]), *cells[extra + 1 :]] if extra > 0 else cells


def _is_rule(line: str) -> bool:
    """Whether a line is a rule, behind a log's prefix perhaps, or the rule of a markdown table."""
    stripped = line.strip()
    start = stripped.find("---")
    if 0 <= start <= _PREFIX_CHARACTERS and _RULE.fullmatch(stripped[start:]) is not None:
        return True
    return "--" in stripped and _MARKDOWN_RULE.fullmatch(stripped) is not None


def _headings(line: str) -> tuple[str, ...]:
    """The cells of a heading line from "Name" on; what stands before it is a log's prefix."""
    cells = _split(line)
    place = cells.index("Name") if "Name" in cells[:2] else 0
    return tuple(cells[place:])


def _split(line: str) -> list[str]:
    """Cells between bars, or between two blanks and more."""
    stripped = line.strip()
    if " | " in stripped:
        return [cell.strip() for cell in stripped.strip("|").split("|")]
    return _GAP.split(stripped)


def _torn_row(line: str, columns: Columns) -> OperatorRow | None:
    """The cells before the one that is cut, if they have the shapes of their columns."""
    cells = _split(line)[:-1]
    expected = expected_shapes(columns)[: len(cells)]
    if len(cells) <= _TORN_CELLS or "".join(shape_of(cell) for cell in cells[1:]) != expected[1:]:
        return None
    return columns.row(cells + [""] * (len(columns.fields) - len(cells)))
