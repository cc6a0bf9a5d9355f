from advisor.ingest.exporter_metrics import looks_like_exporter_metrics, read_exporter_metrics

MIB = 1024**2

SMI = b"""\
# TYPE nvidia_smi_gpu_info gauge
nvidia_smi_gpu_info{driver_version="550.54.15",name="NVIDIA L4",uuid="aa-bb",pci_bus_id="0:1:0.0"} 1
nvidia_smi_memory_total_bytes{uuid="aa-bb"} 2.4152899584e+10
nvidia_smi_utilization_gpu_ratio{uuid="aa-bb"} 0.97
nvidia_smi_clocks_current_sm_clock_hz{uuid="aa-bb"} 1.2e+09
nvidia_smi_clocks_event_reasons_active{uuid="aa-bb"} 4
nvidia_smi_ecc_errors_uncorrected_volatile_total{uuid="aa-bb"} 2
nvidia_smi_pstate{uuid="aa-bb"} 0
nvidia_smi_temperature_gpu{uuid="aa-bb"} NaN
nvidia_smi_remapped_rows_pending{uuid="aa-bb"} 1
"""

DCGM = b"""\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",modelName="NVIDIA A100-SXM4-80GB"} 1410
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA A100-SXM4-80GB"} 1024
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",modelName="NVIDIA A100-SXM4-80GB"} 0
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",GPU_I_ID="3",modelName="NVIDIA A100-SXM4-80GB"} 77
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 88
"""


def test_base_units_are_read_as_the_models():
    reading = read_exporter_metrics(SMI, "scrape.prom")
    (gpu,) = reading.gpus
    assert (reading.driver_version, gpu.name, gpu.bus_id) == (
        "550.54.15",
        "NVIDIA L4",
        "0:1:0.0",
    )
    assert (gpu.total_bytes, gpu.gpu_utilization_ratio, gpu.sm_clock_mhz) == (
        24152899584,
        0.97,
        1200.0,
    )
    assert (gpu.clock_event_reasons, gpu.ecc_uncorrected, gpu.performance_state) == (
        ("sw_power_cap",),
        2,
        "P0",
    )
    assert gpu.remap_pending is True


def test_a_value_that_is_no_number_is_kept_as_not_understood():
    (gpu,) = read_exporter_metrics(SMI, "scrape.prom").gpus
    assert gpu.temperature_celsius is None
    assert gpu.unparsed == (("nvidia_smi_temperature_gpu", "NaN"),)


def test_dcgms_fields_are_read_and_its_mig_slices_left_out():
    first, second = read_exporter_metrics(DCGM, "scrape.prom").gpus
    assert (first.uuid, first.sm_clock_mhz, first.used_bytes) == ("GPU-a", 1410.0, 1024 * MIB)
    assert first.gpu_utilization_ratio == 0.88
    assert second.used_bytes == 0


def test_a_damaged_line_is_named_and_the_others_are_kept():
    reading = read_exporter_metrics(SMI + b"nvidia_smi_power_draw_watts{uuid=\n", "scrape.prom")
    assert reading.gpus[0].total_bytes == 24152899584
    assert reading.gaps[0].startswith("not a sample")


def test_other_metrics_are_none_of_this():
    text = b"# TYPE node_load1 gauge\nnode_load1 0.5\n"
    assert not looks_like_exporter_metrics(text)
    assert read_exporter_metrics(text, "scrape.prom") is None


def test_a_ratio_beyond_floats_is_left_out() -> None:
    reading = read_exporter_metrics(
        b'nvidia_smi_utilization_gpu_ratio{uuid="a"} 1.7e308\nnvidia_smi_memory_total_bytes{uuid="a"} 1024\n', "m"
    )
    assert reading is not None
    assert reading.gpus[0].gpu_utilization_ratio is None
