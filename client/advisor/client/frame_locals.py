"""Read the variables of a running function without changing anything in it.

Before Python 3.13, `frame.f_locals` copies a function's variables into a dictionary that the frame keeps: a tensor read that way stays
alive after the function deleted it, and a dictionary that the function had from `locals()` is rewritten. Both would change the training.
"""

import functools
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

OPTIMIZED = 0x1
"""Flag of code whose variables are no dictionary: a function's, not a module's or a class body's (inspect.CO_OPTIMIZED)."""

PROXY_VERSION = (3, 13)
"""From here on f_locals is a view that keeps nothing (PEP 667)."""

NAMESPACE_NAMES = frozenset({"locals", "vars", "exec", "f_locals"})
"""A function that uses one of these may hold the dictionary that f_locals would rewrite."""

CALLS = frozenset({"CALL", "PRECALL", "CALL_FUNCTION"})

OWN_REFERENCES = 3
"""Those to the dictionary that a frame keeps: the frame's, the variable's here, and the argument's of getrefcount."""

DEEPEST_FRAME_COUNT = 64
"""A training loop lies within; a deeper stack is a recursion."""


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    """The frame and its callers, innermost first."""
    for _ in range(DEEPEST_FRAME_COUNT):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def variables_of(frame: FrameType) -> list[tuple[str, Any]]:
    """A function's variables with their names; none where reading them could change something, or where the frame is no function's.

    The variables of a module are its globals; those of a class body are left out.
    """
    code = frame.f_code
    if not code.co_flags & OPTIMIZED:
        return []
    if sys.version_info >= PROXY_VERSION:
        return list(frame.f_locals.items())
    if frame.f_trace is not None or _may_hold_its_namespace(code):
        # A debugger writes the dictionary back into the function after each of its stops.
        return []
    namespace = frame.f_locals
    found = list(namespace.items())
    if sys.getrefcount(namespace) == OWN_REFERENCES:
        namespace.clear()
    return found


@functools.lru_cache(maxsize=128)
def _may_hold_its_namespace(code: CodeType) -> bool:
    """Whether a function calls `locals()`, `vars()` without an argument, or `exec`; `vars(arguments)` is something else."""
    if NAMESPACE_NAMES.isdisjoint(code.co_names):
        return False
    if "f_locals" in code.co_names:
        return True
    import dis  # noqa: PLC0415 - few functions need it

    wanted = ""
    for instruction in dis.get_instructions(code):
        if wanted == "vars" and instruction.opname in CALLS and instruction.arg == 0:
            return True
        wanted = str(instruction.argval) if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME"} else ""
        if wanted in {"locals", "exec"}:
            return True
    return False
