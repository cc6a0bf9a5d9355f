"""Quantities as tools print them: a number with its unit, or a word that says there is none."""

import math
import re
from collections.abc import Callable

LONGEST_QUANTITY = 48
"""Characters; what is longer is no quantity, and is never handed to a pattern or to int()."""

LARGEST_COUNT = 10**15
"""Beyond any counter of a node; larger integers are damage or attack."""

LARGEST_BYTES = 1 << 50
"""1 PiB: beyond the memory of any one device or host."""

_NUMBER = re.compile(r"([+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?)\s*(.*)")

_ABSENT = frozenset(
    {
        "",
        "-",
        "--",
        "n/a",
        "na",
        "none",
        "not supported",
        "not available",
        "not found",
        "requested functionality has been deprecated",
        "function not found",
    }
)

_MEMORY_UNITS = {unit: 1024**power for power, letter in enumerate(("", "k", "m", "g", "t", "p")) for unit in (f"{letter}b", f"{letter}ib")}

_TIME_DIVISORS = {"ns": 1e9, "us": 1e6, "µs": 1e6, "μs": 1e6, "ms": 1e3, "s": 1.0}
"""Divisors, not factors: 1.365 / 1000 is the float nearest to 0.001365, 1.365 * 0.001 is not."""


def is_absent(text: str) -> bool:
    """Whether the text says that there is no such value ("N/A", "[Not Supported]", "-")."""
    return len(text) <= LONGEST_QUANTITY and text.strip().strip("[]").strip().lower() in _ABSENT


def number_and_unit(text: str) -> tuple[float, str] | None:
    """A finite number and the text behind it: "250.00 W" → (250.0, "W").

    None where there is none.
    """
    stripped = text.strip()
    if len(stripped) > LONGEST_QUANTITY:
        return None
    found = _NUMBER.fullmatch(stripped)
    if found is None:
        return None
    number = float(found.group(1))
    return (number, found.group(2).strip()) if math.isfinite(number) else None


def size_bytes(text: str) -> int | None:
    """Memory: "1062 MB", "32019 MiB", "4.00 Kb", "512 b", "-24 KB" → bytes; None for anything else.

    NVIDIA's tools and PyTorch count in powers of 1024 whatever the unit is called: torch ≤ 1.x
    printed "MB" for MiB, and the profiler's "Kb" are KiB.
    """
    parsed = number_and_unit(text)
    if parsed is None or parsed[1].lower() not in _MEMORY_UNITS:
        return None
    scaled = parsed[0] * _MEMORY_UNITS[parsed[1].lower()]
    # Compared before it is rounded: a finite number times its unit may be infinite.
    return round(scaled) if abs(scaled) <= LARGEST_BYTES else None


def unit_bytes(text: str) -> int | None:
    """What one unit of a printed memory size weighs, in bytes: "1062 MB" → 1048576."""
    parsed = number_and_unit(text)
    return _MEMORY_UNITS.get(parsed[1].lower()) if parsed else None


def memory_bytes(text: str, default_unit: str = "MiB") -> int | None:
    """Memory that cannot be negative; a bare number is in `default_unit`."""
    parsed = number_and_unit(text)
    if parsed is None:
        return None
    size = size_bytes(text if parsed[1] else f"{text} {default_unit}")
    return size if size is not None and size >= 0 else None


def duration_seconds(text: str) -> float | None:
    """A time with its unit: "297.096ms", "2.030s", "0.800us" → seconds; None without a unit."""
    parsed = number_and_unit(text)
    if parsed is None or parsed[1] not in _TIME_DIVISORS:
        return None
    return parsed[0] / _TIME_DIVISORS[parsed[1]]


def count(text: str) -> int | None:
    """A whole number that is not negative."""
    stripped = text.strip()
    if len(stripped) > LONGEST_QUANTITY or not (stripped.isascii() and stripped.isdigit()):
        return None
    number = int(stripped)
    return number if number <= LARGEST_COUNT else None


def percent_ratio(text: str) -> float | None:
    """Read "65 %" or a bare "65" → 0.65; None outside 0 to 100%."""
    percent = _within(text, ("%", ""), 0.0, 100.0)
    return None if percent is None else percent / 100


def celsius(text: str) -> float | None:
    """Read "44 C", "37C" or a bare "44"; None outside what a chip can have."""
    return _within(text, ("C", ""), -60.0, 200.0)


def watts(text: str) -> float | None:
    """Read "250.00 W" or a bare number; None where negative or beyond 100 kW."""
    return _within(text, ("W", ""), 0.0, 1e5)


def megahertz(text: str) -> float | None:
    """Read "1410 MHz" or a bare number; None where negative or beyond 100 GHz."""
    return _within(text, ("MHz", ""), 0.0, 1e5)


def link_width(text: str) -> int | None:
    """PCIe lanes: "16x", "x16" or "16"; None for widths that do not exist."""
    lanes = count(text.strip().lower().removesuffix("x").removeprefix("x"))
    return lanes if lanes in (1, 2, 4, 8, 12, 16, 32) else None


def link_generation(text: str) -> int | None:
    """PCIe generation 1 to 8."""
    generation = count(text)
    return generation if generation is not None and 1 <= generation <= 8 else None  # noqa: PLR2004 - generations that may exist


def switch(text: str) -> bool | None:
    """Read "Enabled", "On", "Yes", "Active" → True; their opposites → False."""
    return {
        "enabled": True,
        "on": True,
        "yes": True,
        "active": True,
        "1": True,
        "disabled": False,
        "off": False,
        "no": False,
        "not active": False,
        "0": False,
    }.get(text.strip().lower())


def performance_state(text: str) -> str | None:
    """Read "P0" to "P15"."""
    stripped = text.strip()
    number = count(stripped.removeprefix("P"))
    return f"P{number}" if number is not None and number <= 15 else None  # noqa: PLR2004 - NVML's last state


def words(text: str) -> str | None:
    """Free text, cut at 200 characters; None where nothing is left."""
    return text.strip()[:200] or None


Parser = Callable[[str], object | None]
"""From printed text to a value, None where the text is no such value."""


def _within(text: str, units: tuple[str, ...], low: float, high: float) -> float | None:
    parsed = number_and_unit(text)
    if parsed is None or parsed[1] not in units or not low <= parsed[0] <= high:
        return None
    return parsed[0]
