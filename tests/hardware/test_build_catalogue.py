from pathlib import Path

import build_catalogue
import pytest

from advisor.hardware.catalogue import CATALOGUE, all_devices, look_up

TABLE = Path(__file__).parents[3] / "shared" / "hardware" / "gpu_catalog.csv"

HEADER = (
    "gpu,name_match_hint,vendor,arch,cc_or_gfx,sm_or_cu,mem_gb,mem_type,mem_bw_gbs,fp64_vec_tflops,fp64_tensor_tflops,"
    "fp32_vec_tflops,tf32_dense_tflops,fp16_dense_fp32acc_tflops,fp16_dense_fp16acc_tflops,bf16_dense_tflops,"
    "fp8_dense_fp32acc_tflops,int8_dense_tops,fp4_dense_tflops,sparse24_multiplier,nvlink_or_if_bidir_gbs,pcie_gen,"
    "pcie_x16_bidir_gbs,tdp_w,mamf_bf16_measured_tflops,verify,sources,conflicts_and_notes\n"
)


def test_the_committed_catalogue_is_what_the_table_gives():
    if not TABLE.is_file():
        pytest.skip(f"the table of facts is not at {TABLE}")
    assert build_catalogue.catalogue_text(TABLE.read_text(encoding="utf-8")) == CATALOGUE.read_text(encoding="utf-8")


def test_fp16_is_the_rate_that_accumulates_in_fp32():
    row = "L4,NVIDIA L4,NVIDIA,Ada,8.9,58,24,GDDR6,300,,,30.3,60,50,999,121,,,,2,0,4,64,72,,S2,x,y\n"
    text = build_catalogue.catalogue_text(HEADER + row)
    assert "fp16 = 5e+13" in text
    assert "9.99e+14" not in text


def test_a_row_that_is_recalled_is_not_verified():
    row = "L4,NVIDIA L4,NVIDIA,Ada,8.9,58,24,GDDR6,300,,,30.3,60,121,,121,,,,2,0,4,64,72,,R,x,y\n"
    assert "verified = false" in build_catalogue.catalogue_text(HEADER + row)


def test_rows_of_two_sizes_become_two_devices():
    small, large = look_up("Tesla V100-SXM2-16GB"), look_up("Tesla V100-SXM2-32GB")
    assert small is not None
    assert large is not None
    assert large.memory_bytes == 2 * (small.memory_bytes or 0)
    assert len({device.name for device in all_devices()}) == len(all_devices())
