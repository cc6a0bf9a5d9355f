"""Load a pickle that may hold plain data only: containers, numbers and text, never a class or a function."""

import contextlib
import gc
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import BinaryIO, TypeVar

from advisor.ingest.pickle_source import PickleSource, TupleCountError
from advisor.model.dataclass import dataclass
from advisor.model.errors import UnreadableInput

T = TypeVar("T")

REMEDY = "save it with torch.cuda.memory._dump_snapshot('snapshot.pickle'), which writes plain data only"

STACK_BYTES_PER_TUPLE = 160
"""Hashing a tuple (as a dictionary's key) recurses in C without a check: 80 bytes a level were measured, this is twice that."""

SAFE_TUPLE_COUNT = 20_000
"""Below this many tuple opcodes any thread's stack suffices (20,000 levels take 1.6 MB)."""

MOST_STACK_BYTES = 1024**3
"""Above this a file is refused: it would hold 6.7 million tuples; a real snapshot holds one a segment and, from 2.12 on, one an event."""

STACK_GROWTH = 16
"""How many times larger the next stack is: a file is read again three times at most, and mostly for a sixteenth of it."""

SNIPPET = 80
"""Characters of a hostile name that are repeated in an error."""


class RefusedGlobal(pickle.UnpicklingError):
    """The pickle asks for a class, a function or an object outside of it."""


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that constructs nothing: REDUCE, BUILD, NEWOBJ and EXT need a global first, and there is none."""

    def find_class(self, module: str, name: str) -> object:
        wanted = f"{module}.{name}"[:SNIPPET].encode("ascii", "backslashreplace").decode()
        raise RefusedGlobal(f"it asks to import {wanted}")

    def persistent_load(self, pid: object) -> object:  # noqa: ARG002 - the name and signature are pickle's
        raise RefusedGlobal("it refers to an object outside of the file")


@contextlib.contextmanager
def garbage_collector_off() -> Iterator[None]:
    """Keep the cyclic collector from walking millions of new containers again and again (four times faster)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load_plain_pickle(stream: BinaryIO, path: str) -> object:
    """The object in a pickle that holds plain data.

    Args:
        stream: the pickle, from here to its end; it must be seekable.
        path: how to call it in messages.

    The caller limits the address space of the process: a pickle of a few bytes can claim a memo of 64 GB, and only then is that a
    MemoryError, which is reported like any other damage.

    Raises:
        UnreadableInput: it is no pickle, is damaged, or asks for anything but plain data.
    """
    try:
        return _on_sufficient_stack(stream, _value)
    except RefusedGlobal as refusal:
        raise UnreadableInput(f"{path} is a pickle that holds more than plain data, {refusal}", REMEDY) from None
    except MemoryError:
        raise UnreadableInput(f"{path} claims more memory than it may take", "it is damaged or hostile; " + REMEDY) from None
    except Exception as damage:  # noqa: BLE001 - pickle raises almost anything on damaged input; the family is one here
        words = " ".join(str(damage).split())[:SNIPPET].encode("ascii", "backslashreplace").decode()
        raise UnreadableInput(
            f"{path} is a damaged pickle ({type(damage).__name__}: {words})",
            "copy it again, or save it again: a snapshot cannot be read in part",
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPickle:
    """What was loaded.

    Attributes:
        value: the object in the pickle.
        memo: what was made on the way and numbered, by number.
        behind_bytes: how many bytes the stream has behind the pickle's end.
    """

    value: object
    memo: dict[int, object]
    behind_bytes: int


def load_with_memo(stream: BinaryIO) -> PlainPickle:
    """The object in a pickle that holds plain data, with all that its opcodes referred to by number.

    The stack it is loaded on suffices to hash the deepest tuple that was read so far. The tuples are counted as the pickle is read, not
    before, so that one that is wrong at its start is refused there, however long it is. Where there are more than the stack suffices
    for, it is read again on a larger one.

    Args:
        stream: the pickle, from here to its end; it must be seekable.

    Raises:
        RefusedGlobal: it asks for anything but plain data.
        Exception: it is no pickle, or damaged, and pickle raises almost anything then.
    """
    return _on_sufficient_stack(stream, _plain_pickle)


def _plain_pickle(source: PickleSource) -> PlainPickle:
    unpickler = _PlainUnpickler(source)
    value = unpickler.load()
    memo: dict[int, object] = dict(unpickler.memo.copy())
    return PlainPickle(value=value, memo=memo, behind_bytes=len(source.read()))


def _value(source: PickleSource) -> object:
    return _PlainUnpickler(source).load()


@contextlib.contextmanager
def _silent_bytearrays() -> Iterator[None]:
    """Keep CPython from printing a SystemError where memory for a `bytearray` that a pickle claims cannot be had.

    It destroys the half-made object then as if somebody still looked into it, by a counter that was not set, and says so at random.
    """
    before = sys.excepthook

    def silent(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if kind is not SystemError:
            before(kind, error, trace)

    sys.excepthook = silent
    try:
        yield
    finally:
        sys.excepthook = before


@_silent_bytearrays()
def _on_sufficient_stack(stream: BinaryIO, load: Callable[[PickleSource], T]) -> T:
    begin = stream.tell()
    most = SAFE_TUPLE_COUNT
    while True:
        stream.seek(begin)
        run = partial(load, PickleSource(stream, most))
        try:
            return run() if most == SAFE_TUPLE_COUNT else _in_thread(run, most * STACK_BYTES_PER_TUPLE)
        except TupleCountError as more:
            largest = MOST_STACK_BYTES // STACK_BYTES_PER_TUPLE
            if more.tuple_count > largest:
                raise
            while most < more.tuple_count:
                most = min(most * STACK_GROWTH, largest)


def _in_thread(load: Callable[[], T], stack_bytes: int) -> T:
    loaded: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            loaded.append(load())
        except BaseException as error:  # noqa: BLE001 - carried over to the caller's thread
            failed.append(error)

    page = 1024**2
    before = threading.stack_size((stack_bytes // page + 2) * page)
    try:
        thread = threading.Thread(target=run, name="unpickle")
        thread.start()
    except RuntimeError:
        raise MemoryError from None
    finally:
        threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return loaded[0]
