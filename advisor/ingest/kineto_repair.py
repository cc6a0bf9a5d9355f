"""Keep what is sound of events that do not decode as they should."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from advisor.ingest.json_scan import scan_list
from advisor.ingest.kineto_events import (
    BEGIN_LETTERS,
    NO_TEXT,
    UNKNOWN,
    Arguments,
    Begin,
    Event,
    ExactComplete,
    Mark,
    MemoryArguments,
)
from advisor.model.dataclass import dataclass
from advisor.model.errors import UnreadableInput

OWN_BORDER = b"\n  },\n  {"
"""Between two events as Kineto itself writes them; what is inside events is indented more."""

NOT_FINITE = re.compile(rb'((?<!\\)":\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])', re.IGNORECASE)
"""Values that profilers write for a division by zero; JSON has no word for them."""

_LARGEST = 2**63 - 1
_MOST_DIGITS = 19


MOST_SKIPPED = 50_000
"""Elements that are no events, before an input is taken for something else than a trace ..."""

SKIPPED_PER_ROW = 10
"""... and how many more for each event with a duration that it does hold."""

IGNORED: Event = object()
"""An event that says nothing here: a flow, metadata, a counter."""


@dataclass(slots=True, kw_only=True)
class Repair:
    """Decodes what the fast way refuses, and counts what it could not keep.

    Attributes:
        decode: the fast way, for a JSON list.
        kind: the struct of its events with a duration.
        row_count: events with a duration that have been kept; the reader counts them.
        skipped_count: elements that are no events.
        unknown_count: values of a wrong type or size, taken as unknown.
        tokens_left: brackets and strings that may still be scanned, at about half a million a second.
    """

    decode: Callable[[bytes | memoryview], list[Event]]
    kind: type
    row_count: int = 0
    skipped_count: int = 0
    unknown_count: int = 0
    tokens_left: int = 500_000

    def list_of(self, text: bytes) -> list[Event] | None:
        """The events of a JSON list; None where it is none.

        Raises:
            UnreadableInput: by far most of what the input holds are no events.
        """
        # As it is first: looking for NaN takes longer than decoding, and most elements of a damaged list are sound.
        values: Any
        try:
            values = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            try:
                values = _lenient(NOT_FINITE.sub(rb"\1null", text))
            except (ValueError, RecursionError):
                return None
        return self._sound(values) if isinstance(values, list) else None

    def salvaged(self, text: bytes) -> tuple[list[Event], int, bool]:
        """The events of a list that is damaged or cut off, event by event.

        Args:
            text: from its first bracket.

        Returns:
            The events, where the last one ends, and whether the list is closed there. Where it is
            not, and `tokens_left` is 0, the scan was given up.
        """
        # Kineto's own borders hold even behind a torn event, whose quotes turn texts inside out.
        pieces = text[1:].split(OWN_BORDER)
        elements = [b"{" * (number > 0) + piece + b"}" for number, piece in enumerate(pieces[:-1])]
        last = pieces[-1] if len(pieces) == 1 else b"{" + pieces[-1]
        scan = scan_list(b"[" + last, self.tokens_left)
        self.tokens_left -= scan.token_count
        elements.extend(last[start - 1 : end - 1] for start, end in scan.spans)
        events = [event for element in elements for event in self._element(element)]
        before = len(text) - len(last) - 1
        if scan.end is not None:
            return events, before + scan.end + 1, True
        return events, before + (scan.spans[-1][1] if scan.spans else 1), False

    def _element(self, text: bytes) -> list[Event]:
        found = self.list_of(b"[" + text + b"]")
        if found is None:
            self._skip()
        return found or []

    def _skip(self) -> None:
        self.skipped_count += 1
        if self.skipped_count > MOST_SKIPPED + SKIPPED_PER_ROW * self.row_count:
            raise UnreadableInput("it holds no events of a profiler trace", "give a trace saved by torch.profiler")

    def _sound(self, values: list[Any]) -> list[Event]:
        events = []
        for value in values:
            event = self._event(value) if isinstance(value, dict) else None
            if event is None:
                self._skip()
            elif event is not IGNORED:
                events.append(event)
        return events

    def _event(self, value: dict[Any, Any]) -> Event | None:
        """An event whose values all have their types; None where it lacks what makes it one."""
        letter = value.get("ph")
        if not isinstance(letter, str):
            return None
        if letter not in ("X", "i"):
            return Begin() if letter and letter in BEGIN_LETTERS else IGNORED
        start, duration = _number(value.get("ts")), _number(value.get("dur", 0.0))
        name, category = value.get("name"), value.get("cat", "")
        arguments = {} if value.get("args") is None else value["args"]
        if start is None or not isinstance(name, str) or not isinstance(arguments, dict):
            return None
        if letter == "i":
            filled = self._fill(MemoryArguments, arguments)
            return Mark(ts=start, name=_clean(name), args=filled)
        if duration is None or not isinstance(category, str):
            return None
        return self.kind(
            ts=msgspec.Raw(repr(start).encode()) if self.kind is ExactComplete else start,
            dur=duration,
            name=_clean(name),
            cat=_clean(category),
            pid=self._identity(value.get("pid", "")),
            tid=self._identity(value.get("tid", "")),
            args=self._fill(Arguments, arguments),
        )

    def _identity(self, value: object) -> int | str:
        if isinstance(value, str):
            return _clean(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.unknown_count += 1
        return ""

    def _fill(self, kind: type[msgspec.Struct], values: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - an instance of `kind`
        filled: dict[str, Any] = {}
        for field in msgspec.structs.fields(kind):
            value = values.get(field.encode_name)
            if value is None:
                continue
            good = _text(value) if field.default is NO_TEXT else _scalar(value, field.default)
            if good is None:
                self.unknown_count += 1
            else:
                filled[field.name] = good
        return kind(**filled)


def _lenient(finite: bytes) -> object:
    """Python's own reader takes lone surrogates; text that is not UTF-8 is replaced."""
    try:
        return msgspec.json.decode(finite)
    except (ValueError, RecursionError):
        return json.loads(finite.decode("utf-8", "replace"))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _scalar(value: object, default: object) -> int | str | None:
    """A whole number (or, where the field is a text, a text); None where it is neither."""
    if isinstance(value, str):
        if default != UNKNOWN and isinstance(default, str):
            return _clean(value)
        digits = value.strip()
        is_number = digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS
        return int(digits) if is_number else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        return None
    return value if not isinstance(default, str) else None


def _text(value: object) -> msgspec.Raw | None:
    try:
        return msgspec.Raw(msgspec.json.encode(value)) if isinstance(value, list) else None
    except (ValueError, RecursionError):
        return None


def _clean(text: str) -> str:
    """Without lone surrogates, which no output could be made of."""
    return text.encode("utf-8", "replace").decode()
