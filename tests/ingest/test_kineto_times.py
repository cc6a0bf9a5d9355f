"""No digit of a time is lost, whatever it counts from."""

from ingest.a_trace import a_bare_list, an_event, minified, read

EPOCH = "1712195495519689"


def at(*texts):
    events = a_bare_list([an_event(number, ts=7_000_000 + number) for number in range(len(texts))])
    for number, text in enumerate(texts):
        events = events.replace(b"%d" % (7_000_000 + number), text)
    return read(events)


def test_microseconds_since_the_epoch_keep_their_nanoseconds():
    trace = at(*(f"{EPOCH}.{fraction:03}".encode() for fraction in (47, 48, 110, 999)))
    assert trace.origin_ns == int(EPOCH) * 1000 + 47
    assert trace.start_ns.tolist() == [0, 1, 63, 952]
    assert trace.is_epoch


def test_fractions_of_different_length_keep_them_too():
    trace = at(f"{EPOCH}.001".encode(), f"{EPOCH}.1".encode(), f"{EPOCH}.25".encode(), EPOCH.encode())
    assert (trace.start_ns + trace.origin_ns - int(EPOCH) * 1000).tolist() == [1, 100, 250, 0]


def test_whole_microseconds_since_the_epoch_are_exact():
    trace = at(b"1623142623460111", b"1623142623460146")
    assert trace.start_ns.tolist() == [0, 35_000]
    assert trace.origin_ns == 1623142623460111_000
    assert trace.is_epoch


def test_times_from_a_zero_of_the_trace_are_nanoseconds():
    trace = at(b"4458676522690.655", b"4458676522847.432")
    assert trace.start_ns.tolist() == [0, 156_777]
    assert not trace.is_epoch


def test_the_base_of_the_trace_makes_it_count_from_the_epoch():
    events = [an_event(0, ts=5.5)]
    trace = read(minified(events, baseTimeNanoseconds=1_751_410_836_000_000_000))
    assert trace.origin_ns == 1_751_410_836_000_005_500
    assert trace.is_epoch


def test_an_event_before_the_first_of_the_file_starts_at_zero():
    trace = at(b"5000", b"1000", b"3000")
    assert trace.start_ns.tolist() == [4_000_000, 0, 2_000_000]
    assert trace.origin_ns == 1_000_000


def test_exponents_are_numbers():
    assert at(b"1e3", b"2.5e3").start_ns.tolist() == [0, 1_500_000]
    exact = at(f"{EPOCH}.5".encode(), b"1.712195495519690e15")
    assert exact.start_ns.tolist() == [0, 500]


def test_times_that_make_no_sense_cost_their_event():
    for text in (b"1e300", b"-1e300", b"1e999999999"):
        trace = at(b"1000", text, b"2000")
        assert trace.event_count == 2
        assert trace.skipped_count == 1


def test_negative_durations_cost_their_event():
    trace = read(minified([an_event(0), an_event(1, dur=-3), an_event(2)]))
    assert trace.event_count == 2
    assert any(gap.endswith("left out: 1") for gap in trace.gaps)
