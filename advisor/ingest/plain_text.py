"""Bytes of a saved text as characters, whatever its encoding."""

from advisor.model.errors import UnreadableInput

TABLE_LIMIT_BYTES = 96 * 1024**2
"""The largest reading of a node that is taken: 10,000 times a real one of a full node."""

LINE_LIMIT = 4000
"""Characters of a line that are looked at; longer ones are cut."""


def decode(text: bytes) -> str:
    """The characters of a text.

    What is no UTF-8 (or UTF-16 with its mark, as PowerShell redirects) becomes U+FFFD.
    """
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return text.decode("utf-16", "replace")
    return text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def small_lines(text: bytes, path: str, kind: str) -> list[str]:
    """The lines of a reading of a node, each cut at LINE_LIMIT.

    Raises:
        UnreadableInput: it is larger than any such reading.
    """
    if len(text) > TABLE_LIMIT_BYTES:
        raise UnreadableInput(
            f"{path}: {kind} of {len(text):,} bytes is larger than any node prints",
            "cut out the part that matters",
        )
    return [
        line[:LINE_LIMIT].rstrip()
        for line in decode(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ]
