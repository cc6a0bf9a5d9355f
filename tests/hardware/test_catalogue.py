import time

import pytest

from advisor.hardware.catalogue import all_devices, device_names, look_up, require
from advisor.model.errors import WrongUsage


def test_a_runtime_name_finds_its_card():
    device = look_up("NVIDIA A100-SXM4-80GB")
    assert device is not None
    assert device.name == "A100 SXM4 80GB"
    assert device.matched_name == "NVIDIA A100-SXM4-80GB"
    assert device.bandwidth is not None
    assert device.bandwidth.value == 2039e9


@pytest.mark.parametrize(
    "name",
    [
        "A10",  # a short name is no runtime name
        "NVIDIA A100",
        "NVIDIA H100",
        "nvidia a10",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA A100-PG509-200",
        "AMD Radeon Graphics",
        "",
        'NVIDIA "H100"',
        "NVIDIA\n[[device]]",
    ],
)
def test_a_name_that_is_not_exactly_a_runtime_name_finds_nothing(name):
    assert look_up(name) is None


@pytest.mark.parametrize(
    ("short", "longer"),
    [("NVIDIA A10", "NVIDIA A10G"), ("NVIDIA L4", "NVIDIA L40S"), ("NVIDIA H20", "NVIDIA H200")],
)
def test_cards_whose_names_begin_alike_are_different_cards(short, longer):
    one, other = look_up(short), look_up(longer)
    assert one is not None
    assert other is not None
    assert one.name != other.name
    assert one.bandwidth != other.bandwidth or one.dense_peaks != other.dense_peaks


def test_h100_is_the_sxm_card_and_the_answer_says_so():
    device = require("H100")
    assert device.name == "H100 SXM5 80GB"
    assert "PCIe" in device.gaps[0]


def test_a_precise_short_name_leaves_no_gap():
    assert require("h100-sxm").gaps == ()
    assert require("H100 PCIe").name == "H100 PCIe 80GB"


@pytest.mark.parametrize("name", ["A100", "V100", "GH200", "RTX 9999", "abc", "\x1b[31m", "x" * 10_000])
def test_an_ambiguous_or_unknown_name_is_an_error_and_never_a_default(name):
    with pytest.raises(WrongUsage) as caught:
        require(name)
    assert len(str(caught.value)) < 400


def test_an_error_lists_near_names():
    with pytest.raises(WrongUsage, match="a100-pcie-40gb"):
        require("A100")


def test_a_die_of_the_mi250x_is_half_of_the_module():
    device = look_up("AMD Instinct MI250X")
    assert device is not None
    assert device.dense_peaks["bf16"].value == 191.5e12
    assert device.memory_bytes == 64 * 1024**3
    assert device.bandwidth is not None
    assert device.bandwidth.value == 1638.5e9


def test_no_short_name_and_no_runtime_name_stands_twice():
    names = device_names()
    assert len(names) == len(set(names))
    for name in names:
        assert require(name).dense_peaks


def test_every_figure_has_a_source():
    for device in all_devices():
        figures = [*device.dense_peaks.values(), *device.measured_peaks.values(), device.bandwidth]
        assert all(figure and figure.source and figure.value > 0 for figure in figures), device.name


def test_recalled_and_computed_rows_are_not_verified():
    for name in (
        "NVIDIA A30",
        "NVIDIA B100",
        "NVIDIA GeForce RTX 3090",
        "NVIDIA GeForce RTX 2080 Ti",
    ):
        device = look_up(name)
        assert device is not None
        assert not any(figure.verified for figure in device.dense_peaks.values())
    t4 = look_up("Tesla T4")
    assert t4 is not None
    assert t4.bandwidth is not None
    assert not t4.bandwidth.verified
    assert t4.dense_peaks["fp16"].verified


def test_no_bf16_peak_is_a_sparse_figure():
    for device in all_devices():
        bf16 = device.dense_peaks.get("bf16")
        if bf16 and "H" in device.name[:2]:
            assert bf16.value / 1e12 < 1000
        measured = device.measured_peaks.get("bf16")
        if bf16 and measured:
            assert measured.value < bf16.value
    ada = look_up("NVIDIA L40S")
    assert ada is not None
    assert ada.dense_peaks["bf16"].value == 362.05e12


def test_cards_without_bf16_have_no_bf16_peak():
    for name in ("Tesla T4", "Tesla V100-SXM2-16GB", "NVIDIA GeForce RTX 2080 Ti"):
        device = look_up(name)
        assert device is not None
        assert "bf16" not in device.dense_peaks
        assert device.ridge_point("bf16") is None


def test_a_look_up_takes_under_twenty_milliseconds():
    look_up("NVIDIA H200")
    started = time.perf_counter()
    look_up("AMD Instinct MI355X")
    look_up("no such card")
    assert time.perf_counter() - started < 0.02


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB"),
        ("A100-SXM-80GB", "NVIDIA A100-SXM4-80GB"),
        ("GeForce RTX 3090", "NVIDIA GeForce RTX 3090"),
        ("GeForce RTX 2080 Ti", "NVIDIA GeForce RTX 2080 Ti"),
        ("RTX A6000", "NVIDIA RTX A6000"),
        ("AMD Instinct MI300X VF", "AMD Instinct MI300X"),
        ("AMD Instinct MI325X VF", "AMD Instinct MI325X"),
    ],
)
def test_old_drivers_and_virtual_functions_name_the_same_device(other, name):
    one, same = look_up(other), look_up(name)
    assert one is not None
    assert same is not None
    assert one.name == same.name
    assert one.matched_name == other


@pytest.mark.parametrize("name", ["RTX 3090", "GeForce RTX 3090 Ti", "AMD Instinct MI300A", "AMD Instinct MI250X / MI250", "A100-SXM4"])
def test_names_of_other_cards_and_of_two_cards_stay_unknown(name):
    assert look_up(name) is None


def test_a_plain_figure_that_is_recalled_says_so():
    assert require("gh200-96gb").unverified == ("memory_bytes",)
    assert require("h100-nvl").unverified == ("sm_count",)
    assert require("mi350x").unverified == ("sm_count",)
    assert require("h100-sxm").unverified == ()
