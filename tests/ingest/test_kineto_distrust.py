"""Whatever the bytes, a trace or the one error; what is sound is kept, what is not is counted."""

import gzip
import io
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest.a_trace import (
    LAYOUTS,
    TINY_SLICES,
    a_bare_list,
    a_kernel,
    an_event,
    in_kinetos_own_layout,
    minified,
    on_one_line,
    read,
    rows_expected,
    rows_of,
    some_events,
)

from advisor.ingest.kineto import read_kineto
from advisor.ingest.kineto_slices import TraceLimits
from advisor.model.errors import UnreadableInput
from advisor.model.trace import KinetoTrace

EXAMPLES = 300
WHOLE = some_events(40)


def read_or_refuse(data, limits=TINY_SLICES):
    try:
        return read_kineto(io.BytesIO(data), "trace.json", limits=limits)
    except UnreadableInput:
        return None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("percent", range(1, 100))
def test_a_file_cut_anywhere_keeps_its_whole_events_and_says_so(layout, percent):
    data = layout(WHOLE)
    cut = data[: len(data) * percent // 100]
    trace = read_or_refuse(cut)
    if trace is None:
        assert percent < 10
        return
    expected = rows_expected(WHOLE)
    assert rows_of(trace) == expected[: trace.event_count]
    if trace.event_count < len(expected):
        assert trace.is_truncated
        assert any("ends early" in gap for gap in trace.gaps)
    whole_events = cut.count(b'"ph": "X"') + cut.count(b'"ph":"X"')
    assert trace.event_count >= whole_events - 1


@pytest.mark.parametrize("percent", range(5, 100, 5))
def test_a_compressed_file_cut_anywhere_keeps_what_could_be_decompressed(percent):
    events = some_events(2000)
    packed = gzip.compress(minified(events))
    trace = read_or_refuse(packed[: len(packed) * percent // 100], TraceLimits())
    assert trace is None or (trace.is_truncated and rows_of(trace) == rows_expected(events)[: trace.event_count])
    assert trace is not None or percent < 50


@pytest.mark.parametrize(
    "value",
    [b"NaN", b"-Infinity", b"inf", b"-nan", b"null", b"true", b"[]", b"{}", b'"text"', b"99999999999999999999999", b"1e999", b"-1"],
)
@pytest.mark.parametrize("key", ["ts", "dur", "name", "cat", "pid", "tid", "ph", "args"])
def test_a_wrong_value_in_any_field_costs_at_most_its_event(key, value):
    marked = an_event(1, **{key: 424242})
    data = minified([an_event(0), marked, an_event(2)]).replace(b"424242", value)
    trace = read_or_refuse(data)
    assert trace is not None
    assert {"aten::op0", "aten::op2"} <= {trace.name_of(row) for row in range(trace.event_count)}


@pytest.mark.parametrize(
    "key", ["correlation", "External id", "device", "stream", "bytes", "Input Dims", "Sequence number", "dtype", "new"]
)
@pytest.mark.parametrize("value", [b"NaN", b"null", b"true", b'"x"', b"[1]", b"{}", b"1.5", b"18446744073709551615", b"1" * 400, b"-5"])
def test_a_wrong_value_in_any_argument_costs_only_itself(key, value):
    marked = a_kernel(1, args={"device": 0, "stream": 7, "correlation": 1, key: 424242})
    data = minified([an_event(0), marked, an_event(2)]).replace(b"424242", value)
    trace = read_or_refuse(data)
    assert trace is not None
    assert trace.event_count == 3


def test_values_taken_as_unknown_are_counted():
    trace = read(minified([a_kernel(1, args={"correlation": 2**64 - 1, "device": 0, "stream": 1})]))
    assert trace.correlation.tolist() == [-1]
    assert any(gap.endswith("taken as unknown: 1") for gap in trace.gaps)


def test_elements_that_are_no_events_are_counted():
    data = json.dumps([1, "x", None, [], {}, {"ph": 3}, an_event(1)]).encode()
    trace = read(data)
    assert trace.event_count == 1
    assert trace.skipped_count == 6


def test_lone_surrogates_and_broken_text_become_question_marks():
    data = minified([an_event(0, name="NAME"), an_event(1)])
    for text in (rb"a\ud800b", b"a\xff\xfeb"):
        trace = read(data.replace(b"NAME", text))
        assert trace.event_count == 2
        trace.names[0].encode()


def test_an_event_torn_in_the_middle_costs_only_itself():
    events = some_events(30)
    data = in_kinetos_own_layout(events).replace(b'"name": "aten::op4"', b'"name": aten::op4"', 1)
    trace = read(data)
    expected = rows_expected(events)
    assert trace.event_count >= len(expected) - 3
    assert set(rows_of(trace)) <= set(expected)
    assert trace.skipped_count or trace.is_truncated


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no JSON"),
        (b"   ", "no JSON"),
        (b"hello", "no JSON"),
        (b"{}", "without"),
        (b'{"a": 1}', "without"),
        (b'{"a": 1', "ends before"),
        (b'{"traceEvents": null}', "no list"),
        (b'{"traceEvents": {}}', "no list"),
        (b"[]", "no event"),
        (b"[1, 2, 3]", "no event"),
        (b'{"traceEvents": []}', "no event"),
        (b'{"schema": "1.0.2-chakra.0.0.4", "nodes": []}', "Chakra"),
        (b'{"schema": "1.0.1", "nodes": [{"name": "[pytorch|profiler|execution_graph|thread]"}]}', "Chakra"),
    ],
)
def test_what_is_no_trace_is_named(text, words):
    with pytest.raises(UnreadableInput, match=words):
        read(text)


HOSTILE = {
    "brackets": b"[" * 3_000_000,
    "brackets as events": b'{"traceEvents": ' + b"[" * 3_000_000,
    "brackets in an argument": b'[{"ph":"X","ts":1,"name":"a","args":{"x":' + b"[" * 3_000_000,
    "braces in a header": b'{"a":' * 1_000_000,
    "empty events": b"[" + b"{}," * 5_000_000 + b"{}]",
    "numbers": b"[" + b"1," * 5_000_000 + b"1]",
    "spaces": b"[" + b" " * 40_000_000,
    "spaces in a header": b"{" + b" " * 40_000_000,
    "an endless text": b'[{"ph":"X","ts":1,"name":"' + b"a" * 40_000_000,
    "quotes": b'[{"ph":"X"' + b'"' * 5_000_000,
    "backslashes": b'[{"ph":"X","name":"' + b"\\" * 5_000_001,
    "borders inside a text": b'[{"ph":"X","ts":1,"name":"' + b'},{\\"' * 2_000_000 + b'"}]',
    "borders of nothing": b"[" + b'},{"' * 3_000_000,
    "keys of events in a text": b'{"a":"' + b'\\"traceEvents\\":[' * 500_000 + b'","b":1}',
    "keys of events in parts": b'{"a":[' + b'{"traceEvents":[]},' * 500_000 + b"0]}",
    "a large number": b'[{"ph":"X","ts":' + b"9" * 3_000_000 + b',"name":"a"}]',
    "names without end": b"[" + b",".join(b'{"ph":"X","ts":1,"name":"%d"}' % n for n in range(400_000)) + b"]",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_inputs_are_answered_soon(name):
    begun = time.process_time()
    read_or_refuse(HOSTILE[name], TraceLimits())
    assert time.process_time() - begun < 6  # 2 s on a machine of its own


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(st.binary(max_size=2000))
def test_random_bytes_are_a_trace_or_the_one_error(data):
    read_or_refuse(data)


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(st.sampled_from(LAYOUTS), st.data())
def test_bytes_changed_in_a_real_layout_are_a_trace_or_the_one_error(layout, data):
    text = bytearray(layout(some_events(12)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        change = data.draw(st.sampled_from(["set", "cut", "double"]))
        if change == "set":
            text[at] = data.draw(st.sampled_from(b'{}[]",:\\ 0-eN\xff\n'))
        elif change == "cut":
            del text[at : at + data.draw(st.integers(1, 60))]
        else:
            text[at:at] = text[max(0, at - 40) : at]
        if not text:
            return
    read_or_refuse(bytes(text))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"]), ANYTHING), max_size=6))
def test_events_of_any_types_never_take_a_sound_one_along(wrong):
    mixed = [an_event(0)]
    for event in wrong:
        mixed += [event, an_event(0)]
    trace = read_or_refuse(json.dumps(mixed).encode())
    assert isinstance(trace, KinetoTrace)
    assert rows_of(trace).count(rows_expected([an_event(0)])[0]) >= 1 + len(wrong)


@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "INFO", "with_stack", "x"]), ANYTHING)
)
def test_keys_of_any_types_never_cost_the_events(keys):
    for data in (on_one_line([an_event(0)], **keys), json.dumps({"traceEvents": [an_event(0)], **keys}).encode()):
        trace = read_or_refuse(data)
        assert trace is not None
        assert trace.event_count == 1


def test_the_same_bytes_give_the_same_trace():
    data = a_bare_list(WHOLE)
    first, second = read(data), read(data)
    assert first == second
    assert hash(first) == hash(second)
    assert first != read(a_bare_list(WHOLE[:-2]))
