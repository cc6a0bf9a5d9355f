import pytest

from advisor.analysis.driver_requests import MIB, asked_of_driver


@pytest.mark.parametrize(
    ("tensor", "segment"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 1, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
    ],
)
def test_a_tensor_is_asked_of_the_driver_as_a_segment(tensor, segment):
    assert asked_of_driver(tensor) == segment
