"""Real traces of all ages against Python's own JSON reader, event by event."""

import gzip
import io
import json

import pytest
from corpus_location import corpus
from ingest.a_trace import in_kinetos_own_layout, minified

from advisor.ingest.kineto import read_kineto
from advisor.ingest.kineto_slices import TraceLimits
from advisor.model.errors import UnreadableInput

TRACES = (
    "pytorch+kineto/769c3eb__*",
    "pytorch+kineto/2d19c63__*",
    "pytorch+kineto/after_fix*",
    "facebookresearch+HolisticTraceAnalysis/tests__data__amd_trace*",
    "facebookresearch+HolisticTraceAnalysis/*nccl_parser_config*",
    "facebookresearch+HolisticTraceAnalysis/*trace_file_list*",
    "facebookresearch+HolisticTraceAnalysis/*mtia_inference*",
    "facebookresearch+HolisticTraceAnalysis/*large_integer*",
    "AMD-AGI+TraceLens/*b200*",
    "AMD-AGI+TraceLens/*mi300__gaunernst*",
    "AMD-AGI+TraceLens/*sglang_decode*",
    "CodingPlatelets+SwitchTransformers/05c1085__trace.json",
    "Gabriellanaro+dtu_mlops/trace.json",
)
"""One of each layout, age, vendor and tool."""


def text_of(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def events_of(text):
    document = json.loads(text)
    events = document if isinstance(document, list) else document["traceEvents"]
    return [event for event in events if event["ph"] == "X"]


def matching(pattern):
    found = sorted((corpus() / "traces").glob(pattern))
    return found[:1]


@pytest.mark.parametrize("pattern", TRACES)
def test_a_real_trace_holds_what_its_json_holds(pattern):
    for path in matching(pattern):
        text = text_of(path)
        expected = events_of(text)
        trace = read_kineto(io.BytesIO(text), path.name)
        assert [trace.names[code] for code in trace.name] == [event["name"] for event in expected]
        first = min(event["ts"] for event in expected)
        arguments = [event.get("args") or {} for event in expected]
        for row, event in enumerate(expected):
            # A float of microseconds holds a trace's own times to the nanosecond, and no better.
            assert abs(trace.start_ns[row] - (event["ts"] - first) * 1000) <= 1
            assert abs(trace.duration_ns[row] - event["dur"] * 1000) <= 0.5
            assert trace.thread_of(row).tid == event["tid"]
        assert trace.correlation.tolist() == [
            item.get("correlation", -1) if event["cat"] != "mtia_ccp_events" else -1
            for item, event in zip(arguments, expected, strict=True)
        ]


@pytest.mark.parametrize("pattern", ["facebookresearch+HolisticTraceAnalysis/*nccl_parser_config*", "AMD-AGI+TraceLens/*mi300__gaunernst*"])
def test_the_layout_and_the_slices_of_a_real_trace_change_nothing(pattern):
    (path,) = matching(pattern)
    text = text_of(path)
    whole = read_kineto(io.BytesIO(text), "trace")
    document = json.loads(text)
    events = document.pop("traceEvents")
    for other in (
        minified(events, **document),
        in_kinetos_own_layout(events, **document),
        json.dumps(document | {"traceEvents": events}, indent=1).encode(),
    ):
        for slice_bytes in (8 * 1024, 1024**2):
            assert read_kineto(io.BytesIO(other), "trace", limits=TraceLimits(slice_bytes=slice_bytes)) == whole


def test_execution_traces_are_refused_by_name():
    for path in sorted((corpus() / "traces").glob("facebookresearch+param/*_et.json.gz")):
        with path.open("rb") as stream, pytest.raises(UnreadableInput, match="Chakra"):
            read_kineto(stream, path.name)


def test_timelines_of_other_tools_are_read_and_said_to_be_no_pytorch():
    for path in sorted((corpus() / "traces").glob("ByteDance*/data__timeline-*.gz")):
        with path.open("rb") as stream:
            trace = read_kineto(stream, path.name)
        assert any("no PyTorch events" in gap for gap in trace.gaps)
        assert not trace.has_device_activity
