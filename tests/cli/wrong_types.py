"""Puts a wrong value into every field of an input, one after the other."""

import json
import re
from collections.abc import Iterator

from small_inputs import MEMORY_STATS, a_snapshot, a_trace, an_old_snapshot, pickled
from small_texts import TEXTS

DEEP = 1000

WRONG_JSON = {
    "null": "null",
    "true": "true",
    "-1": "-1",
    "1.5": "1.5",
    "0": "0",
    "1e400": "1e400",
    "-1e308": "-1e308",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "10**30": str(10**30),
    "2**63-1": str(2**63 - 1),
    "-2**63": str(-(2**63)),
    "empty text": '""',
    "long text": json.dumps("x" * 1000),
    "number as text": '"12"',
    "surrogate": '"\\ud800"',
    "controls": '"\\u001b[31m\\u202e|`<b>"',
    "empty list": "[]",
    "empty object": "{}",
    "deep list": "[" * DEEP + "]" * DEEP,
    "deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
}
"""What is put into a field of a JSON document, as it is written there."""


WRONG_PYTHON = {
    "None": None,
    "True": True,
    "-1": -1,
    "1.5": 1.5,
    "0": 0,
    "inf": float("inf"),
    "nan": float("nan"),
    "10**30": 10**30,
    "10**5000": 10**5000,
    "2**63-1": 2**63 - 1,
    "empty text": "",
    "long text": "x" * 1000,
    "surrogate": "\ud800",
    "controls": "\x1b[31m\u202e|`<b>",
    "bytes": b"\xff\xfe",
    "empty list": [],
    "empty object": {},
    "a tuple": (1, "2"),
    "a set": {1, 2},
}
"""What is put into a field of a pickle."""

DEEP_PICKLE = b"]" * DEEP + b"a" * (DEEP - 1)
"""A list in a list, in opcodes: Python itself would not pickle it."""

WRONG_TEXT = (
    "",
    "0",
    "-1",
    "1.5",
    "1e400",
    "NaN",
    "inf",
    str(10**30),
    "9" * 1000,
    "x" * 1000,
    "[N/A]",
    "\x1b[31m\u202e|`<b>",
    "\ufffd\x00",
)
"""What is put in the place of a number or a word of a text."""

PLACE = "@the place@"

TOKEN = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?|\b(?:MiB|GiB|GB|MB|KiB|kB|ms|us|s|W|MHz|Active|Enabled|python|aten)\b")


def places(value, path=()) -> Iterator[tuple]:
    """Every place inside nested lists and objects but the whole."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in parts:
        yield (*path, key)
        yield from places(part, (*path, key))


def replaced(value, path, new, *, drop=False):
    """A copy with another value at a place, or without the place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1 and drop:
        del copy[path[0]]
    else:
        copy[path[0]] = replaced(copy[path[0]], path[1:], new, drop=drop)
    return copy


def in_every_event(trace, category, path, new):
    """A copy of a trace with another value at the same place of every event of a category."""
    events = []
    for event in trace["traceEvents"]:
        is_meant = event.get("cat", event["ph"]) == category
        for key in path if is_meant else ():
            is_meant = is_meant and (key in event or (path[0] == "args" and key in event.get("args", {})))
        events.append(replaced(event, path, new) if is_meant else event)
    return {**trace, "traceEvents": events}


def as_json(value, raw):
    """A document with the raw text in the marked places."""
    return json.dumps(value).replace(json.dumps(PLACE), raw).encode()


def with_deep_list(value):
    """A pickle with a deep list in the marked place."""
    return pickled(value, 2).replace(pickled(PLACE, 2)[2:-4], DEEP_PICKLE)


def wrong_traces() -> Iterator[tuple[str, str, bytes]]:
    """A trace with a wrong value in one field of one event, and in the same field of every event of its category."""
    trace = a_trace()
    seen = set()
    for path in places(trace):
        name = ".".join(map(str, path))
        inside = path[2:] if path[0] == "traceEvents" and len(path) > 2 else None
        if inside:
            event = trace["traceEvents"][path[1]]
            category = event.get("cat", event["ph"])
            if (category, event["name"], inside) in seen:
                continue
            seen.add((category, event["name"], inside))
        for wrong, raw in WRONG_JSON.items():
            yield f"trace {name} = {wrong}", "trace", as_json(replaced(trace, path, PLACE), raw)
            if inside and (category, inside, wrong) not in seen:
                seen.add((category, inside, wrong))
                yield f"trace {category} {inside} = {wrong}", "trace", as_json(in_every_event(trace, category, inside, PLACE), raw)
        yield f"trace without {name}", "trace", as_json(replaced(trace, path, None, drop=True), "")


def wrong_snapshots() -> Iterator[tuple[str, str, bytes]]:
    """A snapshot with a wrong value in one field, as a pickle and as JSON."""
    for kind, raw in (("snapshot", a_snapshot()), ("old snapshot", an_old_snapshot())):
        for path in places(raw):
            name = ".".join(map(str, path))
            for wrong, value in WRONG_PYTHON.items():
                yield f"{kind} pickle {name} = {wrong}", "pickle", pickled(replaced(raw, path, value))
            yield f"{kind} pickle {name} = deep list", "pickle", with_deep_list(replaced(raw, path, PLACE))
            for wrong, text in WRONG_JSON.items():
                yield f"{kind} json {name} = {wrong}", "snapshot-json", as_json(replaced(raw, path, PLACE), text)
            yield f"{kind} pickle without {name}", "pickle", pickled(replaced(raw, path, None, drop=True))


def wrong_statistics() -> Iterator[tuple[str, str, bytes]]:
    """Memory statistics as JSON with a wrong value in one field, or in all."""
    for path in places(MEMORY_STATS):
        for wrong, text in WRONG_JSON.items():
            yield f"statistics {path[0]} = {wrong}", "statistics", as_json(replaced(MEMORY_STATS, path, PLACE), text)
    for wrong, text in WRONG_JSON.items():
        yield f"statistics all = {wrong}", "statistics", as_json(dict.fromkeys(MEMORY_STATS, PLACE), text)


def wrong_texts() -> Iterator[tuple[str, str, bytes]]:
    """Texts with another word in the place of each number and unit, and of all of them."""
    for kind, text in TEXTS.items():
        found = list(TOKEN.finditer(text))
        for number, match in enumerate(found):
            for wrong in WRONG_TEXT:
                changed = text[: match.start()] + wrong + text[match.end() :]
                yield f"{kind} {number} {match.group()} = {wrong[:20]!r}", kind, changed.encode("utf-8", "surrogatepass")
        for wrong in WRONG_TEXT:
            numbers = re.sub(r"\d+(?:\.\d+)?", lambda _, wrong=wrong: wrong, text)
            yield f"{kind} all = {wrong[:20]!r}", kind, numbers.encode("utf-8", "surrogatepass")


def everything() -> Iterator[tuple[str, str, bytes]]:
    """Name, kind and bytes of every wrong input."""
    yield from wrong_texts()
    yield from wrong_statistics()
    yield from wrong_snapshots()
    yield from wrong_traces()
