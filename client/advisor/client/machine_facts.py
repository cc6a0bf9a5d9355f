"""The machine that a run is on: processor, memory, kernel, GPU driver, container. For the sidecar: a few small files."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MOST_BYTES = 256 * 1024
MOST_GPUS = 64

CONTAINER_NAMES = {
    "docker": "docker",
    "kubepods": "kubernetes",
    "containerd": "containerd",
    "libpod": "podman",
    "crio": "cri-o",
    "lxc": "lxc",
    "slurm": "slurm",
}
"""Words in the path of a control group → what made it."""

IMAGE_VARIABLES = ("CONTAINER_IMAGE", "DOCKER_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "SLURM_CONTAINER_IMAGE")
"""Where launchers leave the image's name; Docker and Kubernetes tell it to nobody inside."""

CONTAINER_ID = r"[0-9a-f]{64}"


def facts_of_machine(root: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """What the machine's files tell; None is what they do not.

    Args:
        root: of the file system, "/".
        environment: the trainer's variables, in which launchers leave the container's image.
    """
    system = os.uname()
    return {
        "kernel": f"{system.sysname} {system.release}",
        "architecture": system.machine,
        "distribution": _distribution(root),
        "libc": _libc(),
        "cpu_model": _cpu_model(root),
        "cpu_count": os.cpu_count(),
        "usable_cpu_count": len(os.sched_getaffinity(0)),
        "memory_bytes": _memory_bytes(root),
        "numa_node_count": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "gpu_driver_version": _driver_version(root),
        "gpus": _gpus(root),
        "container": _container(root, environment),
    }


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _field(text: str, name: str) -> str | None:
    """The value of the first line "name : value"."""
    match = re.search(rf"(?m)^{re.escape(name)}[ \t]*:[ \t]*(\S.*?)[ \t]*$", text)
    return match.group(1) if match else None


def _distribution(root: Path) -> str | None:
    match = re.search(r'(?m)^PRETTY_NAME="?([^"\n]*)"?$', _text(root / "etc/os-release"))
    return match.group(1) if match else None


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def _cpu_model(root: Path) -> str | None:
    """The processor's name; on ARM, which has none there, its maker's and part's numbers."""
    text = _text(root / "proc/cpuinfo")
    name = _field(text, "model name") or _field(text, "Processor") or _field(text, "cpu model")
    maker, part = _field(text, "CPU implementer"), _field(text, "CPU part")
    return name or (f"implementer {maker}, part {part}" if maker and part else None)


def _memory_bytes(root: Path) -> int | None:
    match = re.search(r"(?m)^MemTotal:\s*(\d+) kB", _text(root / "proc/meminfo"))
    return int(match.group(1)) * 1024 if match else None


def _driver_version(root: Path) -> str | None:
    """Of NVIDIA's kernel module ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  ..."), else of AMD's."""
    match = re.search(r"Kernel Module(?:\s+for\s+\S+)?\s+(\d+\.\d+(?:\.\d+)?)", _text(root / "proc/driver/nvidia/version"))
    return match.group(1) if match else _text(root / "sys/module/amdgpu/version").strip() or None


def _gpus(root: Path) -> list[dict[str, str | None]]:
    """Model, bus and firmware of NVIDIA's devices, as their kernel module lists them: also those that a container may not use."""
    found = []
    for folder in sorted((root / "proc/driver/nvidia/gpus").glob("*"))[:MOST_GPUS]:
        text = _text(folder / "information")
        found.append({"model": _field(text, "Model"), "bus": _field(text, "Bus Location"), "firmware": _field(text, "GPU Firmware")})
    return found


def _container(root: Path, environment: Mapping[str, str]) -> dict[str, str | None]:
    """What made the container, its identity and image, as far as it can be told from inside; all None outside of one."""
    groups = _text(root / "proc/self/cgroup")
    mounts = _text(root / "proc/self/mountinfo")
    podman = _text(root / "run/.containerenv")
    kind = next((made for word, made in CONTAINER_NAMES.items() if word in groups), None)
    if (root / "run/.containerenv").exists():
        kind = "podman"
    elif (root / ".dockerenv").exists() and kind is None:
        kind = "docker"
    elif environment.get("APPTAINER_CONTAINER") or environment.get("SINGULARITY_CONTAINER"):
        kind = "apptainer"
    if environment.get("KUBERNETES_SERVICE_HOST"):
        kind = "kubernetes"
    identity = re.search(CONTAINER_ID, groups) or re.search(rf"/containers/({CONTAINER_ID})/", mounts)
    image = re.search(r'(?m)^image="([^"]*)"', podman)
    told = next((environment[name] for name in IMAGE_VARIABLES if environment.get(name)), None)
    return {
        "kind": kind,
        "id": identity.group(identity.lastindex or 0) if identity and kind else None,
        "image": image.group(1) if image else told,
    }
