"""The switches of torch that change what a training computes or how fast, and the versions of what is loaded."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

PACKAGES = (
    *(
        "torch",
        "torchvision",
        "torchaudio",
        "numpy",
        "scipy",
        "transformers",
        "datasets",
        "accelerate",
        "peft",
        "trl",
        "tokenizers",
        "diffusers",
    ),
    *("safetensors", "deepspeed", "bitsandbytes", "flash_attn", "xformers", "triton", "apex", "transformer_engine", "torchao", "lightning"),
    *("pytorch_lightning", "timm", "vllm", "unsloth", "liger_kernel", "wandb", "mlflow", "tensorboard", "omegaconf", "hydra", "ray", "jax"),
)
"""Whose loaded version is worth knowing at once; all that is installed is listed by the sidecar."""

DTYPE = "torch."


def _new_precision(part: Any) -> str | None:  # noqa: ANN401 - a part of torch.backends
    """The setting that came with torch 2.9; None before. Asking for the older ones makes torch 2.9 and 2.10 print a warning."""
    precision = getattr(part, "fp32_precision", None)
    return precision if isinstance(precision, str) else None


def _tf32(backend: Any, part: Any) -> bool:  # noqa: ANN401 - parts of torch.backends
    precision = _new_precision(part)
    return bool(backend.allow_tf32) if precision is None else precision == "tf32"


def _matmul_precision(torch: ModuleType) -> str:
    """The answer of `torch.get_float32_matmul_precision`, put together where asking it would print a warning or fail."""
    precision = _new_precision(torch.backends.cuda.matmul)
    if precision is None:
        return str(torch.get_float32_matmul_precision())
    if _new_precision(getattr(torch.backends.mkldnn, "matmul", None)) == "bf16":
        return "medium"
    return "high" if precision == "tf32" else "highest"


def _autocast_of_cpu(torch: ModuleType) -> bool:
    try:
        return bool(torch.is_autocast_enabled("cpu"))
    except TypeError:  # before torch 2.4
        return bool(torch.is_autocast_cpu_enabled())


def _autocast_dtype(torch: ModuleType, device: str) -> str:
    if hasattr(torch, "get_autocast_dtype"):
        return str(torch.get_autocast_dtype(device)).removeprefix(DTYPE)
    old = torch.get_autocast_cpu_dtype if device == "cpu" else torch.get_autocast_gpu_dtype
    return str(old()).removeprefix(DTYPE)


SETTINGS: dict[str, Callable[[ModuleType], Any]] = {
    "deterministic_algorithms": lambda torch: torch.are_deterministic_algorithms_enabled(),
    "deterministic_warn_only": lambda torch: torch.is_deterministic_algorithms_warn_only_enabled(),
    "cudnn_enabled": lambda torch: torch.backends.cudnn.enabled,
    "cudnn_benchmark": lambda torch: torch.backends.cudnn.benchmark,
    "cudnn_deterministic": lambda torch: torch.backends.cudnn.deterministic,
    "float32_matmul_precision": _matmul_precision,
    "matmul_tf32": lambda torch: _tf32(torch.backends.cuda.matmul, torch.backends.cuda.matmul),
    "cudnn_tf32": lambda torch: _tf32(torch.backends.cudnn, getattr(torch.backends.cudnn, "conv", None)),
    "fp16_reduced_precision_reduction": lambda torch: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
    "bf16_reduced_precision_reduction": lambda torch: torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    "flash_attention": lambda torch: torch.backends.cuda.flash_sdp_enabled(),
    "memory_efficient_attention": lambda torch: torch.backends.cuda.mem_efficient_sdp_enabled(),
    "math_attention": lambda torch: torch.backends.cuda.math_sdp_enabled(),
    "default_dtype": lambda torch: str(torch.get_default_dtype()).removeprefix(DTYPE),
    "thread_count": lambda torch: torch.get_num_threads(),
    "interop_thread_count": lambda torch: torch.get_num_interop_threads(),
    "anomaly_mode": lambda torch: torch.is_anomaly_enabled(),
    "grad_enabled": lambda torch: torch.is_grad_enabled(),
    "autocast_gpu": lambda torch: torch.is_autocast_enabled(),
    "autocast_cpu": _autocast_of_cpu,
    "autocast_gpu_dtype": lambda torch: _autocast_dtype(torch, "cuda"),
    "autocast_cpu_dtype": lambda torch: _autocast_dtype(torch, "cpu"),
}
"""Name → how it is read; what a version of torch lacks or refuses to tell is left out. None initializes CUDA or loads a library."""


def facts_of_torch() -> dict[str, Any] | None:
    """Versions and settings of torch; None where it is not loaded (or is being loaded). Nothing initializes CUDA."""
    torch = sys.modules.get("torch")
    version = getattr(torch, "version", None)
    if torch is None or version is None or not hasattr(torch, "default_generator"):
        return None
    return {
        "version": str(torch.__version__),
        "git_version": getattr(version, "git_version", None),
        "cuda_version": getattr(version, "cuda", None),
        "hip_version": getattr(version, "hip", None),
        "settings": settings_of(torch),
        "device": device_of(torch),
    }


def settings_of(torch: ModuleType) -> dict[str, Any]:
    """The settings that this torch tells."""
    found: dict[str, Any] = {}
    for name, read in SETTINGS.items():
        try:
            found[name] = read(torch)
        except Exception:  # noqa: BLE001, PERF203, S112 - a version that lacks one raises what it likes; what is not told stays unknown
            continue
    return found


def device_of(torch: ModuleType) -> dict[str, Any] | None:
    """The current GPU's name, memory and capability; None where CUDA is not initialized."""
    if not torch.cuda.is_initialized():
        return None
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "name": properties.name,
        "memory_bytes": properties.total_memory,
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessor_count": properties.multi_processor_count,
        "visible_device_count": torch.cuda.device_count(),
    }


def loaded_versions() -> dict[str, str]:
    """`__version__` of the packages of interest that are loaded, without a look at the disk."""
    found = {}
    for name in PACKAGES:
        module = sys.modules.get(name)
        version = vars(module).get("__version__") if module is not None else None
        if isinstance(version, str):
            found[name] = str(version)
    return found
