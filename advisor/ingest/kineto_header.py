"""What a trace says outside its events, and where the events begin."""

import json
import re
from typing import Any, NamedTuple

import msgspec

from advisor.ingest.json_scan import open_brackets
from advisor.ingest.kineto_repair import NOT_FINITE
from advisor.ingest.kineto_slices import Readable, TraceLimits
from advisor.model.errors import UnreadableInput
from advisor.model.trace import TracedDevice

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

EVENTS = re.compile(rb'"traceEvents"\s*:\s*(\S)')

EXECUTION_TRACE = re.compile(rb'"schema"\s*:\s*"[^"]*chakra|\[pytorch\|profiler\|execution_(?:graph|trace)\|', re.IGNORECASE)

OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
"""Keys that are 1 where the profiler's option was on, and absent where it was off."""

SALVAGED = ("deviceProperties", "distributedInfo", "baseTimeNanoseconds", "INFO", *OPTIONS)
"""Keys that are looked for one by one where the whole does not decode."""

LONGEST_KEY_BYTES = 64
"""The key "traceEvents" with its colon and bracket, which may lie across two readings."""

MOST_TRIED = 16
"""Places where that key may stand, each of which costs reading all that stands before it."""

MOST_LOG_LINES = 20

MOST_TOKENS = 500_000
"""Brackets and strings of a damaged header that are looked at, a quarter of a second."""

RECORD = "give a trace saved by torch.profiler (export_chrome_trace)"


class Opening(NamedTuple):
    """A trace up to where its events begin.

    Attributes:
        header: what stands before the key "traceEvents"; empty where the file is a bare list.
        first: what has been read from the bracket of the list on.
    """

    header: bytes
    first: bytes


def open_trace(stream: Readable, limits: TraceLimits) -> Opening:
    """Read as far as the list of events.

    Raises:
        UnreadableInput: there is none within the limits; the error names what the file is instead,
            where that can be told.
    """
    read = bytearray()
    piece = bytearray(limits.slice_bytes)
    searched = tried = 0
    while count := stream.readinto(memoryview(piece)) or 0:
        read += piece[:count]
        if not searched:
            del read[: len(BYTE_ORDER_MARK) * read.startswith(BYTE_ORDER_MARK)]
            if (start := read.lstrip()).startswith(b"["):
                return Opening(header=b"", first=bytes(start))
            if start and not start.startswith(b"{"):
                break
        found = EVENTS.search(read, max(0, searched - LONGEST_KEY_BYTES))
        while found and tried < MOST_TRIED:
            tried += 1
            header = bytes(read[: found.start()])
            if found.group(1) == b"[" and _is_outermost(header):
                return Opening(header=header, first=bytes(read[found.start(1) :]))
            found = EVENTS.search(read, found.end())
        searched = len(read)
        if searched > limits.header_bytes:
            break
    raise _other(bytes(read))


def _is_outermost(header: bytes) -> bool:
    """Whether a key that follows is one of the file's own and no text or part inside another."""
    try:
        msgspec.json.decode(NOT_FINITE.sub(rb"\1null", header) + b'"_":0}', type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        # A damaged header, or no place of its own: the brackets tell.
        return header.rstrip().endswith((b",", b"{")) and open_brackets(header, MOST_TOKENS) == 1
    return True


def _other(text: bytes) -> UnreadableInput:
    """The error for a file without a list of events, which says what the file seems to be."""
    if EXECUTION_TRACE.search(text[:65536]):
        return UnreadableInput(
            "it is a PyTorch execution trace (Chakra), which holds operators without times",
            "give the profiler trace of the same run (torch.profiler, export_chrome_trace)",
        )
    if EVENTS.search(text):
        return UnreadableInput('its "traceEvents" is no list of events', RECORD)
    if text.lstrip()[:1] != b"{":
        return UnreadableInput("it is no JSON", RECORD)
    if not text.rstrip().endswith(b"}"):
        return UnreadableInput("it ends before any event of a trace", "copy it again; " + RECORD)
    return UnreadableInput('it is JSON without "traceEvents", so it is no profiler trace', RECORD)


def outside_events(header: bytes, trailer: bytes) -> tuple[dict[str, Any], bool]:
    """The keys before and behind the events.

    Args:
        header: from the file's first brace to before the key "traceEvents"; empty for a bare list.
        trailer: what follows the bracket that closes the events.

    Returns:
        The keys, and whether all of them could be read.
    """
    behind = trailer.lstrip().lstrip(b",")
    before, is_whole = _keys(header + b'"_":0}' if header.strip() else b"{}")
    after, is_whole_too = _keys(b"{" + (behind if behind.strip() else b"}"))
    return {**before, **after}, is_whole and is_whole_too


def _keys(text: bytes) -> tuple[dict[str, Any], bool]:
    finite = NOT_FINITE.sub(rb"\1null", text)
    try:
        return msgspec.json.decode(finite, type=dict[str, Any]), True
    except (msgspec.DecodeError, RecursionError):
        pass
    loose = finite.decode("utf-8", "replace")
    found = {}
    for key in SALVAGED:
        at = re.search(rf'"{key}"\s*:\s*', loose)
        try:
            if at:
                found[key] = json.JSONDecoder().raw_decode(loose, at.end())[0]
        except (ValueError, RecursionError):
            continue
    return found, False


def traced_devices(keys: dict[str, Any]) -> tuple[TracedDevice, ...]:
    """The devices of "deviceProperties", those that are sound."""
    listed = keys.get("deviceProperties")
    return tuple(
        TracedDevice(
            index=item["id"],
            name=name if isinstance(name := item.get("name"), str) else "",
            total_bytes=whole(item.get("totalGlobalMem")),
            compute_major=whole(item.get("computeMajor")),
            compute_minor=whole(item.get("computeMinor")),
            sm_count=whole(item.get("numSms")),
        )
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and whole(item.get("id")) is not None
    )


def options(keys: dict[str, Any]) -> frozenset[str]:
    """The options that the profiler says were on."""
    return frozenset(name for name in OPTIONS if keys.get(name) in (1, True))


def log_lines(keys: dict[str, Any]) -> tuple[str, ...]:
    """The profiler's own log, at most MOST_LOG_LINES lines."""
    lines = keys.get("INFO")
    texts = [line for line in (lines if isinstance(lines, list) else ()) if isinstance(line, str)]
    return tuple(texts[:MOST_LOG_LINES])


def whole(value: object) -> int | None:
    """A whole number that is not negative; None for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        return None
    return value
