"""Lengthen a real trace in time without multiplying its steps.

python bench/lengthen_trace.py IN OUT --megabytes 500

Every event is repeated, shifted by whole windows, with identifiers of its own, and its text otherwise
untouched. The ProfilerStep marks are stretched over the whole instead: HolisticTraceAnalysis loops
over all steps for each event, so repeating them would make it look slower than it is, and it drops
events outside the steps, which would make it look faster.
"""

import argparse
import gzip
import json
import re
from pathlib import Path

BORDER = b"\n  },\n  {"
"""Between two events as Kineto writes them."""

IDENTIFIERS = re.compile(rb'"(correlation|External id|external id|id|Ev Idx)": (\d+)')
STARTS = re.compile(rb'"ts": (\d+)((?:\.\d+)?)')
STEP_TIMES = re.compile(rb'"ts": ([\d.]+), "dur": ([\d.]+)')
REPEATED = re.compile(rb'"ph": "[Xisf]"')
"""Events with a place in time; metadata is written once."""

GAP_MICROSECONDS = 1000
"""Between one repetition and the next."""


def main() -> None:
    """Write the lengthened trace, plain."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("source", type=Path)
    options.add_argument("target", type=Path)
    options.add_argument("--megabytes", type=int, required=True)
    chosen = options.parse_args()
    text = chosen.source.read_bytes()
    lengthen(
        gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text,
        chosen.target,
        chosen.megabytes * 10**6,
    )


def lengthen(text: bytes, target: Path, size_bytes: int) -> None:
    """Write `text` repeated until it is about `size_bytes` long.

    Args:
        text: a trace in Kineto's own layout.
        target: the file to write.
        size_bytes: how long it should become; it becomes longer by less than one repetition.

    Raises:
        SystemExit: `text` is not laid out as Kineto writes it.
    """
    start = text.index(b'"traceEvents"')
    start = text.index(b"{", start)
    end = text.rindex(b"\n  }\n")
    events = text[start + 1 : end].split(BORDER)
    if len(events) != len(json.loads(text)["traceEvents"]):
        raise SystemExit("the trace is not in Kineto's own layout")
    steps = [event for event in events if b'"ProfilerStep#' in event]
    once = [event for event in events if not REPEATED.search(event)]
    singular = set(map(id, steps)) | set(map(id, once)) | {id(event) for event in events if b'"cat": "Trace"' in event}
    repeated = [event for event in events if id(event) not in singular]

    times = [int(found[1]) for event in repeated if (found := STARTS.search(event))]
    first, last = min(times), max(times)
    window = last - first + GAP_MICROSECONDS
    largest = 1 + max(int(found[2]) for event in repeated for found in IDENTIFIERS.finditer(event))
    repetitions = max(1, round(size_bytes / len(text)))
    with target.open("wb") as out:
        out.write(text[: start + 1])
        out.write(BORDER.join([*once, *(_stretched(event, first, repetitions) for event in steps)]))
        for number in range(repetitions):
            moved = [_moved(event, number * window, number * largest) for event in repeated]
            out.write(BORDER + BORDER.join(moved))
        out.write(text[end:])


def _stretched(event: bytes, first: int, factor: int) -> bytes:
    def times(found: re.Match[bytes]) -> bytes:
        start = first + (float(found[1]) - first) * factor
        return b'"ts": %d, "dur": %d' % (start, float(found[2]) * factor)

    return STEP_TIMES.sub(times, event, count=1)


def _moved(event: bytes, microseconds: int, identifiers: int) -> bytes:
    event = STARTS.sub(lambda found: b'"ts": %d%s' % (int(found[1]) + microseconds, found[2]), event, count=1)
    return IDENTIFIERS.sub(lambda found: b'"%s": %d' % (found[1], int(found[2]) + identifiers), event)


if __name__ == "__main__":
    main()
