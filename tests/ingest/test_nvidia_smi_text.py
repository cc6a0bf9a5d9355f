from advisor.ingest.nvidia_smi_text import looks_like_nvidia_smi_text, read_nvidia_smi_text

MIB = 1024**2

BLOCK = """\
GPU 00000000:{bus}:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    GPU UUID                              : GPU-{bus}
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 3
            Link Width
                Max                       : 16x
                Current                   : 8x
    Performance State                     : P0
    {reasons}
        Idle                              : Not Active
        Applications Clocks Setting       : Not Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
        SW Thermal Slowdown               : Not Active
    FB Memory Usage
        Total                             : 40960 MiB
        Reserved                          : 620 MiB
        Used                              : {used}
        Free                              : 30000 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
        Used                              : 1 MiB
        Free                              : 65535 MiB
    Utilization
        Gpu                               : 97 %
        Memory                            : 41 %
    ECC Mode
        Current                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 4
            SRAM Uncorrectable            : 1
            DRAM Correctable              : 9
            DRAM Uncorrectable            : 2
        Aggregate
            SRAM Uncorrectable            : 1
            DRAM Uncorrectable            : 6
    Remapped Rows
        Correctable Error                 : 3
        Uncorrectable Error               : 2
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 84 C
        GPU T.Limit Temp                  : 3 C
        GPU Slowdown T.Limit Temp         : -2 C
    GPU Power Readings
        Power Draw                        : 381.20 W
        Current Power Limit               : 400.00 W
        Default Power Limit               : 400.00 W
    Clocks
        SM                                : 1095 MHz
        Memory                            : 1215 MHz
    Applications Clocks
        Graphics                          : 1410 MHz
    Max Clocks
        SM                                : 1410 MHz
        Memory                            : 1215 MHz
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4242
            Type                          : C
            Name                          : python train.py
            Used GPU Memory               : 10200 MiB
"""


def a_block(bus="07", *, reasons="Clocks Event Reasons", used="10240 MiB"):
    return BLOCK.format(bus=bus, reasons=reasons, used=used)


def a_text(*blocks, attached=None):
    heading = (
        "\n==============NVSMI LOG==============\n\n"
        "Timestamp                                 : Mon Jan  6 10:00:00 2025\n"
        "Driver Version                            : 550.54.15\n"
        "CUDA Version                              : 12.4\n\n"
        f"Attached GPUs                             : {attached or len(blocks)}\n"
    )
    return (heading + "\n".join(blocks)).encode()


def read_one(**fields):
    reading = read_nvidia_smi_text(a_text(a_block(**fields)), "q.txt")
    assert len(reading.gpus) == 1
    return reading.gpus[0]


def test_every_field_of_the_model_is_read_in_its_unit():
    gpu = read_one()
    assert gpu.name == "NVIDIA A100-SXM4-40GB"
    assert (gpu.total_bytes, gpu.used_bytes, gpu.free_bytes, gpu.reserved_bytes) == (
        40960 * MIB,
        10240 * MIB,
        30000 * MIB,
        620 * MIB,
    )
    assert (gpu.gpu_utilization_ratio, gpu.memory_utilization_ratio) == (0.97, 0.41)
    assert (gpu.pcie_generation, gpu.max_pcie_generation, gpu.pcie_width, gpu.max_pcie_width) == (
        3,
        4,
        8,
        16,
    )
    assert (gpu.sm_clock_mhz, gpu.max_sm_clock_mhz, gpu.applications_sm_clock_mhz) == (
        1095.0,
        1410.0,
        1410.0,
    )
    assert (gpu.power_watts, gpu.power_limit_watts, gpu.default_power_limit_watts) == (
        381.2,
        400.0,
        400.0,
    )
    assert (gpu.ecc_enabled, gpu.ecc_uncorrected, gpu.ecc_uncorrected_lifetime) == (True, 3, 7)
    assert (gpu.remapped_rows, gpu.remap_pending, gpu.remap_failed) == (2, True, False)
    assert (gpu.mig_enabled, gpu.performance_state, gpu.unparsed) == (False, "P0", ())
    assert gpu.processes[0].pid == 4242
    assert gpu.processes[0].used_bytes == 10200 * MIB


def test_reasons_below_the_hardware_slowdown_are_read_too():
    assert read_one().clock_event_reasons == ("hw_slowdown", "hw_thermal_slowdown")


def test_older_drivers_call_the_reasons_throttle_reasons():
    assert read_one(reasons="Clocks Throttle Reasons").clock_event_reasons == (
        "hw_slowdown",
        "hw_thermal_slowdown",
    )


def test_slowdown_begins_where_the_margins_say():
    assert read_one().slowdown_celsius == 84 + 3 + 2


def test_a_value_that_makes_no_sense_is_kept_as_not_understood():
    gpu = read_one(used="[Unknown Error]")
    assert gpu.used_bytes is None
    assert gpu.unparsed == (("used_bytes", "[Unknown Error]"),)


def test_more_used_than_there_is_is_not_believed():
    gpu = read_one(used="50000 MiB")
    assert gpu.used_bytes is None
    assert gpu.unparsed[0][0] == "used_bytes"


def test_a_lost_gpu_is_marked_and_the_others_are_read():
    lost = "GPU 00000000:41:00.0\n    Product Name                          : GPU is lost\n"
    reading = read_nvidia_smi_text(a_text(lost, a_block()), "q.txt")
    assert [gpu.is_lost for gpu in reading.gpus] == [True, False]
    assert reading.gpus[1].total_bytes == 40960 * MIB


def test_a_text_that_is_cut_names_what_is_missing_and_keeps_the_rest():
    whole = a_text(a_block("07"), a_block("0b"))
    reading = read_nvidia_smi_text(whole[: len(whole) // 2 + 60], "q.txt")
    assert reading.gpus[0].total_bytes == 40960 * MIB
    whole_reading = read_nvidia_smi_text(a_text(a_block("07"), attached=8), "q.txt")
    assert whole_reading.gaps == ("8 GPUs are attached, the text holds 1: it is cut",)


def test_of_repeated_readings_the_one_with_a_slowdown_stays():
    calm = a_block().replace(
        "HW Slowdown                       : Active",
        "HW Slowdown                       : Not Active",
    )
    calm = calm.replace("HW Thermal Slowdown           : Active", "HW Thermal Slowdown           : Not Active")
    text = a_text(calm) + a_text(a_block()) + a_text(calm)
    reading = read_nvidia_smi_text(text, "q.txt")
    assert len(reading.gpus) == 1
    assert "hw_thermal_slowdown" in reading.gpus[0].clock_event_reasons
    assert reading.gaps == ("3 samples of a GPU; the one with a slowdown reason, else the busiest, is read",)


def test_mig_devices_have_their_memory():
    mig = (
        "    MIG Device\n"
        "        Index                             : 0\n"
        "        GPU Instance ID                   : 3\n"
        "        FB Memory Usage\n"
        "            Total                         : 19968 MiB\n"
    )
    block = a_block().replace("    PCI\n", mig + "    PCI\n")
    gpu = read_nvidia_smi_text(a_text(block), "q.txt").gpus[0]
    assert gpu.mig_devices == (("GPU instance 3", 19968 * MIB),)
    assert gpu.total_bytes == 40960 * MIB


def test_what_powershell_saved_as_utf_16_is_read():
    text = a_text(a_block()).decode().encode("utf-16")
    assert read_nvidia_smi_text(text, "q.txt").gpus[0].total_bytes == 40960 * MIB


def test_another_text_is_none_of_this():
    assert not looks_like_nvidia_smi_text(b"step 1 loss 2.0\n")
    assert read_nvidia_smi_text(b"step 1 loss 2.0\n", "log.txt") is None
