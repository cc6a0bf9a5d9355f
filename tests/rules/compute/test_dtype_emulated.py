import pytest

from advisor.rules.compute.dtype_emulated import dtype_emulated
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_ceiling, a_log_that_mentions, a_mix


def check(capability="7.0", name="Tesla V100-SXM2-16GB", seconds=0.5, ceilings=None):
    mix = a_mix(
        capability=capability,
        device_name=name,
        bf16_seconds=seconds,
        bf16_count=100,
        device_seconds=1.0,
    )
    return dtype_emulated.check(a_breakdown(), mix, ceilings, None, None)


@pytest.mark.parametrize(
    ("capability", "name", "fires"),
    [
        ("7.0", "Tesla V100-SXM2-16GB", True),
        ("7.5", "Tesla T4", True),
        ("8.0", "NVIDIA A100-SXM4-80GB", False),
        ("10.0", "NVIDIA B200", False),
        ("", "AMD Instinct MI300X", False),
        ("", "", False),
    ],
)
def test_only_nvidia_cards_before_ampere_emulate_bf16(capability, name, fires):
    assert (check(capability, name) is not None) is fires


def test_an_amd_card_of_the_catalogue_is_left_alone():
    assert check(ceilings=a_ceiling(vendor="AMD")) is None


@pytest.mark.parametrize(("seconds", "fires"), [(0.049, False), (0.051, True)])
def test_a_stray_conversion_is_no_reason(seconds, fires):
    assert (check(seconds=seconds) is not None) is fires


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("Bfloat16 is only supported on GPUs with compute capability of at least 8.0", True),
        ("Your setup doesn't support bf16/gpu.", True),
        ("using bf16 mixed precision", False),
    ],
)
def test_a_log_must_say_that_the_card_does_not_support_it(text, fires):
    log = a_log_that_mentions("half-precision", text)
    assert (dtype_emulated.check(None, None, None, log, None) is not None) is fires
