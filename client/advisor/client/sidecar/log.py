"""The sidecar's log: a bounded file, and never a reason to fail."""

import os
import time

MOST_BYTES = 64 * 1024
KEPT_BYTES = MOST_BYTES // 2
"""What stays of a full log: its newer half."""


class Log:
    """Writes lines to a descriptor of a file that was opened for reading and appending."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._last = ""

    def write(self, text: str) -> None:
        """Write a line; the same line twice in a row is written once."""
        if text == self._last:
            return
        self._last = text
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text[:2000]}\n".encode("utf-8", "replace")
        try:
            size = os.fstat(self._descriptor).st_size
            if size + len(line) > MOST_BYTES:
                newer = os.pread(self._descriptor, KEPT_BYTES, max(0, size - KEPT_BYTES)).partition(b"\n")[2]
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, newer)
            os.write(self._descriptor, line)
        except OSError:
            return
