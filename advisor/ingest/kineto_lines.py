"""Find the events of a trace by their lines where it is laid out as Kineto itself prints it.

    {
      "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2,
      "ts": 1661203462598738, "dur": 19,
      "args": {
        "External id": 1, ...
      }
    },

A line feed cannot occur within a JSON text, so the borders are certain, and all lines of a slice are told apart at once by their first
eight bytes. The first lines of an event, up to its times, recur and are read once; times are read eight digits in a step; of the
arguments only those are read that are needed. An event that deviates, and what follows it, is left to the decoder of any JSON.
"""

from typing import NamedTuple

import numpy as np

from advisor.ingest.kineto_events import IGNORED_LETTERS
from advisor.ingest.kineto_words import MARGIN_BYTES, WORD_BYTES, Column, Decimals, Text, begin_with

MOST_HEADINGS = 2
"""Lines before the times of an event: one, or two in traces before torch 1.11."""

LONGEST_START = 24
"""Characters of a start with what is behind it; one for which they do not suffice is left to the decoder."""

OPENING = b"[\n  {\n"

_OPEN_EVENT, _CLOSE_EVENT, _CLOSE_ARGUMENTS = b"  {\n", b"  },", b"    }\n"
_LETTER, _TIMES, _DURATION, _ARGUMENTS = b'    "ph": "', b'    "ts": ', b', "dur": ', b'    "args": {\n'
_QUOTE, _COMMA, _FEED, _COMPLETE, _INSTANT = b'",\nXi'

_IS_KNOWN = np.zeros(256, bool)
_IS_KNOWN[list((IGNORED_LETTERS + "Xi").encode())] = True


class Lines(NamedTuple):
    """The events with a duration of a slice, and its instants.

    Attributes:
        text: the slice.
        label_starts / label_ends: where what precedes an event's times lies: category, name, process, thread.
        starts / durations: in microseconds.
        argument_starts / argument_ends: where the insides of an event's arguments lie; equal where there are none.
        marks: each instant, whole.
        end: where the comma stands behind the last of all these events.
    """

    text: Text
    label_starts: Column
    label_ends: Column
    starts: Decimals
    durations: Decimals
    argument_starts: Column
    argument_ends: Column
    marks: list[bytes]
    end: int

    def arguments_of(self, rows: Column) -> bytes:
        """The arguments of some events as a JSON list of objects."""
        return b"[{" + b"},{".join(self.text.pieces(self.argument_starts[rows], self.argument_ends[rows])) + b"}]"


def lines_of(events: memoryview) -> Lines | None:
    """The first events of a slice, up to one that is laid out otherwise; None where no event with a duration is among them.

    Args:
        events: from the bracket that opens the list to the comma behind the last event, the comma included.
    """
    text = Text(b"".join((events, bytes(MARGIN_BYTES))))
    if not text.text.startswith(OPENING):
        return None
    starts = np.flatnonzero(text.characters == _FEED) + 1
    kinds = text.words[starts]
    opens = np.flatnonzero(begin_with(kinds, _OPEN_EVENT))
    closes = np.append(opens[1:], len(starts)) - 1
    ends = np.append(starts[opens[1:]] - 1, len(events))
    headings = starts[np.minimum(opens + 1, closes)]
    letters = text.characters[headings + len(_LETTER)]
    is_plain = (
        begin_with(kinds[closes], _CLOSE_EVENT)
        & (ends - starts[closes] == len(_CLOSE_EVENT))
        & text.stands(_LETTER, headings)
        & _IS_KNOWN[letters]
        & (text.characters[headings + len(_LETTER) + 1] == _QUOTE)
    )
    complete = np.flatnonzero(letters == _COMPLETE)
    times, has_arguments, is_plain[complete] = _bodies(text, starts, kinds, opens[complete], closes[complete] * is_plain[complete])
    count = len(opens) if is_plain.all() else int(is_plain.argmin())
    taken = int(np.searchsorted(complete, count))
    if not taken:
        return None
    times, has_arguments = times[:taken], has_arguments[:taken]
    numbers = _numbers(text, starts[times], starts[times + 1] - 1, has_arguments)
    if numbers is None:
        return None
    begun = starts[times + 1 + has_arguments]
    ended = np.maximum(begun, (starts[closes[complete[:taken]] - 1] - 1) * has_arguments)
    instants = np.flatnonzero(letters[:count] == _INSTANT)
    marks = text.pieces(starts[opens[instants]], ends[instants] - 1)
    return Lines(text, headings[complete[:taken]], starts[times], *numbers, begun, ended, marks, int(ends[count - 1]) - 1)


def _bodies(text: Text, starts: Column, kinds: Column, opens: Column, closes: Column) -> tuple[Column, Column, Column]:
    """Of events with a duration the lines of their times, which have arguments, and which have those two and nothing else."""
    times = opens + 2
    for _ in range(MOST_HEADINGS - 1):
        times += (times < closes) & ~begin_with(kinds[np.minimum(times, closes)], _TIMES[:WORD_BYTES])
    behind = np.minimum(times + 1, closes)
    has_arguments = text.stands(_ARGUMENTS, starts[behind])
    is_closed = begin_with(kinds[closes - 1], _CLOSE_ARGUMENTS) & (behind < closes - 1)
    return times, has_arguments, (times < closes) & np.where(has_arguments, is_closed, times + 1 == closes)


def _numbers(text: Text, starts: Column, ends: Column, has_arguments: Column) -> tuple[Decimals, Decimals] | None:
    """Starts and durations from the lines that hold both."""
    first = starts + len(_TIMES)
    # A profiler's starts are mostly of one length.
    commas = first + int((text.characters[first[0] : first[0] + LONGEST_START] == _COMMA).argmax())
    if (others := np.flatnonzero(text.characters[commas] != _COMMA)).size:
        table = text.characters[first[others, None] + np.arange(LONGEST_START)]
        commas[others] = first[others] + (table == _COMMA).argmax(axis=1)
    has_comma = text.characters[ends - 1] == _COMMA
    if not (text.stands(_TIMES, starts) & text.stands(_DURATION, commas) & (has_comma == has_arguments)).all():
        return None
    begun, lasted = text.decimals(first, commas), text.decimals(commas + len(_DURATION), ends - has_comma)
    return (begun, lasted) if begun and lasted else None
