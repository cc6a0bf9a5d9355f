"""What is kept of an exception that ends the training: its text and traceback, and what the training was doing."""

import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from advisor.client.spool import write_json

MOST_TEXT_BYTES = 256 * 1024
"""A traceback is cut here, in its middle: the first and the last frames tell most."""

MOST_FAILURES = 8
"""Failures kept of a run; a loop that catches its exceptions may have thousands."""


def describe(error: BaseException, trace: TracebackType | None) -> dict[str, Any]:
    """The exception with its causes as Python prints them, cut in the middle where it is long."""
    text = "".join(traceback.format_exception(type(error), error, trace))
    if len(text) > MOST_TEXT_BYTES:
        half = MOST_TEXT_BYTES // 2
        text = f"{text[:half]}\n... ({len(text) - MOST_TEXT_BYTES} characters left out) ...\n{text[-half:]}"
    return {"kind": "exception", "type": f"{type(error).__module__}.{type(error).__qualname__}", "text": text}


class FailureRecorder:
    """Writes failures into the folder of a rank, each exception once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: BaseException | None = None
        self.count = 0

    def record(self, error: BaseException, trace: TracebackType | None, *, phase: str, step: int) -> None:
        """Keep an exception; leaving by `sys.exit` or Ctrl-C is kept as well, under its own name.

        Raises:
            OSError: if the folder cannot be written.
        """
        if error is self._last or self.count >= MOST_FAILURES:
            return
        self._last = error
        self.count += 1
        moment = {"wall_nanoseconds": time.time_ns(), "monotonic_nanoseconds": time.monotonic_ns()}
        write_json(self._folder, f"failure-{self.count}.json", {**describe(error, trace), "phase": phase, "step": step, **moment})


class ExceptHook:
    """`sys.excepthook` with ours before it; whoever set another one later keeps theirs."""

    def __init__(self, recorder: "Any") -> None:  # noqa: ANN401 - a callable of three arguments
        self._record = recorder
        self._before = sys.excepthook

    def install(self) -> None:
        """Put ours first."""
        self._before = sys.excepthook
        sys.excepthook = self._hook

    def remove(self) -> None:
        """Put back what was there, unless somebody replaced ours."""
        if sys.excepthook == self._hook:
            sys.excepthook = self._before

    def _hook(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        try:
            self._record(error, trace)
        finally:
            self._before(kind, error, trace)
