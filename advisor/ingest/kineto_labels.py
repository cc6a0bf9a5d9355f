"""Give what recurs in the events of a trace small numbers: names, threads, shapes."""

from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from advisor.ingest.kineto_categories import CATEGORIES, COLLECTIVE, OLD_ANNOTATION
from advisor.model.trace import DEVICE_ACTIVITY, HOST_CALLS, Category, Identity

Label: TypeAlias = tuple[str, str, Identity, Identity]
"""Category as recorded, name, process, thread: one lookup for the four is cheaper than one each."""

IS_OPERATOR = 1
"""Carries shapes and sequence numbers."""
IS_CALL = 2
"""Is a call of the host, which carries a correlation."""
IS_ON_DEVICE = 4
"""Lies on a stream of a device, and carries a correlation."""
IS_COLLECTIVE = 8
"""May say what a collective sends."""

NO_CODE = -1

_ON_DEVICE = (*DEVICE_ACTIVITY, Category.DEVICE_ANNOTATION, Category.SYNCHRONIZATION)


class Interned(dict[str, int]):
    """Codes in order of first appearance: `interned[text]` is always there."""

    def __missing__(self, key: str) -> int:
        code = self[key] = len(self)
        return code


class Labels(dict[Label, int]):
    """Codes of labels, and what each stands for.

    Attributes:
        names: codes of names.
        threads: codes of process and thread together.
        name / thread / category / flags: by the label's code.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names = Interned()
        self.threads: dict[tuple[Identity, Identity], int] = {}
        self.name: list[int] = []
        self.thread: list[int] = []
        self.category = bytearray()
        self.flags = bytearray()

    def __missing__(self, key: Label) -> int:
        code = self[key] = len(self)
        recorded, name, pid, tid = key
        category = CATEGORIES.get(recorded, Category.OTHER)
        if category is Category.OPERATOR and OLD_ANNOTATION.match(name):
            category = Category.ANNOTATION
        self.name.append(self.names[name])
        self.thread.append(self.threads.setdefault((pid, tid), len(self.threads)))
        self.category.append(category)
        self.flags.append(
            IS_OPERATOR * (category in (Category.OPERATOR, Category.ANNOTATION))
            | IS_CALL * (category in HOST_CALLS)
            | IS_ON_DEVICE * (category in _ON_DEVICE)
            | IS_COLLECTIVE * bool(COLLECTIVE.search(name))
        )
        return code


class Texts(dict[bytes, int]):
    """Codes of an operator's shapes, types and inputs: JSON lists joined by zero bytes.

    Equal lists have equal codes however they are spaced. An empty list says as little as none: old
    profilers wrote one where they recorded nothing.

    Attributes:
        shapes / types / inputs: codes of the lists without spaces.
        shape / type / input: by the code of the joined text; NO_CODE where there is no list.
    """

    SEPARATOR = b"\0"

    def __init__(self) -> None:
        super().__init__()
        self.shapes = Interned()
        self.types = Interned()
        self.inputs = Interned()
        self.shape: list[int] = []
        self.type: list[int] = []
        self.input: list[int] = []

    def __missing__(self, key: bytes) -> int:
        code = self[key] = len(self)
        parts = key.split(self.SEPARATOR)
        shapes, types, inputs = parts if len(parts) == 3 else (b"",) * 3  # noqa: PLR2004 - the three of the docstring
        self.shape.append(_code(shapes, self.shapes))
        self.type.append(_code(types, self.types))
        self.input.append(_code(inputs, self.inputs))
        return code


def _code(text: bytes, table: Interned) -> int:
    if not text:
        return NO_CODE
    try:
        value = msgspec.json.decode(text)
        return table[msgspec.json.encode(value).decode()] if value and isinstance(value, list) else NO_CODE
    except (ValueError, RecursionError):
        return NO_CODE


def looked_up(table: list[int] | bytearray, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """What the codes stand for; NO_CODE stays NO_CODE."""
    found: npt.NDArray[np.int32] = np.array([*table, NO_CODE], np.int32)[codes]
    return found
