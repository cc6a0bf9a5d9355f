"""Lines of a report: paragraphs broken at a width, hanging marks, aligned columns; styles travel with the text.

A pipe or a file gets the text alone, so rich is loaded only for what it is needed for: the cells of wide characters, and colors.
"""

from collections.abc import Iterable, Iterator, Sequence

from advisor.render.plain import printable

Span = tuple[str, str]
"""Text, and a style in rich's words ("bold red"); the style is empty for plain text."""

Line = tuple[Span, ...]

ELLIPSIS = "..."


def cells(text: str) -> int:
    """The columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - its tables are only needed for other scripts

    return cell_len(text)


def paragraph(*spans: Span, width: int, indent: int = 0, mark: str = "") -> Iterator[Line]:
    """A paragraph as lines of at most `width` columns, the lines behind the first indented below its text.

    Args:
        spans: the text and its styles; control characters are left out, a newline breaks the line.
        width: columns, indent and mark included.
        indent: columns before the mark.
        mark: what stands before the first line ("-", "2."), with a space behind it.
    """
    lead = " " * indent + (f"{mark} " if mark else "")
    clean = tuple((printable(text).expandtabs(4), style) for text, style in spans)
    text = "".join(part for part, _ in clean)
    for begin, end in _breaks(text, max(1, width - len(lead))):
        yield ((lead, ""), *_cut(clean, begin, end))
        lead = " " * len(lead)


def _breaks(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where the lines of a text begin and end."""
    begin = 0
    for line in text.split("\n"):
        yield from ((begin + start, begin + stop) for start, stop in _breaks_of_line(line, width))
        begin += len(line) + 1


def _breaks_of_line(line: str, width: int) -> Iterator[tuple[int, int]]:
    begin = position = taken = 0
    for word in line.split(" "):
        if taken and taken + cells(word) > width:
            yield begin, position - 1
            begin, taken = position, 0
        for piece in _folded(word, width):
            if position > begin and taken + cells(piece) > width:
                yield begin, position
                begin, taken = position, 0
            position += len(piece)
            taken += cells(piece)
        position, taken = position + 1, taken + 1
    yield begin, max(begin, position - 1)


def _folded(word: str, width: int) -> Iterator[str]:
    """A word in pieces that fit a line."""
    while cells(word) > width:
        count = min(width, len(word))
        while count > 1 and cells(word[:count]) > width:
            count -= 1
        yield word[:count]
        word = word[count:]
    yield word


def _cut(spans: Sequence[Span], begin: int, end: int) -> Iterator[Span]:
    """The part of a text between two places, with its styles."""
    at = 0
    for text, style in spans:
        part = text[max(0, begin - at) : max(0, end - at)]
        at += len(text)
        if part:
            yield part, style


def columns(rows: Sequence[Sequence[Span]], *, width: int, indent: int = 2) -> Iterator[Line]:
    """Rows as lines: the first column to the left and cut where the width asks for it, the others to the right.

    The last columns are left out as long as the first would have no room.
    """
    clean = [[(printable(text).replace("\n", " "), style) for text, style in row] for row in rows]
    sizes = [max(cells(text) for text, _ in column) for column in zip(*clean, strict=True)]
    while len(sizes) > 1 and indent + _least(sizes[0]) + sum(2 + size for size in sizes[1:]) > width:
        sizes.pop()
    first = min(sizes[0], width - indent - sum(2 + size for size in sizes[1:]))
    for (label, style), *others in clean:
        shown = shortened_to(label, first)
        line: list[Span] = [(" " * indent, ""), (shown + " " * (first - cells(shown)), style)]
        for (text, other_style), size in zip(others, sizes[1:], strict=False):
            line.append((f"  {' ' * (size - cells(text))}{text}", other_style))
        yield tuple(line)


def _least(size: int) -> int:
    return min(size, 20)


def shortened_to(text: str, width: int) -> str:
    """The beginning of a text in at most `width` columns, with dots where something is left out."""
    if cells(text) <= width:
        return text
    return next(_folded(text, max(1, width - len(ELLIPSIS)))) + ELLIPSIS[: max(0, width - 1)]


def plain_text(lines: Iterable[Line]) -> str:
    """The lines without styles."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def colored_text(lines: Iterable[Line]) -> str:
    """The lines with the terminal's color codes."""
    from rich.console import Console  # noqa: PLC0415 - 46 modules, which only colors need
    from rich.text import Text  # noqa: PLC0415 - the same

    console = Console(width=1000, force_terminal=True, color_system="standard", highlight=False, legacy_windows=False, _environ={})
    with console.capture() as captured:
        for line in lines:
            console.print(Text.assemble(*line), soft_wrap=True)
    return captured.get()
