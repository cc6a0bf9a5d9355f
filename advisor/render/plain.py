"""Make text from inputs safe to print: a file must not be able to drive the reader's terminal."""

import re

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def printable(text: str) -> str:
    """The text without control, bidirectional and zero-width characters; what UTF-8 cannot hold becomes a question mark."""
    return _UNPRINTABLE.sub("", text).encode("utf-8", "replace").decode("utf-8")
