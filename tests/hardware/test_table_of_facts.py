"""Every number of the table of facts against the catalogue, read anew: nothing here comes from the script that makes the catalogue."""

import csv
import re
from pathlib import Path

import pytest

from advisor.hardware.catalogue import all_devices, look_up

TABLE = Path(__file__).parents[3] / "shared" / "hardware" / "gpu_catalog.csv"
PEAKS = {
    "fp32": "fp32_vec_tflops",
    "tf32": "tf32_dense_tflops",
    "fp16": "fp16_dense_fp32acc_tflops",
    "bf16": "bf16_dense_tflops",
    "fp8": "fp8_dense_fp32acc_tflops",
    "int8": "int8_dense_tops",
    "fp4": "fp4_dense_tflops",
}
STATED = {
    ("NVIDIA H100 80GB HBM3", "bf16"): 989.0,
    ("NVIDIA H100 80GB HBM3", "fp16"): 989.0,
    ("NVIDIA H200", "bf16"): 989.0,
    ("NVIDIA H200", "fp16"): 989.0,
    ("AMD Instinct MI210", "fp32"): 45.3,
}
"""Peaks that the product states otherwise than the table's cell, on grounds that scripts/catalogue_prose.py gives."""

RECALLED_WORDS = {
    "TDP": ("power",),
    "NVLink": ("link",),
    "IF": ("link",),
    "SM": ("sm_count",),
    "CU": ("sm_count",),
    "cc": ("capability",),
    "memory": ("memory_bytes",),
    "Bandwidth": ("bandwidth",),
    "FP4": ("fp4",),
    "FP64": ("fp64",),
    "FP32": ("fp32",),
    "2516": ("bf16", "fp16"),
    "5033": ("fp8",),
    "10066": ("fp4",),
}
"""What a sentence of the table that says "recalled" is about, and which figures that are."""


def rows():
    """One row a device: a cell "16|32" belongs to the names of its row in their order."""
    if not TABLE.is_file():
        pytest.skip(f"the table of facts is not at {TABLE}")
    for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()):
        names = row["name_match_hint"].split("|")
        for index, name in enumerate(names):
            parts = {key: cell.split("|") for key, cell in row.items()}
            yield name, {key: cells[index] if len(cells) == len(names) else cells[0] for key, cells in parts.items()}


def the_device(name):
    device = look_up(name)
    assert device is not None, name
    return device


def scale_of(name):
    """PyTorch sees each of the two dies of an MI250X as a device."""
    return 0.5 if name == "AMD Instinct MI250X" else 1.0


def test_every_row_is_in_the_catalogue_and_nothing_else_is():
    names = [the_device(name).name for name, _ in rows()]
    assert sorted(names) == sorted(device.name for device in all_devices())


def test_memory_units_bandwidth_link_and_power_are_the_table_s():
    for name, row in rows():
        device, scale = the_device(name), scale_of(name)
        assert device.memory_bytes == float(row["mem_gb"]) * scale * 1024**3, name
        assert device.sm_count == (int(int(row["sm_or_cu"]) * scale) if row["sm_or_cu"] else None), name
        assert device.capability == row["cc_or_gfx"], name
        assert device.architecture == row["arch"], name
        assert device.memory_kind == row["mem_type"], name
        assert device.bandwidth.value == pytest.approx(float(row["mem_bw_gbs"]) * 1e9 * scale), name
        link, power = float(row["nvlink_or_if_bidir_gbs"] or 0), row["tdp_w"]
        assert (device.link_bandwidth.value if device.link_bandwidth else 0.0) == pytest.approx(link * 1e9), name
        assert device.power_watts.value == float(power), name


def test_dense_peaks_are_the_table_s():
    for name, row in rows():
        device, scale = the_device(name), scale_of(name)
        expected = {dtype: float(row[column]) * scale for dtype, column in PEAKS.items() if row[column]}
        doubles = [float(row[column]) * scale for column in ("fp64_vec_tflops", "fp64_tensor_tflops") if row[column]]
        expected |= {"fp64": max(doubles)} if doubles else {}
        expected = {dtype: STATED.get((name, dtype), value) for dtype, value in expected.items()}
        found = {dtype: figure.value / 1e12 for dtype, figure in device.dense_peaks.items()}
        assert found == pytest.approx(expected), name


def test_the_measured_peak_is_at_least_the_table_s_and_comes_from_its_notes_where_it_is_more():
    for name, row in rows():
        measured = {dtype: figure.value / 1e12 for dtype, figure in the_device(name).measured_peaks.items()}
        if row["mamf_bf16_measured_tflops"]:
            assert measured["bf16"] >= float(row["mamf_bf16_measured_tflops"]), name
        for value in measured.values():
            cell = row["mamf_bf16_measured_tflops"]
            assert (cell and value == float(cell)) or f"{value:g}" in row["conflicts_and_notes"], (name, value)


def test_what_the_table_calls_recalled_is_not_verified():
    heard = set()
    for name, row in rows():
        device = the_device(name)
        verified = {
            "power": device.power_watts and device.power_watts.verified,
            "link": device.link_bandwidth and device.link_bandwidth.verified,
            "bandwidth": device.bandwidth.verified,
            "memory_bytes": "memory_bytes" not in device.unverified,
            "sm_count": "sm_count" not in device.unverified,
            "capability": "capability" not in device.unverified,
            **{dtype: figure.verified for dtype, figure in device.dense_peaks.items()},
        }
        text = f"{row['sources']}; {row['conflicts_and_notes']}"
        for sentence in re.split(r"[.;] |;|\.$", text):
            if "recalled" not in sentence or "vendor" in sentence:
                continue
            words = set(re.findall(r"\w+", sentence))
            for word, figures in RECALLED_WORDS.items():
                for figure in figures if word in words else ():
                    assert not verified.get(figure), (name, sentence, figure)
                    heard.add((name, figure))
    assert {("NVIDIA GH200 480GB", "memory_bytes"), ("NVIDIA H100 NVL", "sm_count"), ("AMD Instinct MI350X", "sm_count")} < heard
    assert {("NVIDIA B300", "capability"), ("NVIDIA A10G", "power"), ("AMD Instinct MI355X", "fp64")} < heard


def test_rows_that_are_recalled_or_computed_as_a_whole_have_nothing_verified():
    for name, row in rows():
        if row["verify"].startswith("S"):
            continue
        device = the_device(name)
        figures = [*device.dense_peaks.values(), device.bandwidth, device.power_watts]
        assert not any(figure.verified for figure in figures), name
        assert {"memory_bytes", "sm_count"} <= set(device.unverified), name


def test_a_row_with_a_source_has_verified_capacity_unless_it_is_named():
    doubtful = {name for name, row in rows() if row["verify"].startswith("S") and "memory_bytes" in the_device(name).unverified}
    assert doubtful == {"NVIDIA GH200 480GB", "NVIDIA GH200 144G HBM3e"}
