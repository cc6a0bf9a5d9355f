"""Numbers as a rule's sentences print them: one way to say bytes, seconds, ratios and counts."""

MIB = 1024**2
GIB = 1024**3
_KIB = 1024


def bytes_text(size_bytes: float) -> str:
    """Bytes in binary units, as PyTorch's messages print them: "4.19 GiB", "546 MiB", "512 B"."""
    magnitude = abs(size_bytes)
    for unit, weight in (("TiB", _KIB**4), ("GiB", _KIB**3)):
        if magnitude >= weight:
            return f"{size_bytes / weight:,.2f}".rstrip("0").rstrip(".") + f" {unit}"
    for unit, weight in (("MiB", _KIB**2), ("KiB", _KIB)):
        if magnitude >= weight:
            return f"{_digits(size_bytes / weight)} {unit}"
    return f"{size_bytes:.0f} B"


def seconds_text(duration_seconds: float) -> str:
    """A duration in the unit that suits it: "12.3 ms", "840 µs", "1.25 s", "3.1 min"."""
    magnitude = abs(duration_seconds)
    if magnitude >= 120:  # noqa: PLR2004 - beyond two minutes, minutes are what people count in
        return f"{duration_seconds / 60:.1f} min"
    for unit, weight in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if magnitude >= weight:
            return f"{_digits(duration_seconds / weight)} {unit}"
    return f"{duration_seconds * 1e9:.0f} ns" if duration_seconds else "0 s"


def ratio_text(ratio: float) -> str:
    """A ratio as a percentage: "43%", and below 10% with one decimal: "4.3%"."""
    percent = ratio * 100
    return f"{percent:.0f}%" if abs(percent) >= 9.95 or not percent else f"{percent:.1f}%"  # noqa: PLR2004 - 9.95 rounds to two digits


def count_text(count: float, noun: str, plural: str = "") -> str:
    """A count with its noun: "1 rank", "12,000 calls"; `plural` where adding an s is wrong."""
    name = noun if count == 1 else plural or f"{noun}s"
    return f"{count:,.0f} {name}"


def parameters_text(parameter_count: float) -> str:
    """A number of parameters as the field says it: "8.03B", "335M"."""
    for unit, weight in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(parameter_count) >= weight:
            return f"{_digits(parameter_count / weight)}{unit}"
    return f"{parameter_count:.0f}"


def _digits(number: float) -> str:
    """Three significant digits, without a trailing ".00"."""
    if abs(number) >= 99.95:  # noqa: PLR2004 - where three digits are already a whole number
        return f"{number:,.0f}"
    text = f"{number:.1f}" if abs(number) >= 9.995 else f"{number:.2f}"  # noqa: PLR2004 - three digits
    return text.rstrip("0").rstrip(".") if text.endswith(("0",)) and "." in text else text
