import pytest

from advisor.ingest.nvidia_smi_csv import looks_like_nvidia_smi_csv, read_nvidia_smi_csv

MIB = 1024**2


def read(text):
    return read_nvidia_smi_csv(text.encode(), "q.csv")


def test_values_with_units_and_values_without_are_the_same():
    with_units = read(
        "index, name, memory.used [MiB], utilization.gpu [%], clocks.sm [MHz], power.draw [W]\n"
        "0, NVIDIA L4, 512 MiB, 95 %, 1200 MHz, 71.50 W\n"
    )
    without = read(
        "index, name, memory.used [MiB], utilization.gpu [%], clocks.sm [MHz], power.draw [W]\n0, NVIDIA L4, 512, 95, 1200, 71.50\n"
    )
    assert with_units.gpus == without.gpus
    gpu = with_units.gpus[0]
    assert (gpu.used_bytes, gpu.gpu_utilization_ratio, gpu.sm_clock_mhz, gpu.power_watts) == (
        512 * MIB,
        0.95,
        1200.0,
        71.5,
    )


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        ("0x0000000000000004", ("sw_power_cap",)),
        ("0x0000000000000048", ("hw_slowdown", "hw_thermal_slowdown")),
        ("0x0000000000000000", ()),
        ("[N/A]", None),
    ],
)
def test_reasons_are_read_from_nvmls_bits(mask, reasons):
    reading = read(f"name, clocks_event_reasons.active\nNVIDIA L4, {mask}\n")
    assert reading.gpus[0].clock_event_reasons == reasons


def test_reasons_are_read_from_their_own_columns():
    reading = read("name, clocks_throttle_reasons.sw_thermal_slowdown, clocks_throttle_reasons.gpu_idle\nTesla T4, Active, Not Active\n")
    assert reading.gpus[0].clock_event_reasons == ("sw_thermal_slowdown",)


def test_of_many_samples_the_busiest_of_each_gpu_stays():
    rows = "\n".join(
        f"2025/01/06 10:00:0{second}, GPU-{gpu}, {busy} %" for second, gpu, busy in [(0, "a", 5), (0, "b", 7), (1, "a", 99), (1, "b", 3)]
    )
    reading = read("timestamp, uuid, utilization.gpu [%]\n" + rows + "\n")
    assert [(gpu.uuid, gpu.gpu_utilization_ratio) for gpu in reading.gpus] == [
        ("GPU-a", 0.99),
        ("GPU-b", 0.07),
    ]
    assert reading.gaps[0].startswith("2 samples of a GPU")


def test_a_torn_row_is_named_and_the_others_are_kept():
    reading = read("name, memory.used [MiB]\nNVIDIA L4, 5 MiB\nNVIDIA L4\n")
    assert len(reading.gpus) == 1
    assert reading.gaps == ("line 3 has 1 values for 2 columns",)


def test_a_query_of_processes_gives_them_to_their_gpu():
    reading = read("gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-a, 10, python, 400 MiB\nGPU-a, 11, python, [N/A]\n")
    (gpu,) = reading.gpus
    assert [(process.pid, process.used_bytes) for process in gpu.processes] == [
        (10, 400 * MIB),
        (11, None),
    ]


def test_errors_and_link_are_read():
    reading = read("name, ecc.errors.uncorrected.volatile.total, pcie.link.gen.current, pcie.link.width.max\nNVIDIA L4, 3, 4, 16\n")
    gpu = reading.gpus[0]
    assert (gpu.ecc_uncorrected, gpu.pcie_generation, gpu.max_pcie_width) == (3, 4, 16)


@pytest.mark.parametrize("text", ["name, age\nBob, 3\n", "step,loss\n1,2.0\n", "a\n", "", "index, name\n0, x\n"])
def test_other_tables_are_none_of_this(text):
    assert not looks_like_nvidia_smi_csv(text.encode())
    assert read(text) is None
