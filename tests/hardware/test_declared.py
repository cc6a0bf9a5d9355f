import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.hardware.declared import declared_device
from advisor.model.errors import WrongUsage


def test_numbers_make_a_device():
    device = declared_device("500TFLOPS,2TB/s,80GB")
    assert device.ridge_point("bf16") == device.ridge_point("fp16") == 250
    assert device.memory_bytes == 80 * 1024**3
    assert "fp8" not in device.dense_peaks


def test_a_peak_can_name_its_precision():
    device = declared_device("500 TFLOP/s, fp8=1PFLOPS, 1500GB/s")
    assert device.dense_peaks["fp8"].value == 1e15
    assert device.dense_peaks["bf16"].value == 5e14


@pytest.mark.parametrize(
    "text",
    [
        "500TFLOPS",
        "2TB/s",
        "500TFLOPS,2TB",
        "0TFLOPS,2TB/s",
        "500TFLOPS,0TB/s",
        "fp9=5TFLOPS,2TB/s",
        ",",
        "1e400TFLOPS,2TB/s",
    ],
)
def test_numbers_that_do_not_make_a_device_are_refused(text):
    with pytest.raises(WrongUsage):
        declared_device(text)


@given(st.text(max_size=60))
def test_any_text_is_a_device_or_the_one_error(text):
    try:
        device = declared_device(text)
    except WrongUsage:
        return
    assert device.bandwidth is not None
    assert device.bandwidth.value > 0
