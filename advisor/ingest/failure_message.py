"""What one message says by itself, before the log around it is looked at, and the collector that recognizers fill."""

from collections.abc import Callable, Mapping

from advisor.ingest.byte_sizes import ByteSize, byte_size
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.dataclass import dataclass, field
from advisor.model.failure import FailureKind, ProcessMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureText:
    """A recognized message.

    Attributes:
        kind / backend / generation / device_index / detail / needed_tokens / available_tokens: as in Failure.
        figures: bytes by the name of Failure's field.
        resolution_bytes: of the coarsest figure; None where nothing was printed.
        processes: those that the message names.
        gaps: what of the message could not be read, or was cut.
        end: where the message ends in the text that was given.
        hint_rank: a rank that the message itself names.
    """

    kind: FailureKind
    backend: str = ""
    generation: str = ""
    device_index: int | None = None
    figures: Mapping[str, int] = field(default_factory=dict)
    resolution_bytes: int | None = None
    processes: tuple[ProcessMemory, ...] = ()
    needed_tokens: int | None = None
    available_tokens: int | None = None
    detail: str = ""
    gaps: tuple[str, ...] = ()
    end: int = 0
    hint_rank: int | None = None


Recognize = Callable[[str], FailureText | None]
"""From the text that begins with a line of the log (its next lines follow) to the message in it, None where there is none."""


@dataclass(frozen=True, slots=True)
class Recognizer:
    """A family of messages.

    Attributes:
        needles: lower-case words, one of which every message of the family contains.
        recognize: reads it.
        is_flowing: whether its messages run over several lines, or are wrapped by people; they are then given as one line.
    """

    needles: tuple[bytes, ...]
    recognize: Recognize
    is_flowing: bool = False


class Figures:
    """The figures of one message, collected clause by clause; each pattern has the groups number and unit."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: dict[str, int] = {}
        self.resolution_bytes: int | None = None
        self.end = 0
        self.gaps: list[str] = []

    def clause(self, name: str, pattern: LazyPattern) -> bool:
        """Read one clause into a field of Failure; False where the message has no such clause."""
        match = pattern.search(self.text)
        if match is None:
            return False
        self.end = max(self.end, match.end())
        size = byte_size(match[1], match[2])
        if size is None:
            self.gaps.append(f"{match[1]} {match[2]} is no size: the driver did not know it")
            return False
        self.note(name, size)
        return True

    def note(self, name: str, size: ByteSize) -> None:
        """Take one figure."""
        self.found[name] = size.size_bytes
        self.resolution_bytes = max(self.resolution_bytes or 0, size.resolution_bytes)

    def exact(self, name: str, size_bytes: int) -> None:
        """Take a figure that is printed in bytes, or computed exactly from printed ones."""
        self.found[name] = size_bytes
        self.resolution_bytes = self.resolution_bytes or 0


def first_integer(pattern: LazyPattern, text: str) -> int | None:
    """The first group of the first match as an integer (thousands separators allowed); None without one."""
    match = pattern.search(text)
    return int(match[1].replace(",", "")) if match else None
