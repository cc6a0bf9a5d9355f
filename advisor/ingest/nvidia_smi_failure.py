"""What nvidia-smi prints instead of a reading: no devices, no driver, a GPU without an answer."""

import re

from advisor.ingest.gpu_draft import GPU_LIMIT
from advisor.ingest.plain_text import embedded_lines
from advisor.model.evidence import Source
from advisor.model.node import GpuReading, NodeReading

_MESSAGES = (
    "No devices were found",
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
    "Failed to initialize NVML",
    "couldn't find libnvidia-ml.so",
    "No running driver",
)

_NO_HANDLE_WORDS = b"Unable to determine the device handle"
_NO_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:GPU|gpu)\s{0,2}(?:(\d{1,3}): )?"
    r"((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])?"
)


def looks_like_nvidia_smi_failure(head: bytes) -> bool:
    """Whether a text holds one of nvidia-smi's own failure messages."""
    return _NO_HANDLE_WORDS in head or any(message.encode() in head for message in _MESSAGES)


def read_nvidia_smi_failure(text: bytes, path: str) -> NodeReading | None:
    """A reading of the GPUs that are said to be lost, none where the driver is not reached.

    None without such a message.
    """
    if not looks_like_nvidia_smi_failure(text):
        return None
    lost: dict[str, GpuReading] = {}
    gaps: list[str] = []
    for number, line in embedded_lines(text, _NO_HANDLE_WORDS, *map(str.encode, _MESSAGES)):
        found = _NO_HANDLE.search(line)
        if found is not None and len(lost) < GPU_LIMIT:
            bus_id = found.group(2)
            index = int(found.group(1)) if found.group(1) else len(lost)
            lost.setdefault(bus_id or str(index), GpuReading(index=index, bus_id=bus_id, is_lost=True))
        elif any(message in line for message in _MESSAGES) and len(gaps) < 10:  # noqa: PLR2004 - they repeat
            gaps.append(f"line {number}: {line.strip()[:200]}")
    return NodeReading(source=Source(path=path), gaps=tuple(gaps), gpus=tuple(lost.values()))
