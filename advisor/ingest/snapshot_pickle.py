"""Load a pickle that may hold plain data only: containers, numbers and text, never a class or a function."""

import contextlib
import gc
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO

from advisor.model.errors import UnreadableInput

REMEDY = "save it with torch.cuda.memory._dump_snapshot('snapshot.pickle'), which writes plain data only"

READ_AHEAD_BYTES = 1024 * 1024
"""The C unpickler asks its file for a few bytes at a time unless it can peek; a buffered reader of this size lets it."""

TUPLE_OPCODES = (b"\x85", b"\x86", b"\x87", b"t")
"""The opcodes that make a tuple; a tuple can be nested no deeper than these bytes occur."""

STACK_BYTES_PER_TUPLE = 160
"""Hashing a tuple (as a dictionary's key) recurses in C without a check: 80 bytes a level were measured, this is twice that."""

SAFE_TUPLE_COUNT = 20_000
"""Below this many tuple opcodes any thread's stack suffices (20,000 levels take 1.6 MB)."""

MOST_STACK_BYTES = 1024**3
"""Above this a file is refused: it would hold 6.7 million tuples; a real snapshot holds one a segment and, from 2.12 on, one an event."""

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
        return _on_a_deep_stack(lambda: _PlainUnpickler(_peekable(stream)).load(), stream)
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


def _peekable(stream: BinaryIO) -> io.BufferedReader:
    return io.BufferedReader(stream, READ_AHEAD_BYTES)  # type: ignore[arg-type] # every binary stream has readinto


def _on_a_deep_stack(load: Callable[[], object], stream: BinaryIO) -> object:
    """Run `load` where the deepest tuple that the file could hold can be hashed without running off the stack."""
    begin = stream.tell()
    tuple_count = 0
    while piece := stream.read(READ_AHEAD_BYTES):
        tuple_count += sum(map(piece.count, TUPLE_OPCODES))
    stream.seek(begin)
    if tuple_count <= SAFE_TUPLE_COUNT:
        return load()
    needed = tuple_count * STACK_BYTES_PER_TUPLE
    if needed > MOST_STACK_BYTES:
        raise pickle.UnpicklingError(f"{tuple_count} tuples")
    return _in_thread(load, needed)


def _in_thread(load: Callable[[], object], stack_bytes: int) -> object:
    loaded: list[object] = []
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
