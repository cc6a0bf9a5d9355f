"""The columns of an operator table: what a heading means, in every generation of the profiler."""

import re
from typing import Any

from advisor.ingest import quantities
from advisor.model.dataclass import dataclass
from advisor.model.tables import OperatorRow

_FLOPS_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_FLOPS = re.compile(r"total ([kmgtp]?)flops")
_DEVICE = re.compile(r"(?:self )?([A-Za-z][A-Za-z0-9_]{1,20}?)(?: total %| total| %| time avg| time| mem)?")

_FIXED: dict[str, str] = {
    "name": "name",
    "self cpu": "self_cpu_seconds",
    "self cpu total": "self_cpu_seconds",
    "cpu total": "cpu_seconds",
    "self cpu %": "self_cpu_ratio",
    "self cpu total %": "self_cpu_ratio",
    "cpu total %": "cpu_ratio",
    "# of calls": "calls",
    "number of calls": "calls",
    "calls": "calls",
    "self cpu mem": "self_cpu_bytes",
    "input shapes": "input_shapes",
}
"""Headings in lower case → fields; those of the device follow its name, the rest is not kept."""

_IGNORED = frozenset(
    {
        "overload name",
        "source location",
        "node id",
        "call stack",
        "cpu mem",
        "cpu time",
        "cpu time avg",
    }
)

INFERRED: dict[str, tuple[str, ...]] = {
    "%t%tt%ttn": (
        *("Name", "Self CPU total %", "Self CPU total", "CPU total %", "CPU total", "CPU time avg"),
        *("CUDA total %", "CUDA total", "CUDA time avg", "Number of Calls"),
    ),
    "%t%ttn": (
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "# of Calls",
    ),
    "%t%ttt%ttn": (
        *("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"),
        *("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg", "# of Calls"),
    ),
}
"""Columns by the shapes of a row's values (% a percentage, t a time, n a count), for a table whose
heading is lost: torch 1.0 with a device, any torch without one, torch 1.6 and later with one. That
the device is CUDA is the usual case and is said as a gap."""


@dataclass(frozen=True)
class Columns:
    """The columns of one table.

    Attributes:
        headings: as printed, or as inferred.
        fields: a field of OperatorRow by column; empty for a column that is not kept.
        device: "CUDA", "XPU", ...; empty without device columns.
        flops_scale: what a printed unit of the FLOPs column is worth; None without totals.
    """

    headings: tuple[str, ...]
    fields: tuple[str, ...]
    device: str
    flops_scale: float | None

    @property
    def has_stack(self) -> bool:
        """Whether rows go on in lines below them, with the source location alone."""
        return any(heading.lower() in ("source location", "call stack") for heading in self.headings)

    def row(self, cells: list[str]) -> OperatorRow | None:
        """A row of cells as printed; None where it has no name or no figure at all."""
        if len(cells) != len(self.fields):
            return None
        values: dict[str, Any] = {}
        for name, cell in zip(self.fields, cells, strict=True):
            if name and name != "rate":
                values.setdefault(name, self._value(name, cell))
        printed_name = values.pop("name", None)
        if printed_name is None or all(value is None for value in values.values()):
            return None
        return OperatorRow(name=printed_name, **values)

    def _value(self, name: str, cell: str) -> object:
        if name in ("name", "input_shapes"):
            return cell.strip() or None
        if name == "calls":
            return quantities.count(cell)
        if name.endswith("_seconds"):
            return quantities.duration_seconds(cell)
        if name.endswith("_bytes"):
            return quantities.size_bytes(cell)
        parsed = quantities.number_and_unit(cell)
        if name.endswith("_ratio"):
            return parsed[0] / 100 if parsed and parsed[1] == "%" and parsed[0] >= 0 else None
        return parsed[0] * self.flops_scale if parsed and not parsed[1] and self.flops_scale else None


def columns_of(headings: tuple[str, ...]) -> Columns | None:
    """The columns by their headings; None where they are not those of an operator table."""
    lowered = [heading.strip().lower() for heading in headings]
    if lowered[:1] != ["name"] or not {
        "self cpu",
        "self cpu total",
        "cpu total",
        "cpu time",
    }.intersection(lowered):
        return None
    device, flops_scale = "", None
    fields: list[str] = []
    for heading, printed in zip(lowered, headings, strict=True):
        flops = _FLOPS.fullmatch(heading)
        if heading in _FIXED:
            fields.append(_FIXED[heading])
        elif flops is not None:
            flops_scale = _FLOPS_SCALES[flops.group(1)]
            fields.append("flops")
        elif heading.endswith("flops"):
            fields.append("rate")  # torch 1.8 printed FLOP/s
        elif heading in _IGNORED or heading.startswith(("self cpu", "cpu ")):
            fields.append("")
        else:
            found = _DEVICE.fullmatch(printed.strip().removeprefix("Self "))
            device = device or (found.group(1) if found is not None and heading.split()[0] != "#" else "")
            fields.append(_device_field(heading, device.lower()) if device else "")
    return Columns(tuple(heading.strip() for heading in headings), tuple(fields), device, flops_scale)


def _device_field(heading: str, device: str) -> str:
    return {
        f"self {device}": "self_device_seconds",
        f"self {device} %": "self_device_ratio",
        f"{device} total": "device_seconds",
        f"self {device} mem": "self_device_bytes",
    }.get(heading, "")


def expected_shapes(columns: Columns) -> str:
    """The shapes of a row's cells by the headings, in the letters of `shape_of`."""
    return "".join(
        "%" if heading.endswith("%") else "n" if field == "calls" else "t" if _is_time(heading.lower()) else "x"
        for heading, field in zip(columns.headings, columns.fields, strict=True)
    )


def _is_time(heading: str) -> bool:
    return heading != "name" and not heading.endswith(("mem", "shapes", "flops", "location", "id", "stack"))


def shape_of(cell: str) -> str:
    """What kind of value a cell is: % a percentage, t a time, n a count, x anything else."""
    parsed = quantities.number_and_unit(cell)
    if parsed is None:
        return "x"
    if parsed[1] == "%":
        return "%"
    if quantities.duration_seconds(cell) is not None:
        return "t"
    return "n" if quantities.count(cell) is not None else "x"
