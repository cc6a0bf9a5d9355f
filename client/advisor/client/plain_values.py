"""Turn settings into values of JSON: bounded in depth, count and size, without secrets, without running the classes' own code."""

from collections import deque
from collections.abc import Iterable
from enum import Enum
from itertools import islice
from math import inf, isfinite
from types import FunctionType, ModuleType
from typing import Any

from advisor.client.object_fields import class_path, field, fields_of, instance_dict, is_a
from advisor.client.redaction import REDACTED, hides_number, redact_named, redact_text
from advisor.client.secret_names import PLAIN, judged

DEEPEST_LEVEL = 6
MOST_ITEMS = 200
"""Of one container: a configuration's lists are shorter, a vocabulary or a list of files is no configuration."""
MOST_VALUES = 3000
"""In all: about 3 ms."""
LONGEST_TEXT = 1000
"""Letters; prompts and templates are cut."""
LONGEST_NAME = 200
SHORT_NAME = 24
"""A name as short as this is no key by its form."""
WIDEST_INTEGER_BITS = 256

NOT_FINITE = {inf: "inf", -inf: "-inf"}

SHOWN_BY_STR = frozenset(
    {
        *("torch.dtype", "torch.device", "torch.layout", "torch.memory_format"),
        *("pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib._local.PosixPath", "pathlib._local.PurePosixPath"),
        *(
            "datetime.datetime",
            "datetime.date",
            "datetime.time",
            "datetime.timedelta",
            "decimal.Decimal",
            "fractions.Fraction",
            "uuid.UUID",
        ),
    }
)
"""Classes of the standard library and of torch, exactly: their `str` is short and runs no code of others."""


WRAPPERS = {
    "omegaconf.nodes.": "_val",
    "omegaconf.base.": "_val",
    "omegaconf.listconfig.ListConfig": "_content",
    "absl.flags._flag.": "_value",
}
"""Classes (by the begin of their path) that stand for one value, and the attribute that holds it."""


class PlainValues:
    """Reads values within limits that all its readings share.

    Attributes:
        cut_count: values that were cut, or left out for want of room.
        redacted_count: values in which a secret was hidden.
    """

    __slots__ = ("_left", "_open", "cut_count", "redacted_count")

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._left = most
        self._open: set[int] = set()
        self.cut_count = 0
        self.redacted_count = 0

    def read(self, value: Any, name: str = "", *, level: int = 0, is_secret: bool = False) -> Any:  # noqa: ANN401, PLR0911 - a kind a line
        """The value as JSON: itself, a list, a dictionary, or a text "<class>" of what is none of these.

        Args:
            value: any object.
            name: what it is called, by which it may be a secret.
            level: how deep it lies.
            is_secret: whether what it lies in is.
        """
        self._left -= 1
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind is str:
            return self._text(value, name, is_secret=is_secret)
        if kind is int or kind is float:
            return self._number(value, name, is_secret=is_secret)
        # Of the type, never of the value: `isinstance` may ask the value for its class, and that may be a program.
        if issubclass(kind, Enum):
            return self.read(field(value, "_value_"), name, level=level, is_secret=is_secret)
        if issubclass(kind, str):
            return self._text(str.__str__(value), name, is_secret=is_secret)
        if issubclass(kind, int):
            return self._number(int.__int__(value), name, is_secret=is_secret)
        if issubclass(kind, float):
            return self._number(float.__float__(value), name, is_secret=is_secret)
        if id(value) in self._open or level >= DEEPEST_LEVEL or self._left <= 0:
            self.cut_count += 1
            return f"<{class_path(kind)}>"
        self._open.add(id(value))
        try:
            return self._container(value, name, level=level, is_secret=is_secret or hides_number(name))
        except RuntimeError:  # another thread changed it under way
            self.cut_count += 1
            return f"<{class_path(kind)}>"
        finally:
            self._open.discard(id(value))

    def _text(self, text: str, name: str, *, is_secret: bool) -> str:
        # Redacted before it is cut: half a key is no longer known by its form.
        near = text[: 4 * LONGEST_TEXT]
        shown = REDACTED if is_secret and near else redact_named(name, near)
        self.redacted_count += shown != near
        self.cut_count += len(text) > len(near) or len(shown) > LONGEST_TEXT
        return shown[:LONGEST_TEXT]

    def _number(self, number: float, name: str, *, is_secret: bool) -> int | float | str:
        if is_secret or hides_number(name):
            self.redacted_count += 1
            return REDACTED
        if isinstance(number, int):
            if number.bit_length() <= WIDEST_INTEGER_BITS:
                return number
            self.cut_count += 1
            return f"<int of {number.bit_length()} bits>"
        return number if isfinite(number) else NOT_FINITE.get(number, "nan")

    def _container(self, value: Any, name: str, *, level: int, is_secret: bool) -> Any:  # noqa: ANN401 - as in read
        kind = type(value)
        path = class_path(kind)
        if path in SHOWN_BY_STR:
            return self._text(str(value), name, is_secret=is_secret)
        wrapped = next((attribute for start, attribute in WRAPPERS.items() if path.startswith(start)), None)
        if wrapped is not None and wrapped in (own := instance_dict(value)):
            return self.read(own[wrapped], name, level=level + 1, is_secret=is_secret)
        fields = fields_of(value, MOST_ITEMS)
        if fields is not None:
            return self._fields(fields, value, name, level=level, is_secret=is_secret)
        sequence = next((base for base in SEQUENCES if issubclass(kind, base)), None)
        if sequence is not None:
            return self._items(sequence, value, name, level=level, is_secret=is_secret)
        if path.startswith("numpy.") and is_a(value, "numpy.number", "numpy.bool", "numpy.bool_"):
            return self.read(value.item(), name, level=level, is_secret=is_secret)
        return _shown(value, path)

    def _fields(self, fields: Iterable[tuple[Any, Any]], value: Any, name: str, *, level: int, is_secret: bool) -> dict[str, Any]:  # noqa: ANN401
        found: dict[str, Any] = {}
        above = name.rpartition(".")[2]
        for key, inner in fields:
            if self._left <= 0:
                self.cut_count += 1
                break
            word = key if type(key) is str and len(key) <= SHORT_NAME else self._key(key)
            kind = type(inner)
            if inner is None or kind is bool or (kind is float and isfinite(inner) and judged(word) == PLAIN and not is_secret):
                self._left -= 1
                found[word] = inner  # what nearly all settings are
                continue
            found[word] = self.read(inner, f"{above}.{word}" if above else word, level=level + 1, is_secret=is_secret)
        if issubclass(type(value), dict):
            self.cut_count += max(0, dict.__len__(value) - MOST_ITEMS)
        return found

    def _items(self, sequence: Any, value: Any, name: str, *, level: int, is_secret: bool) -> list[Any]:  # noqa: ANN401
        found = []
        for inner in islice(sequence.__iter__(value), MOST_ITEMS):
            if self._left <= 0:
                break
            found.append(self.read(inner, name, level=level + 1, is_secret=is_secret))
        self.cut_count += sequence.__len__(value) - len(found)
        if sequence in (set, frozenset):
            found.sort(key=repr)  # plain values: the order of a set differs from process to process
        return found

    def _key(self, key: Any) -> str:  # noqa: ANN401 - whatever a dictionary has
        if issubclass(type(key), Enum):
            key = field(key, "_value_")
        if issubclass(type(key), str):
            return redact_text(str.__str__(key)[:LONGEST_NAME])
        if key is None or type(key) in (bool, int, float):
            return str(key)[:LONGEST_NAME]
        return f"<{class_path(type(key))}>"


SEQUENCES = (list, tuple, set, frozenset, deque)


def _shown(value: Any, path: str) -> str:  # noqa: ANN401 - any object
    """What stands for an object that has no plain value."""
    kind = type(value)
    if issubclass(kind, type):
        return f"<class {class_path(value)}>"
    if kind is ModuleType:
        return f"<module {instance_dict(value).get('__name__', '')}>"
    if kind is FunctionType:
        return f"<function {value.__module__}.{value.__qualname__}>"
    if kind is bytes or kind is bytearray:
        return f"<{len(value)} bytes>"
    return str(value) if kind is range or kind is complex else f"<{path}>"
