"""A small text of each kind that the readers know, as its program prints it."""

from failure_messages import new_cuda, old_cuda
from ingest.test_memory_summary import a_summary
from ingest.test_nvidia_smi_text import BLOCK
from ingest.test_nvidia_smi_xml import GPU, a_document
from ingest.test_operator_table import MODERN, a_row, a_table

NVIDIA_SMI = """\
==============NVSMI LOG==============

Timestamp                                 : Mon Jan  6 10:00:00 2025
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
"""

CSV = """\
timestamp, index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], memory.free [MiB], utilization.gpu [%], temperature.gpu, \
power.draw [W], power.limit [W], clocks.sm [MHz], clocks.max.sm [MHz], pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, \
pcie.link.width.max, clocks_event_reasons.active, ecc.errors.uncorrected.volatile.total, pstate
2025/01/06 10:00:00.000, 0, NVIDIA A100-SXM4-80GB, GPU-1, 00000000:07:00.0, 81920 MiB, 80000 MiB, 1920 MiB, 95 %, 60, 300.00 W, 400.00 W, \
1200 MHz, 1410 MHz, 3, 4, 8, 16, 0x0000000000000004, 1, P0
"""

PLAIN_TABLE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.85.12    Driver Version: 525.85.12    CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla T4            Off  | 00000000:00:04.0 Off |                    1 |
| N/A   87C    P0    69W /  70W |  15000MiB / 15360MiB |     97%      Default |
+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    0   N/A  N/A      4242      C   python                         14990MiB  |
+-----------------------------------------------------------------------------+
"""

KERNEL_LOG = """\
[1234567.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus.
[1234568.000000] NVRM: Xid (PCI:0000:3b:00): 48, pid=4242, name=python, DBE (double bit error)
[1234569.000000] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[1234569.100000] memory: usage 1048576kB, limit 1048576kB, failcnt 12
[1234569.200000] Memory cgroup out of memory: Killed process 4242 (python) total-vm:9000000kB, anon-rss:8000000kB, file-rss:100kB, \
shmem-rss:0kB, UID:1000
"""

METRICS = """\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="n"} 1200
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",modelName="NVIDIA A100-SXM4-80GB"} 89
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 80000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a"} 1000
nvidia_smi_memory_total_bytes{uuid="b"} 2.4e+10
nvidia_smi_gpu_info{uuid="b",name="NVIDIA L4",driver_version="550"} 1
"""

ENGINE = """\
INFO 01-06 10:00:00 worker.py:100] model weights take 14.99GiB; non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.25GiB; \
the rest of the memory reserved for KV Cache is 2.00GiB.
ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (16384). Try increasing \
`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
"""

XLA = (
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.\n"
    "BufferAssignment OOM Debugging.\nBufferAssignment stats:\n"
    "             parameter allocation:    4.00GiB\n              constant allocation:         0B\n"
    "        maybe_live_out allocation:    2.00GiB\n     preallocated temp allocation:    8.00GiB\n"
)

MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: 350.00 MB, max allowed: 18.13 GB). "
    "Tried to allocate 1.50 GB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations "
    "(may cause system failure).\n"
)

TRACEBACK = (
    'Traceback (most recent call last):\n  File "/app/train.py", line 80, in <module>\n    loss.backward()\n'
    '  File "/env/site-packages/torch/_tensor.py", line 522, in backward\n    torch.autograd.backward(\n'
)

TEXTS = {
    "nvidia-smi-text": (
        NVIDIA_SMI + "".join(BLOCK.format(bus=bus, reasons="Clocks Throttle Reasons", used="39000 MiB") for bus in ("07", "08"))
    ),
    "nvidia-smi-xml": a_document(GPU).decode(),
    "nvidia-smi-csv": CSV,
    "nvidia-smi-table": PLAIN_TABLE,
    "nvidia-smi-list": "GPU 0: NVIDIA L4 (UUID: GPU-1111)\nGPU 1: NVIDIA L4 (UUID: GPU-2222)\n",
    "kernel-log": KERNEL_LOG,
    "metrics": METRICS,
    "operator-table": a_table(["Name", *MODERN[1:], "# of Calls"], [a_row(), a_row("aten::copy_", "7")]).decode(),
    "memory-summary": a_summary().decode(),
    "old-message": f"{TRACEBACK}{old_cuda()}\n",
    "new-message": f"[rank1]: {TRACEBACK}[rank1]: {new_cuda()}\n",
    "engine-log": ENGINE,
    "xla-log": XLA,
    "mps-log": MPS,
    "host-log": "slurmstepd: error: Detected 2 oom_kill events in StepId=4242.0. Some of the step tasks have been OOM Killed.\nexit code 137\n",
}
"""By kind."""
