"""What every piece of evidence has in common: where it was seen, and what of it is missing."""

from advisor.model.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where something was seen.

    Attributes:
        path: the file as the user named it, or "command line" for what they declared.
        where: the place inside it ("line 12", "device 0, oom event"); empty for the whole.
    """

    path: str
    where: str = ""

    def at(self, where: str) -> "Source":
        """The same file, at a place inside it."""
        return Source(path=self.path, where=where)

    def __str__(self) -> str:
        return f"{self.path}: {self.where}" if self.where else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The base of all evidence kinds and of the measures made from them.

    Attributes:
        source: where it was read.
        rank: the rank of the distributed job that it belongs to; None where unknown or not distributed.
        gaps: what could not be read of it, or was never recorded, one sentence each.
    """

    source: Source
    rank: int | None = None
    gaps: tuple[str, ...] = ()
