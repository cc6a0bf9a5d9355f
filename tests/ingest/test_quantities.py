import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.ingest import quantities


@pytest.mark.parametrize(
    ("printed", "size_bytes"),
    [
        ("1062 MB", 1062 * 1024**2),
        ("32019 MiB", 32019 * 1024**2),
        ("4.00 Kb", 4096),
        ("512 b", 512),
        ("-24 KB", -24 * 1024),
        ("14.88 Gb", round(14.88 * 1024**3)),
    ],
)
def test_memory_is_counted_in_powers_of_1024_whatever_its_unit_is_called(printed, size_bytes):
    assert quantities.size_bytes(printed) == size_bytes


@pytest.mark.parametrize(
    "printed",
    ["N/A", "[N/A]", "[Not Supported]", "", "--", "Requested functionality has been deprecated"],
)
def test_words_for_no_value_are_known(printed):
    assert quantities.is_absent(printed)


@pytest.mark.parametrize("printed", ["ERR!", "[Unknown Error]", "0", "GPU is lost"])
def test_words_for_trouble_are_no_absence(printed):
    assert not quantities.is_absent(printed)


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [("297.096ms", 0.297096), ("2.030s", 2.03), ("167.003us", 0.000167003), ("1.365ms", 0.001365)],
)
def test_a_time_is_the_nearest_float_to_what_was_printed(printed, seconds):
    assert quantities.duration_seconds(printed) == seconds


@pytest.mark.parametrize("printed", ["12", "3 h", "nan s", "inf ms", "1e999s", "ms", ""])
def test_a_time_without_number_or_unit_is_unknown(printed):
    assert quantities.duration_seconds(printed) is None


@pytest.mark.parametrize(("printed", "lanes"), [("16x", 16), ("x8", 8), ("4", 4), ("3x", None), ("-1", None)])
def test_a_link_has_only_widths_that_exist(printed, lanes):
    assert quantities.link_width(printed) == lanes


@pytest.mark.parametrize(("printed", "ratio"), [("0 %", 0.0), ("100 %", 1.0), ("101 %", None), ("-1 %", None)])
def test_a_utilization_lies_between_nothing_and_all(printed, ratio):
    assert quantities.percent_ratio(printed) == ratio


@given(st.text(max_size=60))
def test_no_text_makes_a_quantity_that_is_not_finite(text):
    for parse in (
        quantities.size_bytes,
        quantities.memory_bytes,
        quantities.duration_seconds,
        quantities.count,
        quantities.percent_ratio,
        quantities.celsius,
        quantities.watts,
        quantities.megahertz,
        quantities.link_width,
        quantities.link_generation,
    ):
        value = parse(text)
        assert value is None or math.isfinite(value)


@given(st.integers(min_value=0, max_value=2**40))
def test_whole_bytes_come_back_exactly(size_bytes):
    assert quantities.size_bytes(f"{size_bytes} B") == size_bytes


def test_a_number_of_a_million_digits_is_no_quantity():
    assert quantities.count("9" * 1_000_000) is None
    assert quantities.size_bytes("9" * 1_000_000 + " MiB") is None


@pytest.mark.parametrize("printed", ["1e308 MiB", "-1e308 GiB", "1e308 PB", "99999999999999999999 PiB"])
def test_a_size_that_its_unit_makes_infinite_is_none(printed):
    assert quantities.size_bytes(printed) is None
    assert quantities.memory_bytes(printed) is None
