"""Keep the samples of the host in a bounded file."""

import os
from pathlib import Path

from advisor.client.host_record import HOST, HostSample, line_of
from advisor.client.spool import write_bytes

MOST_BYTES = 512 * 1024
"""About 1,000 samples."""


class HostFile:
    """Appends samples; when the file is full, every second line of its older half is dropped."""

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder, self._most_bytes = folder, most_bytes

    def add(self, sample: HostSample) -> None:
        """Append a sample.

        Raises:
            OSError: if it cannot be written; what was there stays.
        """
        descriptor = os.open(self._folder / HOST, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # A line that a kill or a full disk cut is ended here; readers leave it out.
            size = os.fstat(descriptor).st_size
            begin = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
            os.write(descriptor, begin + line_of(sample))
            if size > self._most_bytes:
                self._thin(os.pread(descriptor, size + 4096, 0))
        finally:
            os.close(descriptor)

    def _thin(self, data: bytes) -> None:
        lines = data.splitlines(keepends=True)
        half = len(lines) // 2
        write_bytes(self._folder, HOST, b"".join(lines[1:half:2] + lines[half:]))
