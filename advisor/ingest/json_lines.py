"""Logs of a JSON object a line: what each record says, as the lines of a plain log, with the rank that it names."""

import io
import itertools
import json
import re
from collections.abc import Iterator
from typing import TypeAlias

from advisor.ingest.log_prefixes import LARGEST_RANK
from advisor.model.dataclass import dataclass, replace
from advisor.model.evidence import Evidence
from advisor.model.failure import Failure, LogText
from advisor.model.node import KernelLog

Record: TypeAlias = dict[str, object]

RANK_FIELDS = ("rank", "global_rank", "RANK")
TEXT_FIELDS = (
    *("message", "msg", "text", "log", "line", "event", "body", "content", "output", "stderr", "stdout"),
    *("error_text", "error", "exception", "exc_info", "exc_text", "stack_info", "traceback", "stack_trace", "stacktrace"),
)
"""Fields that loggers and collectors give what a program printed; those of them that hold text are read, in this order."""

CHECKED_LINES = 3
"""Lines at the start that must be objects for the text to be taken for records."""

MOST_LINES = 1_000_000
"""A text of more lines is left as it is: within the largest log that is read, real records are longer."""

LONGEST_RECORD_BYTES = 4 * 1024**2
"""A longer line is left as it is: no logger writes one."""

_LINE = re.compile(r"\bline (\d+)")


@dataclass(frozen=True, slots=True)
class PlainLog:
    """The records as a plain log.

    Attributes:
        text: the log; lines of a record that names a rank begin with "[rank3]: ".
        record_lines: for each of its lines the line of the file, from 1, that it comes from.
    """

    text: bytes
    record_lines: list[int]

    def located(self, item: Evidence) -> Evidence:
        """Evidence that was read from the plain log, with the lines of the file in its places."""
        item = replace(item, source=replace(item.source, where=_LINE.sub(self._place, item.source.where)))
        if isinstance(item, Failure):
            return replace(item, line=self._line(item.line))
        if isinstance(item, LogText):
            mentions = tuple(replace(mention, line=self._line(mention.line)) for mention in item.mentions)
            return replace(item, mentions=mentions, line_count=self.record_lines[-1])
        if isinstance(item, KernelLog):
            events = tuple(replace(event, line=self._line(event.line)) for event in item.events)
            return replace(item, events=events, line_count=self.record_lines[-1])
        return item

    def with_doubt(self, items: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        """The same items; where failures of several records name no rank, the log says that they were taken for one job's."""
        failed = {item.line for item in items if isinstance(item, Failure) and item.rank is None}
        if len(failed) < 2:  # noqa: PLR2004 - one record cannot be two jobs
            return items
        said = f"failures in {len(failed)} records name no rank: they are taken for one job's; give each job's records as a file of its own"
        return tuple(replace(item, gaps=(*item.gaps, said)) if isinstance(item, LogText) else item for item in items)

    def _line(self, line: int) -> int:
        return self.record_lines[min(line, len(self.record_lines)) - 1]

    def _place(self, match: re.Match[str]) -> str:
        return f"line {self._line(int(match[1]))}"


def plain_log(text: bytes) -> PlainLog | None:
    """The plain log of a text of records; None where the text is none, or its records have no field that is read here."""
    start = [line for line in itertools.islice(io.BytesIO(text), 10 * CHECKED_LINES) if line.strip()][:CHECKED_LINES]
    if not start or any(_record(line) is None for line in start) or text.count(b"\n") > MOST_LINES:
        return None
    written: list[str] = []
    record_lines: list[int] = []
    has_fields = False
    for number, line in enumerate(io.BytesIO(text), start=1):
        record = _record(line)
        rank = _rank(record) if record is not None else None
        said = list(_said(record)) if record is not None else []
        has_fields = has_fields or bool(said) or rank is not None
        prefix = "" if rank is None else f"[rank{rank}]: "
        for each in said or [line.decode("utf-8", "replace").rstrip("\r\n")]:
            written.append(prefix + each)
            record_lines.append(number)
    if not has_fields:
        return None
    return PlainLog("\n".join(written).encode("utf-8", "replace"), record_lines)


def _record(line: bytes) -> Record | None:
    stripped = line.strip()
    if not (stripped.startswith(b"{") and stripped.endswith(b"}")) or len(stripped) > LONGEST_RECORD_BYTES:
        return None
    try:
        found = json.loads(stripped)
    except (ValueError, RecursionError):  # not JSON, a number of thousands of digits, or brackets without end
        return None
    return found if isinstance(found, dict) else None


def _rank(record: Record) -> int | None:
    for field in RANK_FIELDS:
        value = record.get(field)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < len(str(LARGEST_RANK)):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_RANK:
            return value
    return None


def _said(record: Record) -> Iterator[str]:
    """The record's lines: its other fields in one, then what its text fields hold; none without a text field."""
    texts = {field: value for field in TEXT_FIELDS if isinstance(value := record.get(field), str) and value.strip()}
    if not texts:
        return
    rest = {field: value for field, value in record.items() if field not in texts and field not in RANK_FIELDS}
    if rest:
        yield json.dumps(rest)
    for value in texts.values():
        yield from value.splitlines()
