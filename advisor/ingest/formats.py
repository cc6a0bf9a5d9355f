"""Find out what an input is from its first bytes, never from its name."""

import enum
import re

HEAD_BYTES = 64 * 1024
"""How much of an input (after decompression) is looked at."""

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""What a text begins with that a PowerShell redirect wrote."""

_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b\x08"))
_BINARY_SHARE = 0.05
"""Above this share of control bytes (ratio of the head) a text is no text: colored logs stay far below."""


LEAST_TEXT_SHARE = 0.5
"""Below this share of bytes that are UTF-8 a head is no text: in Latin-1 and its kin only letters with accents are not."""


class Format(enum.Enum):
    """What an input is."""

    EMPTY = "an empty file"
    GZIP = "gzip"
    ZSTD = "zstd"
    PICKLE = "a pickle"
    ZIP = "a zip archive"
    KINETO = "a profiler trace"
    SNAPSHOT_JSON = "an allocator snapshot as JSON"
    MEMORY_STATS_JSON = "memory statistics as JSON"
    JSON = "JSON of no known kind"
    XML = "XML"
    TEXT = "text"
    BINARY = "binary of no known kind"


def detect(head: bytes) -> Format:  # noqa: PLR0911 - one return a format reads best
    """The format of an input.

    Args:
        head: its first HEAD_BYTES, or all of it if it is shorter.
    """
    if not head:
        return Format.EMPTY
    if head.startswith(b"\x1f\x8b"):
        return Format.GZIP
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return Format.ZSTD
    if head.startswith(b"PK\x03\x04"):
        return Format.ZIP
    if re.match(rb"\x80[\x00-\x05]|\(d|\(l|\}q|\]q|c[\w.]{1,99}\n[\w.]{1,99}\n", head):
        return Format.PICKLE
    if head.startswith(UTF16_MARKS):
        return Format.TEXT
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if body[:1] in (b"{", b"["):
        return _json(body)
    if body.startswith((b"<?xml", b"<!DOCTYPE", b"<nvidia_smi_log")):
        return Format.XML
    return _text_or_binary(head) if body else Format.EMPTY


def _text_or_binary(head: bytes) -> Format:
    control = len(head) - len(head.translate(None, _CONTROL))
    is_text = len(head.decode("utf-8", "ignore").encode()) >= LEAST_TEXT_SHARE * len(head)
    if not is_text or b"\0" in head[:4096] or control > _BINARY_SHARE * len(head):
        return Format.BINARY
    return Format.TEXT


def _json(body: bytes) -> Format:
    if b'"traceEvents"' in body or (b'"ph"' in body and b'"ts"' in body) or b'"schemaVersion"' in body or b'"deviceProperties"' in body:
        return Format.KINETO
    if b'"segments"' in body or b'"device_traces"' in body or (b'"total_size"' in body and b'"blocks"' in body):
        return Format.SNAPSHOT_JSON
    if b'"allocated_bytes.all.' in body or b'"num_alloc_retries"' in body:
        return Format.MEMORY_STATS_JSON
    return Format.JSON if _is_one_document(body) else Format.TEXT


def _is_one_document(body: bytes) -> bool:
    """Whether the head looks like one JSON document, and not like a log of a JSON object a line or of "[rank0]:" prefixes."""
    if not re.match(rb'[\[{]\s*(["{\[\]}]|-?\d[\d.eE+]{0,30}\s{0,9}(,|\]\s*\Z)|null|true|false)', body):
        return False
    lines = [line for line in body.splitlines()[:3] if line.strip()]
    return not (len(lines) > 1 and all(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines[:2]))
