"""Facts that rules state, each with its number, its unit and its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.finding import Observation

if TYPE_CHECKING:
    from advisor.model.evidence import Source


def bytes_fact(statement: str, size_bytes: float, source: Source) -> Observation:
    """A fact about memory."""
    return Observation(statement=statement, source=source, value=float(size_bytes), unit="bytes")


def count_fact(statement: str, count: float, source: Source) -> Observation:
    """A fact about how many."""
    return Observation(statement=statement, source=source, value=float(count), unit="count")


def plain_fact(statement: str, source: Source) -> Observation:
    """A fact that is not a number."""
    return Observation(statement=statement, source=source)
