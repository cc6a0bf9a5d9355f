"""Every layout, age and packing gives the same trace, slice by slice."""

import json

import pytest
from ingest.a_trace import (
    LAYOUTS,
    PACKINGS,
    TINY_SLICES,
    Dribble,
    a_bare_list,
    a_flow,
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

from advisor.ingest.kineto_slices import TraceLimits
from advisor.model.trace import Category, TracedDevice

EVERY_LETTER = "BEbeXisftMCnSTpFPNODVvRIc(),"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("packing", PACKINGS)
def test_every_layout_and_packing_gives_the_same_rows(layout, packing):
    events = some_events()
    trace = read(packing(layout(events)))
    assert rows_of(trace) == rows_expected(events)
    assert trace.gaps == ()
    assert not trace.is_truncated


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("slice_bytes", [1, 7, 150, 333, 10_000])
def test_the_size_of_the_slices_changes_nothing(layout, slice_bytes):
    data = layout(some_events())
    limits = TraceLimits(slice_bytes=slice_bytes)
    assert read(data, limits=limits) == read(data, limits=TraceLimits())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stream_that_gives_little_at_a_time_doubles_no_event(layout):
    events = some_events()
    assert rows_of(read(layout(events), stream=Dribble)) == rows_expected(events)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_objects_inside_arguments_are_not_taken_for_borders(layout):
    nested = {"External id": 4, "frames": [{"a": 1}, {"b": {"c": 2}}, {"ph": "X"}], "note": '},{"ph":"X"'}
    events = [an_event(number, args=nested) for number in range(40)]
    assert rows_of(read(layout(events))) == rows_expected(events)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_quotes_and_backslashes_in_names_are_not_taken_for_the_end_of_a_text(layout):
    names = ['a"},{"b', "tail\\", 'both\\"', "[{", "]}", "\n  },\n  {", "naïve × 名"]
    events = [an_event(number, name=name) for number, name in enumerate(names * 5)]
    assert rows_of(read(layout(events))) == rows_expected(events)


def test_an_event_longer_than_a_slice_is_read():
    events = [an_event(0), an_event(1, args={"Call stack": "x" * 5000}), an_event(2)]
    assert rows_of(read(on_one_line(events))) == rows_expected(events)


def test_every_letter_of_the_format_is_known_and_pairs_are_counted():
    events = [{**an_event(number), "ph": letter} for number, letter in enumerate(EVERY_LETTER)]
    trace = read(minified(events), limits=TraceLimits())
    assert trace.event_count == 1
    assert trace.skipped_count == 0
    pairs = read(minified([an_event(0), *({**an_event(1), "ph": letter} for letter in "BE" * 50)]))
    assert any("told by a beginning and an end" in gap for gap in pairs.gaps)


def test_the_letter_may_stand_anywhere_in_an_event():
    event = an_event(3)
    turned = dict(reversed(event.items()))
    assert rows_of(read(minified([event]))) == rows_of(read(minified([turned])))


@pytest.mark.parametrize(
    ("recorded", "category"),
    [
        ("cpu_op", Category.OPERATOR),
        ("Operator", Category.OPERATOR),
        ("user_annotation", Category.ANNOTATION),
        ("python_function", Category.PYTHON),
        ("cuda_runtime", Category.RUNTIME),
        ("Runtime", Category.RUNTIME),
        ("hip_runtime", Category.RUNTIME),
        ("cuda_driver", Category.DRIVER),
        ("kernel", Category.KERNEL),
        ("Kernel", Category.KERNEL),
        ("gpu_memcpy", Category.COPY),
        ("Memcpy", Category.COPY),
        ("gpu_memset", Category.FILL),
        ("Memset", Category.FILL),
        ("gpu_user_annotation", Category.DEVICE_ANNOTATION),
        ("cuda_sync", Category.SYNCHRONIZATION),
        ("mtia_ccp_events", Category.CONTROL),
        ("Trace", Category.SPAN),
        ("something new", Category.OTHER),
    ],
)
def test_categories_of_all_ages_have_one_meaning(recorded, category):
    trace = read(minified([an_event(0, cat=recorded)]))
    assert trace.of_category(category).tolist() == [0]


@pytest.mark.parametrize("name", ["ProfilerStep#3", "enumerate(DataLoader)#_X.__next__", "Optimizer.step#SGD.step"])
def test_annotations_that_old_profilers_wrote_as_operators_are_annotations(name):
    trace = read(minified([an_event(0, cat="Operator", name=name), an_event(1, cat="Operator")]))
    assert trace.category.tolist() == [Category.ANNOTATION, Category.OPERATOR]


def test_arguments_become_columns_and_what_is_missing_is_not_zero():
    trace = read(minified([an_event(5), a_kernel(6), an_event(7, args=None)]))
    assert trace.correlation.tolist() == [-1, 6, -1]
    assert trace.external_id.tolist() == [5, 6, -1]
    assert trace.device.tolist() == [-1, 0, -1]
    assert trace.stream.tolist() == [-1, 7, -1]
    assert trace.moved_bytes.tolist() == [-1, 64, -1]
    assert trace.shapes.tolist() == [0, -1, -1]
    assert trace.shape_texts == ("[[2,4],[]]",)
    assert trace.type_texts == ('["float","Scalar"]',)


def test_old_spellings_of_arguments_are_read():
    operator = an_event(0, cat="Operator", tid="101", args={"Input dims": [[2, 3]], "Input type": [], "External id": 9})
    call = an_event(1, cat="Runtime", tid="101", args={"correlation": 4, "external id": 9})
    kernel = a_kernel(2, cat="Kernel", tid="stream 20", args={"device": 1, "correlation": 4, "external id": 9})
    trace = read(minified([operator, call, kernel]))
    assert trace.shape_texts == ("[[2,3]]",)
    assert trace.type_texts == ()
    assert trace.external_id.tolist() == [9, 9, 9]
    assert trace.correlation.tolist() == [-1, 4, 4]
    assert (trace.device[2], trace.stream[2]) == (1, 20)
    assert trace.thread_of(0).tid == "101"


def test_a_kernel_that_names_no_device_lies_on_that_of_its_row():
    trace = read(minified([a_kernel(0, pid=3, args={}), a_kernel(1, pid="GPU 2", tid="stream 5", args={})]))
    assert trace.device.tolist() == [3, 2]
    assert trace.stream.tolist() == [7, 5]
    unnamed = read(minified([a_kernel(0, pid="somewhere", args={})]))
    assert unnamed.device.tolist() == [0]
    assert any("do not say on which device" in gap for gap in unnamed.gaps)


def test_shapes_are_equal_however_they_are_spaced():
    spaced = json.dumps(an_event(1)).encode()
    dense = json.dumps(an_event(1), separators=(",", ":")).encode()
    trace = read(b"[" + spaced + b"," + dense + b"]")
    assert trace.shapes.tolist() == [0, 0]


def test_what_a_collective_sends_is_elements_times_their_size():
    sent = {"device": 0, "stream": 1, "In msg nelems": 1000, "dtype": "BFloat16"}
    events = [
        a_kernel(0, name="ncclDevKernel_AllReduce_Sum_bf16", args=sent),
        a_kernel(1, name="ncclDevKernel_AllReduce_Sum_x", args={**sent, "dtype": "Mystery"}),
        an_event(2, name="record_param_comms", args={"In msg nelems": 3, "dtype": "Float"}),
    ]
    assert read(minified(events)).moved_bytes.tolist() == [2000, -1, 12]


def test_keys_outside_the_events_are_read_before_and_behind_them():
    keys = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80, "computeMajor": 9, "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "record_shapes": 1,
        "with_stack": 1,
    }
    events = some_events(20)
    for data in (minified(events, **keys), json.dumps({"traceEvents": events, **keys}, indent=1).encode()):
        trace = read(data)
        assert trace.rank == 3
        assert (trace.world_size, trace.backend) == (8, "nccl")
        assert trace.options == {"record_shapes", "with_stack"}
        expected = TracedDevice(index=0, name="NVIDIA H100", total_bytes=80, compute_major=9, sm_count=132)
        assert trace.devices == (expected,)


def test_the_key_of_the_events_inside_a_text_or_part_is_not_taken_for_it():
    keys = {"metadata": {"traceEvents": [{"ph": "X"}], "note": 'see "traceEvents": [ below'}}
    events = some_events(10)
    assert rows_of(read(minified(events, **keys))) == rows_expected(events)


def test_a_damaged_key_outside_the_events_costs_only_itself():
    """On Windows the profiler writes its path with single backslashes."""
    data = in_kinetos_own_layout(some_events(5), distributedInfo={"rank": 2})
    trace = read(data.replace(b'"trace.json"', b'"C:\\Users\\me\\trace.json"'))
    assert trace.rank == 2
    assert trace.event_count == 5
    assert any("could be read in part only" in gap for gap in trace.gaps)


def test_memory_marks_are_columns_of_their_own():
    marks = [
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 1, "tid": 1, "ts": 1010, "args": arguments}
        for name, arguments in (
            ("[memory]", {"Device Type": 1, "Device Id": 0, "Bytes": -512, "Total Allocated": 9, "Total Reserved": 10}),
            ("[memory]", {"Device Type": 0, "Device Id": -1, "Bytes": 8}),
            ("[OutOfMemory]", {"Device Id": 0, "Bytes": 8}),
            ("Iteration Start: PyTorch Profiler", {}),
        )
    ]
    trace = read(minified([an_event(0), *marks]))
    assert trace.memory_device.tolist() == [0, -1]
    assert trace.memory_delta_bytes.tolist() == [-512, 8]
    assert trace.memory_allocated_bytes.tolist() == [9, -1]
    assert trace.memory_time_ns.tolist() == [10_000, 10_000]
    assert trace.out_of_memory_count == 1


def test_columns_cannot_be_changed():
    trace = read(minified([an_event(0)]))
    with pytest.raises(ValueError, match="read-only"):
        trace.start_ns[0] = 1


@pytest.mark.parametrize(
    ("events", "gap"),
    [
        ([an_event(0, cat="forward-compute")], "no PyTorch events"),
        ([an_event(0)], "no device activity"),
        ([an_event(0), an_event(1, cat="cuda_runtime")], "launches and no device activity"),
        ([an_event(0), an_event(1, cat="mtia_ccp_events")], "control events"),
        ([an_event(0), a_kernel(1)], "no launches"),
        ([an_event(0, cat="cuda_runtime"), a_kernel(1)], "no operators"),
    ],
)
def test_what_a_trace_never_held_is_said(events, gap):
    assert any(gap in said for said in read(minified(events)).gaps)


def test_flows_alone_are_no_trace_and_flows_between_are_nothing():
    trace = read(a_bare_list([a_flow(0), an_event(1), a_flow(2)]), limits=TINY_SLICES)
    assert trace.event_count == 1
