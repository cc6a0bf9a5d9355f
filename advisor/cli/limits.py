"""Limit the address space while a stranger's file is parsed: a bomb then raises MemoryError and does not fill the machine."""

import contextlib
import sys
from collections.abc import Iterator

from advisor.model.errors import UnreadableInput

FLOOR_BYTES = 320 * 1024**2
"""What any parse may take: interpreter, numpy and the tables of a small file stay far below."""

PER_INPUT_BYTE = 8
"""Address space per byte of input: the largest real inputs took 4.7 bytes a byte (snapshots), the rest is for fragmentation."""

PAGE_BYTES = 4096


@contextlib.contextmanager
def address_space_limit(path: str, input_bytes: int) -> Iterator[None]:
    """Limit what parsing may allocate; where the platform has no such limit, do nothing.

    Raises:
        UnreadableInput: parsing needed more memory than any real file of this size does.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource  # noqa: PLC0415 - Unix only

    allowance = max(FLOOR_BYTES, PER_INPUT_BYTE * input_bytes)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _address_space_bytes() + allowance
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    except MemoryError:
        raise UnreadableInput(
            f"{path} needs more than {allowance // 1024**2} MiB of memory to read, far more than a real file of its size",
            "it is damaged or made to exhaust memory; save it again",
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space_bytes() -> int:
    with open("/proc/self/statm", "rb") as statistics:  # noqa: PTH123 - pathlib costs start-up time
        return int(statistics.read().split()[0]) * PAGE_BYTES
