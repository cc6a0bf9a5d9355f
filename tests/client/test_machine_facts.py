import json
from pathlib import Path

import pytest

from advisor.client.machine_facts import facts_of_machine

DRIVER = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Sat Sep 23 15:13:15 UTC 2023
GCC version:  gcc version 12.3.0
"""
OPEN_DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder)  Thu Jan 16\n"

GPU = """Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 74
GPU UUID: \t GPU-00000000-0000-0000-0000-000000000000
Bus Type: \t PCIe
Bus Location: \t 0000:1b:00.0
GPU Firmware: \t 570.86.15
"""

CONTAINER = "3f" * 32


def a_root(folder, files=None):
    for name, text in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def facts(folder, files=None, **environment):
    return facts_of_machine(a_root(folder, files), environment)


def test_processor_and_memory_are_read(tmp_path):
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n\nprocessor\t: 1\nmodel name\t: other\n",
        "proc/meminfo": "MemTotal:       16384 kB\nMemFree: 1 kB\n",
        "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.4 LTS"\n',
        "sys/devices/system/node/node0/x": "",
        "sys/devices/system/node/node1/x": "",
    }
    found = facts(tmp_path, files)
    assert found["cpu_model"] == "AMD EPYC 9654 96-Core Processor"
    assert found["memory_bytes"] == 16 * 1024 * 1024
    assert found["distribution"] == "Ubuntu 22.04.4 LTS"
    assert found["numa_node_count"] == 2


def test_a_processor_without_a_name_is_known_by_its_numbers(tmp_path):
    files = {"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"}
    assert facts(tmp_path, files)["cpu_model"] == "implementer 0x41, part 0xd4f"


@pytest.mark.parametrize(
    ("text", "version"),
    [(DRIVER.format("535.104.05"), "535.104.05"), (DRIVER.format("550.54"), "550.54"), (OPEN_DRIVER, "570.86.15"), ("garbage", None)],
)
def test_the_drivers_version_is_read(tmp_path, text, version):
    assert facts(tmp_path, {"proc/driver/nvidia/version": text})["gpu_driver_version"] == version


def test_amds_driver_is_read_where_there_is_no_other(tmp_path):
    assert facts(tmp_path, {"sys/module/amdgpu/version": "6.8.5\n"})["gpu_driver_version"] == "6.8.5"


def test_the_gpus_are_listed_without_their_serial_identities(tmp_path):
    found = facts(tmp_path, {"proc/driver/nvidia/gpus/0000:1b:00.0/information": GPU})
    assert found["gpus"] == [{"model": "NVIDIA H100 80GB HBM3", "bus": "0000:1b:00.0", "firmware": "570.86.15"}]


@pytest.mark.parametrize(
    ("files", "environment", "expected"),
    [
        ({}, {}, (None, None, None)),
        ({".dockerenv": ""}, {}, ("docker", None, None)),
        ({"proc/self/cgroup": f"0::/system.slice/docker-{CONTAINER}.scope\n"}, {"CONTAINER_IMAGE": "i:1"}, ("docker", CONTAINER, "i:1")),
        (
            {
                ".dockerenv": "",
                "proc/self/mountinfo": f"1 2 0:1 /var/lib/docker/containers/{CONTAINER}/hostname /etc/hostname rw - ext4 d rw\n",
            },
            {},
            ("docker", CONTAINER, None),
        ),
        ({"run/.containerenv": 'engine="podman"\nimage="docker.io/x:2"\n'}, {}, ("podman", None, "docker.io/x:2")),
        ({}, {"APPTAINER_CONTAINER": "/images/x.sif"}, ("apptainer", None, "/images/x.sif")),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ("kubernetes", None, None)),
        ({"proc/self/cgroup": "0::/user.slice/session-1.scope\n"}, {}, (None, None, None)),
    ],
)
def test_the_container_is_told_as_far_as_it_can_be_seen_from_inside(tmp_path, files, environment, expected):
    found = facts(tmp_path, files, **environment)["container"]
    assert (found["kind"], found["id"], found["image"]) == expected


def test_a_machine_that_tells_nothing_is_unknown_not_zero(tmp_path):
    found = facts(tmp_path)
    for name in ("cpu_model", "memory_bytes", "gpu_driver_version", "distribution", "numa_node_count"):
        assert found[name] is None
    assert found["gpus"] == []


def test_this_machine_is_described():
    found = facts_of_machine(Path("/"), {})
    json.dumps(found)
    assert found["memory_bytes"] > 0
    assert found["usable_cpu_count"] >= 1
