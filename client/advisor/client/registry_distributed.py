"""Memory that training on several ranks adds: gathered parameters of FSDP, buckets of DDP."""

from typing import Any

from advisor.client.registry_modules import GATHERED_NAME, GRADIENT_NAME, Module, Parameters
from advisor.client.registry_names import Name
from advisor.client.registry_storages import Storages

FSDP2_ROLES = (
    ("all_gather_outputs", "communication_buffers"),
    ("_unsharded_inner_tensors", "communication_buffers"),
    ("_unsharded_param", "communication_buffers"),
    ("_sharded_post_forward_param_data", "communication_buffers"),
    ("_sharded_post_forward_param", "communication_buffers"),
    ("unsharded_accumulated_grad", "gradients"),
    ("_sharded_param_data", "weights"),
    ("sharded_param", "weights"),
)
"""Attributes of FSDPParam (torch.distributed.fsdp) and what they hold; those gathered come first, for weights are views of them."""


def walk_fsdp(modules: list[Module], parameters: Parameters, storages: Storages) -> None:
    """Tag what FSDP gathered, before the modules' own parameters, which are views of it for as long as they are unsharded."""
    wrapped: dict[type, Any] = {}
    for module, path in modules:
        kind = type(module)
        if kind not in wrapped:
            wrapped[kind] = getattr(kind, "_get_fsdp_state", None)
        attributes = module.__dict__
        if "_handle" in attributes or "_handles" in attributes:
            for handle in attributes.get("_handles") or [attributes.get("_handle")]:
                flat = getattr(handle, "flat_param", None)
                if flat is not None:
                    _walk_flat_parameter(flat, path, parameters, storages)
        if wrapped[kind] is not None:
            _walk_fsdp2(module._get_fsdp_state(), path, parameters, storages)  # noqa: SLF001 - looked for above


def _walk_flat_parameter(flat: Any, path: Name, parameters: Parameters, storages: Storages) -> None:  # noqa: ANN401 - FlatParameter
    for attribute, value in list(vars(flat).items()):
        if GATHERED_NAME.search(attribute) and not GRADIENT_NAME.search(attribute):
            for tensor in storages.tensors_in(value):
                storages.add("communication_buffers", tensor, (path, attribute))
    name = (path, "flat_param")
    parameters[id(flat)] = flat, name
    local = getattr(flat, "_local_shard", None)
    if local is not None:
        storages.add("weights", local, name)
    storages.add("weights", flat, name)


def _walk_fsdp2(state: Any, path: Name, parameters: Parameters, storages: Storages) -> None:  # noqa: ANN401 - FSDPState
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        groups = [getattr(state, "_fsdp_param_group", None)]
    for group in groups:
        if group is None:
            continue
        for member in list(group.fsdp_params):
            _walk_fsdp2_parameter(member, path, parameters, storages)
        for owner in (group, getattr(group, "comm_ctx", None)):
            for attribute, value in list(getattr(owner, "__dict__", {}).items()):
                if attribute not in {"fsdp_params", "modules"}:
                    for tensor in storages.tensors_in(value):
                        storages.add("communication_buffers", tensor, (path, attribute.lstrip("_")))


def _walk_fsdp2_parameter(member: Any, path: Name, parameters: Parameters, storages: Storages) -> None:  # noqa: ANN401 - FSDPParam
    info = getattr(member, "_module_info", None)
    own = getattr(info, "param_name", "parameter")
    name = getattr(member, "_param_fqn", None) or (path, own)
    for attribute, role in FSDP2_ROLES:
        value = getattr(member, attribute, None)
        for tensor in storages.tensors_in(value):
            label = name if role == "weights" else (attribute.lstrip("_"), name, "of")
            storages.add(role, tensor, label)
    for attribute in ("sharded_param", "_unsharded_param"):
        parameter = getattr(member, attribute, None)
        if parameter is not None:
            parameters[id(parameter)] = parameter, name


def bucket_bytes(modules: list[Module], storages: Storages) -> dict[tuple[str, str], list[int]]:
    """Sizes of DDP's buckets by device and role, without those that gradients are views of.

    The reducer shows its buckets to nobody; it tells their sizes in its log. Where it does not, one size stands for all: that of the
    gradients that it reduces.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for module, _ in modules:
        if type(module).__name__ != "DistributedDataParallel" or getattr(module, "reducer", None) is None:
            continue
        reduced = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not reduced:
            continue
        sizes = _logged_sizes(module) or [sum(parameter.numel() * parameter.element_size() for parameter in reduced)]
        if getattr(module, "gradient_as_bucket_view", False):
            for size in _gradient_sizes(reduced, storages):
                if size in sizes:
                    sizes.remove(size)
        if sizes:
            found.setdefault((str(reduced[0].device), "communication_buffers"), []).extend(sizes)
    return found


def _logged_sizes(module: Any) -> list[int]:  # noqa: ANN401 - DistributedDataParallel
    """The buckets' bytes as DDP logs them; empty where it does not."""
    try:
        texts = module.logger._get_ddp_logging_data().strs_map  # noqa: SLF001 - what DDP's own `_get_ddp_logging_data` reads
    except (AttributeError, RuntimeError):
        return []
    sizes = texts.get("rebuilt_bucket_sizes") or texts.get("bucket_sizes") or ""
    return [int(number) for number in (part.strip() for part in sizes.split(",")) if number.isdecimal()]


def _gradient_sizes(parameters: list[Any], storages: Storages) -> list[int]:
    """Bytes of the storages that gradients lie in."""
    found: dict[int, int] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            key = parameter.grad.untyped_storage()._cdata  # noqa: SLF001 - as in Storages
            if key in storages.found:
                found[key] = storages.found[key][2]
    return list(found.values())
