"""Sizes as programs print them ("23.65 GiB", "7406166528 bytes", "1.95G") and the bytes that they mean.

Every allocator, engine and kernel whose messages are read here divides by 1024, whatever it calls the result: PyTorch's old MPS
allocator printed "GB" for size / 1073741824, vLLM's first V1 messages did the same, XLA prints "G", the kernel prints "kB".
No unit is therefore read as a power of ten.
"""

from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.dataclass import dataclass

_EXPONENTS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
"""Power of 1024 by the first letter of the unit."""

UNKNOWN_FROM_BYTES = 2**62
"""Larger than any memory; NVML's "not available" (2^64 - 1) comes out as 17179869184.00 GiB, and that is not a size."""

SIZE = r"(\d{1,20}(?:,\d{3}){0,6}(?:\.\d{1,6})?)[ \t]{0,2}(bytes|[Bb]ytes?|[KMGTPEk]i?B|B)(?![A-Za-z0-9_])"
"""A pattern with two groups, number and unit, for use inside larger patterns."""

SHORT_SIZE = r"(\d{1,20}(?:\.\d{1,6})?)[ \t]{0,2}([KMGTPEk](?:i?B)?|bytes|B)(?![A-Za-z0-9_])"
"""The same where the unit may be one letter, as XLA prints it."""

_SIZE = LazyPattern(SIZE)


@dataclass(frozen=True, slots=True)
class ByteSize:
    """A printed size.

    Attributes:
        size_bytes: the printed number times its unit, rounded to bytes (half to even, as Python rounds).
        resolution_bytes: half the weight of the last printed digit, rounded up; 0 where whole bytes are printed.
    """

    size_bytes: int
    resolution_bytes: int


def byte_size(number: str, unit: str) -> ByteSize | None:
    """Bytes of a printed number and unit; None where the unit is unknown or the number is no size (2^62 and more)."""
    letter = unit[:1].upper()
    exponent = 0 if letter == "B" else _EXPONENTS.get(letter)
    digits = number.replace(",", "")
    if exponent is None or not digits:
        return None
    whole, _, fraction = digits.partition(".")
    if not whole.isdecimal() or (fraction and not fraction.isdecimal()):
        return None
    factor, parts = 1024**exponent, 10 ** len(fraction)
    size, rest = divmod(int(whole + fraction) * factor, parts)
    if 2 * rest > parts or (2 * rest == parts and size % 2):
        size += 1
    if size >= UNKNOWN_FROM_BYTES:
        return None
    if factor == 1 and not fraction:
        return ByteSize(size, 0)
    return ByteSize(size, -(-factor // (2 * parts)))


def first_size(text: str) -> ByteSize | None:
    """The first size in a text; None without one."""
    match = _SIZE.search(text)
    return byte_size(match[1], match[2]) if match else None
