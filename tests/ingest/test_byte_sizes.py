from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.ingest.byte_sizes import ByteSize, byte_size, first_size


@pytest.mark.parametrize(
    ("number", "unit", "size", "resolution"),
    [
        ("0", "bytes", 0, 0),
        ("7406166528", "bytes", 7_406_166_528, 0),
        ("9,813,289,240", "bytes", 9_813_289_240, 0),
        ("512", "B", 512, 0),
        ("23.65", "GiB", round(Decimal("23.65") * 2**30), 5_368_710),
        ("23.6", "GB", round(Decimal("23.6") * 2**30), 53_687_092),
        ("384.00", "KiB", 393_216, 6),
        ("16", "MiB", 16 * 2**20, 2**19),
        ("18.34", "G", round(Decimal("18.34") * 2**30), 5_368_710),
        ("8", "kB", 8192, 512),
    ],
)
def test_a_size_is_its_number_times_a_power_of_1024(number: str, unit: str, size: int, resolution: int) -> None:
    assert byte_size(number, unit) == ByteSize(size, resolution)


@pytest.mark.parametrize(
    ("number", "unit"),
    [("17179869184.00", "GiB"), ("4", "EiB"), ("1", "lightyears"), ("1.2.3", "GiB"), ("", "GiB")],
)
def test_what_is_no_size_is_none(number: str, unit: str) -> None:
    assert byte_size(number, unit) is None


@given(st.integers(0, 2**50))
def test_a_size_printed_with_two_digits_is_read_within_its_resolution(size: int) -> None:
    read = first_size(f"about {size / 2**30:.2f} GiB of it")

    assert read is not None
    assert abs(read.size_bytes - size) <= read.resolution_bytes


def test_a_unit_inside_a_word_is_none() -> None:
    assert first_size("12 GiBbon") is None
