"""Whatever the input, a reader answers with evidence, with nothing, or with the one error."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.ingest.exporter_metrics import read_exporter_metrics
from advisor.ingest.kernel_log import read_kernel_log
from advisor.ingest.memory_summary import read_memory_stats, read_memory_summary
from advisor.ingest.nvidia_smi_csv import read_nvidia_smi_csv
from advisor.ingest.nvidia_smi_failure import read_nvidia_smi_failure
from advisor.ingest.nvidia_smi_listing import read_nvidia_smi_listing
from advisor.ingest.nvidia_smi_table import read_nvidia_smi_table
from advisor.ingest.nvidia_smi_text import read_nvidia_smi_text
from advisor.ingest.nvidia_smi_xml import read_nvidia_smi_xml
from advisor.ingest.operator_table import read_operator_table
from advisor.model.errors import UnreadableInput

READERS = (
    read_exporter_metrics,
    read_kernel_log,
    read_memory_stats,
    read_memory_summary,
    read_nvidia_smi_csv,
    read_nvidia_smi_failure,
    read_nvidia_smi_listing,
    read_nvidia_smi_table,
    read_nvidia_smi_text,
    read_nvidia_smi_xml,
    read_operator_table,
)

TEXT = b"""\
==============NVSMI LOG==============

Attached GPUs : 1
GPU 00000000:01:00.0
    Product Name : NVIDIA L4
    FB Memory Usage
        Total : 24000 MiB
        Used : 3 MiB
    Processes
        Process ID : 3
            Used GPU Memory : 4 MiB
"""

XML = b"""\
<?xml version='1.0'?><nvidia_smi_log><gpu id='0:1:0'><product_name>L4</product_name>
<fb_memory_usage><total>24 MiB</total></fb_memory_usage>
<processes><process_info><pid>3</pid></process_info></processes></gpu></nvidia_smi_log>
"""

CSV = b"""\
name, memory.used [MiB], clocks_event_reasons.active
L4, 5 MiB, 0x4
"""

TABLE = b"""\
| NVIDIA-SMI 418.67 Driver Version: 418.67 |
|   0  Tesla T4            Off  | 00000000:00:04.0 Off |     0 |
| N/A   37C    P8     9W /  70W |      0MiB / 15079MiB |      0%      Default |
| Processes: |
|    0  3  C  python  4MiB |
"""

KERNEL = b"""\
[  1.000000] NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python, Ch 8
[  1.000000] memory: usage 8kB, limit 8kB, failcnt 1
[  1.100000] Memory cgroup out of memory: Killed process 7 (x) anon-rss:8kB
"""

METRICS = b"""\
nvidia_smi_memory_total_bytes{uuid="a-b"} 2.4e+10
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a"} 1410
"""

OPERATORS = b"""\
Name  Self CPU %  Self CPU  CPU total %  CPU total  CPU time avg  # of Calls
aten::mm  10.00%  1.000s  20.00%  2.000s  2.000ms  12
Self CPU time total: 1.500s
"""

SUMMARY = b"""\
| PyTorch CUDA memory summary, device ID 0 |
| CUDA OOMs: 1 | cudaMalloc retries: 1 |
| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
"""

STATS = b"{'active.all.current': 3, 'allocated_bytes.all.current': 1024, 'num_alloc_retries': 1}"

LISTING = b"""\
GPU 0: NVIDIA L4 (UUID: GPU-1111)
\t Link 0: 25 GB/s
Unable to determine the device handle for GPU 0000:41:00.0: lost
"""

SEEDS = (TEXT, XML, CSV, TABLE, KERNEL, METRICS, OPERATORS, SUMMARY, STATS, LISTING)


def read(reader, text):
    try:
        return reader(text, "x")
    except UnreadableInput:
        return None


def read_with_all(text):
    for reader in READERS:
        evidence = read(reader, text)
        assert evidence is None or evidence.source.path == "x"


@given(st.binary(max_size=2000))
def test_random_bytes_are_answered(text):
    read_with_all(text)


@settings(max_examples=300)
@given(st.sampled_from(SEEDS), st.integers(min_value=0, max_value=2**32))
def test_damaged_texts_are_answered(seed, chance):
    dice = random.Random(chance)
    text = bytearray(seed)
    for _ in range(dice.randint(1, 8)):
        place = dice.randrange(len(text))
        text[place : place + dice.randint(0, 3)] = dice.choice(
            (
                b"",
                b"\xff",
                b"\x00",
                b"-",
                b"9" * 40,
                b"nan",
                b"\n",
                b"|",
                b" : ",
                b"\xed\xa0\x80",
                b"<",
                b"1e999",
            )
        )
    read_with_all(bytes(text))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_text_cut_anywhere_is_answered(seed):
    for length in range(0, len(seed), 3):
        read_with_all(seed[:length])


@pytest.mark.parametrize("piece", [b" ", b"|", b"GPU 0: ", b"a" * 50 + b" : ", b"%  1.0s  ", b"nvidia_smi_a{", b"-"])
def test_one_endless_line_is_answered(piece):
    """Every pattern is bounded: a megabyte costs what its length costs, whatever it repeats."""
    line = piece * (1_000_000 // len(piece))
    for seed in SEEDS:
        read_with_all(seed + line + b"\n")


def test_the_name_of_the_document_type_without_a_tag_is_answered():
    read_with_all(b"nvsmi_device_v")
