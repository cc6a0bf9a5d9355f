"""How the arithmetic commands print: a page of lines and tables at 80 columns, or JSON."""

import io
import json
import math
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from advisor.cli.terminal import colors_wanted
from advisor.render.plain import printable

PLAIN_WIDTH = 80
WIDEST = 100
INDENT = 2
TEN = 10
KILO = 1e3
MEBIBYTE = 1024**2
GIBIBYTE = 1024**3
GIGA = 1e9
TERA = 1e12
PETA = 1e15


def write_page(parts: Sequence[RenderableType]) -> None:
    """Print to standard output: 80 columns and no colors where piped."""
    to_terminal = sys.stdout.isatty()
    width = min(shutil.get_terminal_size().columns, WIDEST) if to_terminal else PLAIN_WIDTH
    out = io.StringIO()
    color = to_terminal and colors_wanted()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part, soft_wrap=False)
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def write_json(answer: dict[str, Any]) -> None:
    """Print one JSON object; numbers that are not finite become null."""
    text = json.dumps(_finite(answer), indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.buffer.write((text + "\n").encode("utf-8", "replace"))


def heading(text: str, style: str = "bold") -> Text:
    """The line that answers."""
    return Text(printable(text), style=style)


def line(text: str, style: str = "") -> Padding:
    """A line of the page, indented and wrapped."""
    return Padding(Text(printable(text), style=style), (0, 0, 0, INDENT))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Padding:
    """A table without borders; the first `left` columns to the left, numbers to the right."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, name in enumerate(columns):
        grid.add_column(name, justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(printable(cell) for cell in row))
    return Padding(grid, (0, 0, 0, INDENT))


def milliseconds(seconds: float) -> str:
    """4.8 ms, 67 ms, 1.32 s."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    value = seconds * KILO
    return f"{value:.1f} ms" if value < TEN else f"{value:.0f} ms"


def gigabytes(size: float) -> str:
    """Decimal: 0.67 GB, 4.0 GB, 128.5 GB."""
    value = size / GIGA
    return f"{value:.2f} GB" if value < 1 else f"{value:.1f} GB"


def precise_gigabytes(size: float) -> str:
    """Decimal, two digits after the point from 10 on and without trailing zeros.

    Examples: 16.06 GB, 4.0 GB, 140 GB.
    """
    value = size / GIGA
    if value < TEN:
        return gigabytes(size)
    return f"{value:.2f}".rstrip("0").rstrip(".") + " GB"


def gibibytes(size: float) -> str:
    """Binary: 528 MiB, 16.5 GiB."""
    if size < GIBIBYTE:
        return f"{size / MEBIBYTE:.0f} MiB"
    return f"{size / GIBIBYTE:.1f} GiB"


def flops_text(flops: float) -> str:
    """66 TFLOP, 3.35 TFLOP, 1.98 PFLOP."""
    scale, prefix = (PETA, "P") if flops >= PETA else (TERA, "T")
    value = flops / scale
    digits = f"{value:.0f}" if value >= TEN else f"{value:.2f}"
    return f"{digits} {prefix}FLOP"


def rate_text(flops_per_second: float) -> str:
    """989 TFLOP/s, 191.5 TFLOP/s, 3.35 TFLOP/s, 1.979 PFLOP/s."""
    scale, prefix = (PETA, "P") if flops_per_second >= PETA else (TERA, "T")
    return f"{flops_per_second / scale:.4g} {prefix}FLOP/s"


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
