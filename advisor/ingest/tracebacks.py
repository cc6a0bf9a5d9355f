"""Frames of the traceback above a message: CPython's, faulthandler's, IPython's and Rich's, decorated or interleaved."""

import re
from collections.abc import Iterable
from itertools import islice

from advisor.ingest.lazy_pattern import LazyPattern
from advisor.ingest.log_lines import LogLine
from advisor.ingest.log_prefixes import Speaker
from advisor.model.dataclass import dataclass
from advisor.model.failure import Frame

MOST_FRAMES = 200
"""Frames kept, the innermost ones; a recursion prints thousands."""

LINES_ABOVE = 700
"""How far above its message a traceback is looked for, in lines."""

_LINES_BETWEEN_FRAMES = 12
"""Other lines that may stand between two frames: code, markers, another process's output. Beyond, the traceback has ended."""

_CODE_LENGTH = 300
"""Characters of a code line that are kept."""

_PYTHON = LazyPattern(r'(?:^|[\s>|│└├╰])File "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,8})(?:,? in (?P<function>[^\s,][^\n]{0,200}))?')
_IPYTHON = LazyPattern(r"^(?:File )?(?P<file>(?:[/~]|[A-Za-z]:\\)[^\n]{1,400}?\.py):(?P<line>\d{1,8}),? in (?P<function>[\w.<>]{1,120})")
_IPYTHON_OLD = LazyPattern(r"^(?P<file>[^\s\"'][^\n\"']{0,400}?(?:\.pyc?|>)) in (?P<function>[\w.<>]{1,120})(?:\(|$)")
_NOTEBOOK_CELL = LazyPattern(r"^(?:Cell|Input) In ?\[(?P<cell>\d{1,6})\],? (?:line (?P<line>\d{1,8})|in )")
_RICH = LazyPattern(r"^[│|] {1,4}(?P<file>[^\s:][^:\n]{0,400}?\.py):(?P<line>\d{1,8}) in (?P<function>[\w.<>]{1,120})")
_FORMS = (_PYTHON, _RICH, _IPYTHON, _IPYTHON_OLD, _NOTEBOOK_CELL)

_ARROW = LazyPattern(r"^(?:[│|] {0,3}❱|-{1,8}>) {0,3}\d{1,8} ?(?P<code>[^\n]{0,300}?)\s{0,80}[│|]?$")
_HEADER = LazyPattern(r"(?:Traceback \((?P<order>most recent call|innermost) (?P<end>last|first)\)|Traceback \(most recent)")
_FAULTHANDLER = LazyPattern(r"(?:Current thread|Thread) 0x[0-9a-f]{4,20} .{0,40}\(most recent call first\)")
_MARKERS = LazyPattern(r"^[\s│|\^~└├╰]+$|^\s*\.\.\. |^\s*\[Previous line repeated|^\s*\d{1,7}\s")
_EXCEPTION = LazyPattern(
    r"^(?:[^\w\n]{0,8})((?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Exhausted|Killed|Interrupt))(?::|\s*$)"
)


@dataclass(frozen=True, slots=True)
class Traceback:
    """What stands above a message.

    Attributes:
        frames: outermost first; empty where there are none.
        lines: the numbers of the log's lines that belong to it, code lines included.
    """

    frames: tuple[Frame, ...] = ()
    lines: frozenset[int] = frozenset()


def frame_of(text: str) -> Frame | None:
    """The frame that a line names, its code still unknown; None where it names none."""
    if '"' not in text and ".py" not in text and "In" not in text and "> in " not in text:
        return None
    for form in _FORMS:
        found = form.search(text) if form is _PYTHON else form.match(text.rstrip())
        if found is None:
            continue
        said = found.groupdict()
        if form is _NOTEBOOK_CELL:
            return Frame(filename=f"In[{said['cell']}]", line=int(said["line"] or 0), function="<module>")
        function = (said.get("function") or "").strip().rstrip(" │|")
        return Frame(filename=said["file"], line=int(said.get("line") or 0), function=function)
    return None


def is_code_line(above: str, text: str) -> bool:
    """Whether a line is part of a traceback: a frame, the code below one, or a marked line of IPython or Rich."""
    if frame_of(text) is not None or _ARROW.match(text):
        return True
    return frame_of(above) is not None and text.startswith((" ", "\t", "│", ">"))


def exception_of(text: str) -> str:
    """The exception's class where the line begins with one ("torch.OutOfMemoryError: ..."), else empty."""
    found = _EXCEPTION.match(text.strip())
    return found[1] if found else ""


def traceback_above(upward: Iterable[LogLine], speaker: Speaker) -> Traceback:
    """The innermost traceback that ends above a message.

    Args:
        upward: what stands above the message, the nearest line first; read as far as needed.
        speaker: whom the message is from; lines of other ranks and processes are passed over.
    """
    own, innermost_first = _own_lines(upward, speaker)
    frames: list[Frame] = []
    numbers: set[int] = set()
    for line in own:
        frame = frame_of(line.text)
        arrow = _ARROW.match(line.text)
        if frame is not None:
            frames.append(frame)
            numbers.add(line.number)
        elif frames and arrow is not None:
            frames[-1] = _with_code(frames[-1], arrow["code"], line.text)
            numbers.add(line.number)
        elif frames and not frames[-1].code and _is_code(line.text):
            frames[-1] = _with_code(frames[-1], line.text, "")
            numbers.add(line.number)
    if innermost_first:
        frames.reverse()
    return Traceback(tuple(frames[-MOST_FRAMES:]), frozenset(numbers))


def _own_lines(upward: Iterable[LogLine], speaker: Speaker) -> tuple[list[LogLine], bool]:
    """The traceback's lines in the log's order, and whether the innermost frame is printed first.

    It begins below its header, or, where a user cut that off, at the first frame of an unbroken run.
    """
    own: list[LogLine] = []
    length, others = 0, 0
    for line in islice(upward, LINES_ABOVE):
        if not _same_speaker(line.speaker, speaker) or not line.text.strip():
            continue
        if _HEADER.search(line.text):
            return own[::-1], False
        if _FAULTHANDLER.search(line.text):
            return own[::-1], True
        own.append(line)
        if frame_of(line.text) is not None:
            length, others = len(own), 0
        elif length and exception_of(line.text):
            break
        else:
            others += 1
            if others > _LINES_BETWEEN_FRAMES:
                break
    return own[:length][::-1], False


def _is_code(text: str) -> bool:
    return text.startswith((" ", "\t")) and not _MARKERS.match(text)


def _same_speaker(one: Speaker, other: Speaker) -> bool:
    if one.rank is not None or other.rank is not None:
        return one.rank == other.rank
    return one.pid == other.pid


def _with_code(frame: Frame, code: str, marked: str) -> Frame:
    """The frame with its code; an arrow's line also tells the line's number where the frame's header did not."""
    number = frame.line
    if not number and (digits := re.search(r"\d{1,8}", marked[:24])):
        number = int(digits[0])
    return Frame(
        filename=frame.filename,
        line=number,
        function=frame.function,
        code=code.strip(" \t│|>")[:_CODE_LENGTH],
    )
