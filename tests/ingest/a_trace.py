"""Traces as profilers write them: the same events in every layout that occurs."""

import gzip
import io
import json

import zstandard

from advisor.ingest.kineto import read_kineto
from advisor.ingest.kineto_slices import TraceLimits

TINY_SLICES = TraceLimits(slice_bytes=400)
"""About two events a slice, so that a short trace has as many borders as a long one."""


def an_event(number=0, **changes):
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"aten::op{number % 7}",
        "pid": 100,
        "tid": 101,
        "ts": 1000 + 10 * number,
        "dur": 5,
        "args": {"External id": number, "Input Dims": [[number % 3, 4], []], "Input type": ["float", "Scalar"]},
    }
    return {key: value for key, value in (event | changes).items() if value is not None}


def a_kernel(number=0, **changes):
    arguments = {"device": 0, "stream": 7, "correlation": number, "External id": number, "bytes": 64}
    return an_event(number, cat="kernel", name="gemm", pid=0, tid=7, args=arguments) | changes


def a_flow(number=0):
    return {"ph": "s", "id": number, "pid": 100, "tid": 101, "ts": 1000 + 10 * number, "cat": "ac2g", "name": "ac2g"}


def a_call(number=0, **changes):
    return an_event(number, cat="cuda_runtime", name="cudaLaunchKernel", args={"correlation": number}) | changes


def some_events(count=60):
    events = [a_call()]
    for number in range(1, count):
        events.append(an_event(number) if number % 3 else a_kernel(number))
        events.append(a_flow(number))
    return events


def in_kinetos_own_layout(events, **keys):
    lines = ["{", *(f'  "{key}": {json.dumps(value)},' for key, value in keys.items()), '  "traceEvents": [']
    texts = []
    for event in events:
        arguments = event.get("args")
        head = json.dumps({key: value for key, value in event.items() if key != "args"})[1:-1]
        tail = f',\n    "args": {{\n      {json.dumps(arguments)[1:-1]}\n    }}' if arguments is not None else ""
        texts.append(f"  {{\n    {head}{tail}\n  }}")
    return ("\n".join(lines) + "\n" + ",\n".join(texts) + '\n  ],\n  "traceName": "trace.json"\n}\n').encode()


def minified(events, **keys):
    return json.dumps({**keys, "traceEvents": events}, separators=(",", ":")).encode()


def on_one_line(events, **keys):
    return json.dumps({**keys, "traceEvents": events, "traceName": "trace.json"}).encode()


def indented(events, **keys):
    return json.dumps({**keys, "traceEvents": events, "traceName": "trace.json"}, indent=4).encode()


def with_keys_behind(events, **keys):
    return json.dumps({"traceEvents": events, "stackFrames": [{"a": {}}, {"b": {}}], **keys}, indent=2).encode()


def a_bare_list(events, **_):
    return b"[\n\n  " + b",\n  ".join(json.dumps(event).encode() for event in events) + b"\n]"


def a_minified_list(events, **_):
    return json.dumps(events, separators=(",", ":")).encode()


LAYOUTS = (in_kinetos_own_layout, minified, on_one_line, indented, with_keys_behind, a_bare_list, a_minified_list)

PACKINGS = (bytes, gzip.compress, zstandard.compress)


class Dribble(io.BytesIO):
    """A stream that gives less than is asked for, as pipes do."""

    def read(self, size=-1):
        return super().read(min(size, 37) if size and size > 0 else size)

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:37])


def read(data, *, limits=TINY_SLICES, stream=io.BytesIO):
    return read_kineto(stream(data), "trace.json", limits=limits)


def rows_of(trace):
    """What a trace holds, for comparison with the events that it was made of."""
    return [
        (trace.name_of(row), int(trace.start_ns[row]) + trace.origin_ns, int(trace.duration_ns[row])) for row in range(trace.event_count)
    ]


def rows_expected(events):
    return [(event["name"], event["ts"] * 1000, event["dur"] * 1000) for event in events if event["ph"] == "X"]
