"""Rows of an operator table that people quote in prose → an operator table with what they quoted."""

import re

from advisor.model.failure import LogText
from advisor.model.tables import OperatorRow, OperatorTable

_TIME = r"(\d+(?:\.\d+)?)\s?(us|ms|s)\b"
_SCALES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

_ROW = re.compile(
    rf"(?P<name>[A-Za-z][\w:#.()<>-]{{2,120}})\s+(?:\|\s*)?(?P<percent>\d+(?:\.\d+)?)%\s*(?:\|\s*)?{_TIME}"
    r"(?:\s+(?P<calls>\d+) calls)?"
)
"""A name, the percentage of all self CPU time and that time, as the table's first three columns have them."""

_TOTAL = re.compile(rf"Self (CPU|[A-Z]{{3,5}}) time total:\s*{_TIME}")
"""The table's last lines."""


def quoted_table(log: LogText) -> OperatorTable | None:
    """What a log quotes of a table that it does not hold; None where it quotes nothing of one.

    Only lines that the log's mentions keep are looked at.
    """
    lines = dict.fromkeys((mention.line, mention.text) for mention in log.mentions)
    rows: dict[str, OperatorRow] = {}
    totals: dict[str, float] = {}
    first_line = 0
    for line, text in lines:
        found = [_row(match) for match in _ROW.finditer(text)]
        ends = [(match[1], float(match[2]) * _SCALES[match[3]]) for match in _TOTAL.finditer(text)]
        if (found or ends) and not first_line:
            first_line = line
        for row in found:
            rows.setdefault(row.name, row)
        for device, seconds in ends:
            totals.setdefault(device, seconds)
    if not rows and not totals:
        return None
    device = next((name for name in totals if name != "CPU"), "")
    return OperatorTable(
        source=log.source.at(f"line {first_line}"),
        rank=log.rank,
        gaps=("only some rows of an operator table are quoted",),
        rows=tuple(rows.values()),
        device=device,
        self_cpu_total_seconds=totals.get("CPU"),
        self_device_total_seconds=totals.get(device),
        is_cut=True,
    )


def _row(match: re.Match[str]) -> OperatorRow:
    return OperatorRow(
        name=match["name"],
        calls=int(match["calls"]) if match["calls"] else None,
        self_cpu_seconds=float(match[3]) * _SCALES[match[4]],
        self_cpu_ratio=float(match["percent"]) / 100,
    )
