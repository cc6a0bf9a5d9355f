"""How sentences print numbers."""

import pytest

from advisor.rules.wording import bytes_text, count_text, parameters_text, ratio_text, seconds_text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (546 * 1024**2, "546 MiB"),
        (int(4.19 * 1024**3), "4.19 GiB"),
        (80 * 1024**3, "80 GiB"),
        (int(287.98 * 1024**3), "287.98 GiB"),
        (2 * 1024**4, "2 TiB"),
        (-(1024**2), "-1 MiB"),
    ],
)
def test_bytes_are_printed_in_binary_units(size_bytes: int, text: str) -> None:
    assert bytes_text(size_bytes) == text


@pytest.mark.parametrize(
    ("duration_seconds", "text"),
    [(0, "0 s"), (2e-9, "2 ns"), (840e-6, "840 µs"), (0.0123, "12.3 ms"), (1.25, "1.25 s"), (186, "3.1 min")],
)
def test_durations_take_the_unit_that_suits_them(duration_seconds: float, text: str) -> None:
    assert seconds_text(duration_seconds) == text


@pytest.mark.parametrize(("ratio", "text"), [(0, "0%"), (0.043, "4.3%"), (0.0996, "10%"), (0.43, "43%"), (1, "100%")])
def test_ratios_are_percentages(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text


def test_counts_agree_with_their_noun() -> None:
    assert count_text(1, "rank") == "1 rank"
    assert count_text(12_000, "call") == "12,000 calls"
    assert count_text(2, "copy", "copies") == "2 copies"


def test_parameters_are_counted_in_billions() -> None:
    assert parameters_text(8.03e9) == "8.03B"
    assert parameters_text(335e6) == "335M"
