"""Keep what is sound of events that do not decode as they should."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

NOT_FINITE = re.compile(rb'((?<!\\)":\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])', re.IGNORECASE)
"""Values that profilers write for a division by zero; JSON has no word for them."""

_LARGEST = 2**63 - 1
_MOST_DIGITS = 19


class UnsoundError(ValueError):
    """An event lacks what makes it one."""


@dataclass(slots=True, kw_only=True)
class Repair:
    """Decodes what the fast way refuses, and counts what it could not keep.

    Attributes:
        decode: the fast way, for a JSON list.
        kind: the struct of its events with a duration.
        skipped_count: elements that are no events.
        unknown_count: values of a wrong type or size, taken as unknown.
        tokens_left: brackets and strings that may still be scanned, at about two million a second.
    """

    decode: Callable[[bytes | memoryview], list[Event]]
    kind: type
    skipped_count: int = 0
    unknown_count: int = 0
    tokens_left: int = 2_000_000

    def list_of(self, text: bytes) -> list[Event] | None:
        """The events of a JSON list; None where it is none."""
        finite = NOT_FINITE.sub(rb"\1null", text)
        for reader in (msgspec.json.decode, _lenient):
            try:
                values: Any = reader(finite)
            except (ValueError, RecursionError):
                continue
            return self._sound(values) if isinstance(values, list) else None
        return None

    def salvaged(self, text: bytes) -> tuple[list[Event], int, bool]:
        """The events of a list that is damaged or cut off.

        Args:
            text: from its first bracket.

        Returns:
            The events, where the last one ends, and whether the list is closed there. Where it is
            not, and `tokens_left` is 0, the scan was given up.
        """
        scan = scan_list(text, self.tokens_left)
        self.tokens_left -= scan.token_count
        if not scan.spans:
            return [], 1 if scan.end is None else scan.end + 1, scan.end is not None
        last = scan.spans[-1][1]
        try:
            events = self.decode(text[:last] + b"]")
        except (ValueError, RecursionError):
            events = [event for start, end in scan.spans for event in self._element(text[start:end])]
        return events, last if scan.end is None else scan.end + 1, scan.end is not None

    def _element(self, text: bytes) -> list[Event]:
        try:
            return self.decode(b"[" + text + b"]")
        except (ValueError, RecursionError):
            found = self.list_of(b"[" + text + b"]")
            self.skipped_count += found is None
            return found or []

    def _sound(self, values: list[Any]) -> list[Event]:
        events = []
        for value in values:
            try:
                event = self._event(value)
            except UnsoundError:  # noqa: PERF203 - each event is judged alone
                self.skipped_count += 1
            else:
                if event is not None:
                    events.append(event)
        return events

    def _event(self, value: object) -> Event | None:
        if not isinstance(value, Mapping) or not isinstance(letter := value.get("ph"), str):
            raise UnsoundError
        if letter and letter in BEGIN_LETTERS:
            return Begin()
        if letter not in ("X", "i"):
            return None
        start, name = _number(value.get("ts")), value.get("name")
        arguments = value.get("args")
        if not isinstance(name, str) or not isinstance(arguments, Mapping | None):
            raise UnsoundError
        if letter == "i":
            filled = self._fill(MemoryArguments, arguments or {})
            return Mark(ts=start, name=_clean(name), args=filled)
        category = value.get("cat", "")
        if not isinstance(category, str):
            raise UnsoundError
        return self.kind(
            ts=msgspec.Raw(repr(start).encode()) if self.kind is ExactComplete else start,
            dur=_number(value.get("dur", 0.0)),
            name=_clean(name),
            cat=_clean(category),
            pid=self._identity(value.get("pid", "")),
            tid=self._identity(value.get("tid", "")),
            args=self._fill(Arguments, arguments or {}),
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


def _lenient(text: bytes) -> object:
    """Python's own reader takes lone surrogates; text that is not UTF-8 is replaced."""
    return json.loads(text.decode("utf-8", "replace"))


def _number(value: object) -> float:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise UnsoundError from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnsoundError
    try:
        return float(value)
    except OverflowError:
        raise UnsoundError from None


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
