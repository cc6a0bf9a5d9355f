"""`nvidia-smi -L` and `nvidia-smi nvlink --status`: a line a GPU, then its MIG devices or links."""

import re

from advisor.ingest.gpu_draft import GPU_LIMIT
from advisor.ingest.plain_text import embedded_lines
from advisor.model.dataclass import dataclass, field
from advisor.model.evidence import Source
from advisor.model.node import GpuReading, NodeReading

_GPU = re.compile(r"GPU (\d{1,3}): (.{1,120}?) \(UUID: ([A-Za-z0-9-]{4,60})\)")
_LINK = re.compile(r"\s+Link (\d{1,2}): (?:(\d{1,4}(?:\.\d{1,3})?) GB/s|(.{1,60}))")
_MIG = re.compile(r"\s+MIG (\S{1,20})\s+Device\s+(\d{1,2}):")

_LISTED = re.compile(rb"(?m)^GPU \d{1,3}: .{1,120}? \(UUID: [A-Za-z0-9-]{4,60}\)")

_LINKS_LIMIT = 64


def looks_like_nvidia_smi_listing(head: bytes) -> bool:
    """Whether a text holds a GPU's line of `nvidia-smi -L` or `nvidia-smi nvlink --status`."""
    return b"(UUID: " in head and _LISTED.search(head) is not None


def read_nvidia_smi_listing(text: bytes, path: str) -> NodeReading | None:
    """Names, UUIDs and the speed of each link; None where no GPU is listed.

    A link of another word than a speed is None.
    """
    found: list[_Listed] = []
    gaps: list[str] = []
    for _, line in embedded_lines(text, b"(UUID: "):
        gpu, link, mig = _GPU.match(line), _LINK.match(line), _MIG.match(line)
        if gpu is not None and len(found) < GPU_LIMIT:
            found.append(_Listed(index=int(gpu.group(1)), name=gpu.group(2), uuid=gpu.group(3)))
        elif link is not None and found and len(found[-1].links) < _LINKS_LIMIT:
            found[-1].links.append(float(link.group(2)) * 1e9 if link.group(2) else None)
        elif mig is not None and found:
            gaps.append(f"GPU {found[-1].index} has a MIG device {mig.group(1)}; the listing does not tell its memory")
    if not found:
        return None
    return NodeReading(
        source=Source(path=path),
        gaps=tuple(gaps[:GPU_LIMIT]),
        gpus=tuple(listed.reading() for listed in found),
    )


@dataclass
class _Listed:
    index: int
    name: str
    uuid: str
    links: list[float | None] = field(default_factory=list)

    def reading(self) -> GpuReading:
        return GpuReading(index=self.index, name=self.name, uuid=self.uuid, nvlink_bandwidths=tuple(self.links))
