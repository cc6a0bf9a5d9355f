from advisor.ingest.nvidia_smi_table import looks_like_nvidia_smi_table, read_nvidia_smi_table

MIB = 1024**2

NEW = b"""\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
| N/A   41C    P0            412W /  700W |   61234MiB /  81559MiB |     98%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                   On |
| N/A   35C    P0             70W /  700W |      87MiB /  81559MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   2  ERR!                           On  |   00000000:4C:00.0 Off |                 ERR! |
|ERR!  ERR! ERR!             N/A / ERR!   |      1MiB /  81559MiB  |    ERR!         ERR! |
|                                         |                        |                 ERR! |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|      Shared           |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC DEC OFA JPG    |
|==================+==================================+===========+=======================|
|  1    1   0   0  |              44MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |
|                  |                 0MiB / 65535MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A      4242      C   python train.py                             61220MiB |
|    1    1    0       4343      C   /usr/bin/python3                               20MiB |
+-----------------------------------------------------------------------------------------+
"""

OLD = b"""\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla T4            Off  | 00000000:00:04.0 Off |                    0 |
| N/A   37C    P8     9W /  70W |      0MiB / 15079MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  GeForce GTX 108...  Off  | 00000000:05:00.0  On |                  N/A |
| 23%   41C    P2    56W / 250W |  10817MiB / 11178MiB |     62%      Default |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|=============================================================================|
|    1     28765      C   python                                     10807MiB |
+-----------------------------------------------------------------------------+
"""


def test_the_new_layout_is_read_with_its_mig_devices_and_processes():
    reading = read_nvidia_smi_table(NEW, "smi.txt")
    busy, sliced, _ = reading.gpus
    assert (reading.driver_version, reading.cuda_version, reading.gaps) == ("550.54.15", "12.4", ())
    assert (busy.name, busy.bus_id) == ("NVIDIA H100 80GB HBM3", "00000000:19:00.0")
    assert (busy.used_bytes, busy.total_bytes) == (61234 * MIB, 81559 * MIB)
    assert (busy.gpu_utilization_ratio, busy.temperature_celsius, busy.power_watts) == (
        0.98,
        41.0,
        412.0,
    )
    assert (busy.power_limit_watts, busy.performance_state, busy.ecc_uncorrected) == (
        700.0,
        "P0",
        0,
    )
    assert (busy.processes[0].pid, busy.processes[0].used_bytes) == (4242, 61220 * MIB)
    assert (sliced.mig_enabled, sliced.mig_devices) == (True, (("GPU instance 1", 40448 * MIB),))
    assert sliced.gpu_utilization_ratio is None
    assert sliced.processes[0].name == "/usr/bin/python3"


def test_a_gpu_that_prints_errors_everywhere_is_lost():
    lost = read_nvidia_smi_table(NEW, "smi.txt").gpus[2]
    assert lost.is_lost
    assert lost.name is None
    assert "gpu_utilization_ratio" in dict(lost.unparsed)


def test_a_fan_that_cannot_be_read_does_not_make_a_gpu_lost():
    text = OLD.replace(b"| 23%   41C", b"|ERR!   41C")
    gpu = read_nvidia_smi_table(text, "smi.txt").gpus[1]
    assert not gpu.is_lost
    assert gpu.temperature_celsius == 41.0


def test_the_old_layout_is_read():
    idle, busy = read_nvidia_smi_table(OLD, "smi.txt").gpus
    assert (idle.name, idle.used_bytes, idle.total_bytes) == ("Tesla T4", 0, 15079 * MIB)
    assert (busy.name, busy.gpu_utilization_ratio) == ("GeForce GTX 108...", 0.62)
    assert (busy.ecc_uncorrected, busy.processes[0].used_bytes) == (None, 10807 * MIB)


def test_a_table_inside_a_log_with_prefixes_is_found():
    text = b"".join(b"[rank0]: " + line + b"\n" for line in (b"hello", *OLD.splitlines(), b"step 1"))
    assert looks_like_nvidia_smi_table(text)
    assert [gpu.total_bytes for gpu in read_nvidia_smi_table(text, "log.txt").gpus] == [
        15079 * MIB,
        11178 * MIB,
    ]


def test_a_table_that_is_cut_says_so():
    reading = read_nvidia_smi_table(OLD[: OLD.index(b"|   1  GeForce")], "smi.txt")
    assert len(reading.gpus) == 1
    assert reading.gaps == ("the table of processes is missing",)


def test_another_text_is_none_of_this():
    assert read_nvidia_smi_table(b"| a | b | c |\n", "log.txt") is None
