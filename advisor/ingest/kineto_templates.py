"""Read the arguments of many events at once where they differ in numbers only, as what one version of a profiler writes does.

The pattern is learned from the trace itself: what stands around the numbers of one event has to stand around those of another, character
by character. Lists, which hold an operator's shapes and types, are left as they are between the numbers before and behind them: equal
texts are common, and each is read once. What follows no pattern is left to the decoder of any JSON.
"""

import re
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import astuple

from advisor.ingest.kineto_events import UNKNOWN
from advisor.ingest.kineto_words import MOST_DIGITS, Column, Text

Decoder: TypeAlias = "msgspec.json.Decoder[list[Any]]"

FEWEST_EVENTS = 64
"""For less the decoder is faster than looking at all of them at once."""

MOST_TEMPLATES = 6
"""A version of a profiler writes about four kinds of operators: with and without lists, with and without a sequence number."""

MOST_LEFT = 8
"""A pattern is looked for as long as more than one of so many events follow none."""

MOST_TRIES = 24
"""Events that no pattern could be learned from, or that stayed alone with theirs, before it is given up."""

MOST_MIDDLES = 4096
"""Texts before it is asked whether they recur."""

NO_MIDDLE = -1
REFUSED = -2
"""Codes where no lists stand, and where what stands between the numbers holds more than lists."""

_NUMBER = re.compile(rb"\d+")
_STAND_IN = 10 ** (MOST_DIGITS - 1) + 7
"""Takes the place of a number, to see which field it becomes: as long as the longest, and no number that profilers write."""


class Numbers(NamedTuple):
    """Texts with numbers between them.

    Attributes:
        literals: before each number, and behind the last.
        fields: what each number is; empty for one that is not wanted.
    """

    literals: tuple[bytes, ...]
    fields: tuple[str, ...]


class Template(NamedTuple):
    """What arguments have in common.

    Attributes:
        head: from their start; all of them where there are no lists.
        tail: what follows the lists, up to their end; None where there are none.
    """

    head: Numbers
    tail: Numbers | None

    @property
    def number_count(self) -> int:
        """Numbers; of two patterns that fit, the one with more says more."""
        return len(self.head.fields) + (len(self.tail.fields) if self.tail else 0)


class Matched(NamedTuple):
    """Events that follow a pattern.

    Attributes:
        rows: their places among those that were asked about.
        numbers: by the field's name, int64.
        middles: codes of their lists; NO_MIDDLE where they have none.
    """

    rows: Column
    numbers: dict[str, Column]
    middles: Column


class Walk(NamedTuple):
    """How far the texts of some events are as a pattern says.

    Attributes:
        rows: the events that still follow it.
        at: where they are looked at next.
        spans: where the numbers begin and have ended that are wanted, by field.
    """

    rows: Column
    at: Column
    spans: dict[str, tuple[Column, Column]]

    def only(self, fits: Column) -> "Walk":
        """Without the events that do not follow it after all."""
        if fits.all():
            return self
        return Walk(self.rows[fits], self.at[fits], {name: (starts[fits], ends[fits]) for name, (starts, ends) in self.spans.items()})

    def forth(self, text: Text, numbers: Numbers) -> "Walk":
        """Onwards over texts with numbers between them."""
        walk = self
        for literal, field in zip(numbers.literals, (*numbers.fields, None), strict=True):
            walk = walk.only(text.stands(literal, walk.at))
            walk = walk._replace(at=walk.at + len(literal))
            if field is not None:
                widths = text.run(walk.at)
                walk = walk.passed(field, walk.at, walk.at + widths, widths)
        return walk

    def back(self, text: Text, numbers: Numbers) -> "Walk":
        """Backwards over texts with numbers between them."""
        walk = self
        for literal, field in zip(reversed(numbers.literals), (*reversed(numbers.fields), None), strict=True):
            walk = walk._replace(at=walk.at - len(literal))
            walk = walk.only(text.stands(literal, walk.at))
            if field is not None:
                widths = text.run_before(walk.at)
                walk = walk.passed(field, walk.at - widths, walk.at, widths)
        return walk

    def passed(self, field: str, starts: Column, ends: Column, widths: Column) -> "Walk":
        """Behind a number, which is a field's."""
        at = ends if starts is self.at else starts
        spans = {**self.spans, field: (starts, ends)} if field else self.spans
        return Walk(self.rows, at, spans).only(widths > 0)


class Middles(dict[bytes, int]):
    """Codes of the lists of events, in order of first appearance.

    Attributes:
        decoded: the struct that each stands for, by its code.
    """

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self._decoder = decoder
        self.decoded: list[Any] = []

    def __missing__(self, key: bytes) -> int:
        """Read lists.

        Raises:
            ValueError: they are no JSON.
        """
        found = self._decoder.decode(b"[{" + key + b"}]")
        is_plain = len(found) == 1 and not any(isinstance(value, int) and value != UNKNOWN for value in astuple(found[0]))
        code = self[key] = len(self.decoded) if is_plain else REFUSED
        if is_plain:
            self.decoded.append(found[0])
        return code


class Templates:
    """The patterns of one kind of event.

    Attributes:
        middles: what stands between their numbers.
    """

    def __init__(self, decoder: Decoder) -> None:
        self.middles = Middles(decoder)
        self._decoder = decoder
        self._middle_count = 0
        self._known: list[Template] = []
        self._try_count = 0

    def matched(self, text: Text, starts: Column, ends: Column) -> tuple[list[Matched], Column]:
        """The events that follow a pattern, and the places of those that follow none.

        Args:
            text: what they stand in.
            starts: where the arguments of each begin.
            ends: where they have ended.

        Raises:
            ValueError: what should be JSON is none.
        """
        found: list[Matched] = []
        is_left = np.ones(len(starts), bool)
        if len(starts) < FEWEST_EVENTS:
            return found, np.flatnonzero(is_left)
        walks: dict[Numbers, Walk] = {}

        def take(template: Template) -> int:
            if template.head not in walks:
                rows = np.flatnonzero(is_left)
                walks[template.head] = Walk(rows, starts[rows], {}).forth(text, template.head)
            walk = walks[template.head]
            matched = self._match(template, text, walk.only(is_left[walk.rows]), ends)
            is_left[matched.rows] = False
            found.append(matched)
            return len(matched.rows)

        for template in self._known:
            take(template)
        while is_left.sum() > len(starts) // MOST_LEFT and len(self._known) < MOST_TEMPLATES and self._try_count < MOST_TRIES:
            self._try_count += 1
            left = np.flatnonzero(is_left)
            row = left[len(left) // 2]
            learned = self._learned(text.text[starts[row] : ends[row]])
            if learned and take(learned) >= FEWEST_EVENTS // MOST_LEFT:
                self._known.append(learned)
                self._known.sort(key=attrgetter("number_count"), reverse=True)
        return [matched for matched in found if len(matched.rows)], np.flatnonzero(is_left)

    def _match(self, template: Template, text: Text, head: Walk, ends: Column) -> Matched:
        """The events whose heads follow a pattern and whose rest does, too."""
        if template.tail is None:
            whole = head.only(head.at == ends[head.rows])
            return Matched(whole.rows, _read(text, whole.spans), np.full(len(whole.rows), NO_MIDDLE))
        if len(self.middles) > MOST_MIDDLES and 2 * len(self.middles) > self._middle_count:
            return Matched(head.rows[:0], {}, head.rows[:0])
        tail = head._replace(at=ends[head.rows], spans={"": (head.at, head.at), **head.spans}).back(text, template.tail)
        tail = tail.only(tail.at > tail.spans[""][0])
        pieces = text.pieces(tail.spans[""][0], tail.at)
        self._middle_count += len(pieces)
        middles = np.fromiter(map(self.middles.__getitem__, pieces), np.int64, len(pieces))
        whole = tail.only(middles != REFUSED)
        return Matched(whole.rows, _read(text, whole.spans), middles[middles != REFUSED])

    def _learned(self, arguments: bytes) -> Template | None:
        """The pattern of the arguments of an event; None where they hold what a pattern cannot tell."""
        first, last = arguments.find(b"["), arguments.rfind(b"]") + 1
        if first < 0:
            head, middle, tail = arguments, b"", None
        else:
            key = arguments.rfind(b'"', 0, max(0, arguments.rfind(b'"', 0, first)))
            head, middle, tail = arguments[: max(0, key)], arguments[key:last], arguments[last:]
        stand_ins = count(_STAND_IN)
        texts = [_NUMBER.sub(lambda _: b"%d" % next(stand_ins), part) for part in (head, tail or b"")]
        try:
            found = self._decoder.decode(b"[{" + middle.join(texts) + b"}]")
        except (ValueError, RecursionError):
            return None
        fields = zip(found[0].__struct_fields__, astuple(found[0]), strict=True)
        names = {value: name for name, value in fields if isinstance(value, int) and value != UNKNOWN}
        numbers = [_NUMBER.findall(text) for text in texts]
        if not names.keys() <= {int(number) for part in numbers for number in part} or len(found) != 1:
            return None
        parts = [
            Numbers(tuple(_NUMBER.split(text)), tuple(names.get(int(number), "") for number in part))
            for text, part in zip(texts, numbers, strict=True)
        ]
        return Template(parts[0], None if tail is None else parts[1])


def _read(text: Text, spans: dict[str, tuple[Column, Column]]) -> dict[str, Column]:
    """The numbers that are wanted.

    Raises:
        ValueError: one is none of JSON's.
    """
    found = {}
    for field, (starts, ends) in spans.items():
        if field and len(starts):
            numbers = text.integers(starts, ends)
            if numbers is None:
                raise ValueError(field)
            found[field] = numbers
    return found
