"""What a walk found, as figures: bytes by device and role, the largest storages with their names, addresses by role."""

import functools
import itertools
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from advisor.client.registry_names import text_of
from advisor.client.registry_storages import Storage

ROLES = (
    "weights",
    "buffers",
    "gradients",
    "optimizer_states",
    "kv_cache",
    "inputs",
    "communication_buffers",
    "outputs",
    "held",
)
"""What a storage is. `outputs`: results that variables hold, with the graph behind them; `held`: other tensors that variables hold."""

REST_ROLES = {"forward": "activations", "backward": "activations"}
"""What the rest is, by phase: saved for backward, and temporaries of the running operators. In any other phase it is not told."""

UNKNOWN = "unattributed"

_device_and_role_of, _size_of, _address_of = itemgetter(1, 0), itemgetter(2), itemgetter(3)

MOST_NAMED = 32
"""Storages that a walk names."""

ROUNDING_BYTES = 512
"""A block of a GPU's caching allocator is a multiple of this (c10/core/CachingAllocator, kMinBlockSize)."""


class Named(NamedTuple):
    """A large storage: the tensor that shows it best, "exp_avg of blocks.0.mlp.weight"."""

    name: str
    role: str
    device: str
    size_bytes: int
    shape: tuple[int, ...]
    dtype: str


class Device(NamedTuple):
    """The storages of one device.

    Attributes:
        device: "cpu", "cuda:0".
        roles: bytes by role, those of ROLES that have any.
        counts: storages by role.
        rounded_bytes: of all, each rounded up as a GPU's allocator does; on a CPU the bytes themselves.
        allocated_bytes: what the allocator holds in all, as the caller told; None where nobody knows.
        rest_bytes: allocated less rounded; None where the former is.
        rest_role: what the rest is: "activations" in forward and backward, else "unattributed".
    """

    device: str
    roles: dict[str, int]
    counts: dict[str, int]
    rounded_bytes: int
    allocated_bytes: int | None
    rest_bytes: int | None
    rest_role: str


class Walk(NamedTuple):
    """What is alive at a moment, by role.

    Attributes:
        moment: why the walk was made: "interval", "peak", "failure", ...
        step / phase: of the timeline.
        seconds: that the walk took.
        devices: by name.
        largest: largest first.
        trainable_bytes: of parameters that require a gradient, all devices.
        ranges: by device the address, bytes and role of each storage, by address; empty where addresses were not asked for.
        unaddressed: by device and role, sizes of blocks that are known without their addresses: DDP's buckets.
        notes: what a reader must know.
        faults: parts of the walk that failed; their storages are in the rest.
    """

    moment: str
    step: int
    phase: str
    seconds: float
    devices: tuple[Device, ...]
    largest: tuple[Named, ...]
    trainable_bytes: int
    ranges: dict[str, list[tuple[int, int, str]]]
    unaddressed: dict[tuple[str, str], list[int]]
    notes: tuple[str, ...]
    faults: tuple[str, ...]

    def content(self) -> dict[str, Any]:
        """The walk as JSON: the file `registry-N.json`."""
        return {
            "basis": "REGISTRY",
            "version": 1,
            "moment": self.moment,
            "step": self.step,
            "phase": self.phase,
            "walk_seconds": self.seconds,
            "devices": [
                {
                    "device": device.device,
                    "entries": device.roles,
                    "storage_counts": device.counts,
                    "rounded_bytes": device.rounded_bytes,
                    "allocated_bytes": device.allocated_bytes,
                    "rest_bytes": device.rest_bytes,
                    "rest_role": device.rest_role,
                }
                for device in self.devices
            ],
            "trainable_bytes": self.trainable_bytes,
            "largest": [
                {"name": one.name, "role": one.role, "device": one.device, "bytes": one.size_bytes, "shape": one.shape, "dtype": one.dtype}
                for one in self.largest
            ],
            "addresses": self.addresses(),
            "unaddressed": [{"device": device, "role": role, "bytes": sizes} for (device, role), sizes in self.unaddressed.items()],
            "notes": self.notes,
            "faults": self.faults,
        }

    def addresses(self) -> dict[str, Any]:
        """Address ranges to roles, in columns: for each device `address`, `bytes` and `role`, an index into `roles`."""
        devices = {}
        for device, ranges in self.ranges.items():
            starts, sizes, roles = ([part[column] for part in ranges] for column in range(3))
            devices[device] = {"address": starts, "bytes": sizes, "role": [ROLES.index(role) for role in roles]}
        return {"roles": ROLES, "devices": devices}


def totals(
    storages: Iterable[Storage], unaddressed: Mapping[tuple[str, str], list[int]], allocated: Mapping[str, int], phase: str
) -> tuple[Device, ...]:
    """Sum storages up by device and role.

    Args:
        storages: each once.
        unaddressed: as in Walk.
        allocated: bytes that each device's allocator holds.
        phase: of the timeline; it tells what the rest is.
    """
    sums: dict[tuple[str, str], list[int]] = {}
    for key, group in itertools.groupby(storages, _device_and_role_of):
        sizes = [storage[2] for storage in group]
        total = sums.setdefault(key, [0, 0, 0])
        total[0] += sum(sizes)
        total[1] += len(sizes)
        total[2] += _rounded(sizes, key[0])
    for key, sizes in unaddressed.items():
        total = sums.setdefault(key, [0, 0, 0])
        total[0] += sum(sizes)
        total[1] += len(sizes)
        total[2] += _rounded(sizes, key[0])
    found = []
    for device in sorted({device for device, _ in sums} | set(allocated)):
        own = {role: sums[device, role] for role in ROLES if (device, role) in sums}
        rounded = sum(total[2] for total in own.values())
        held = allocated.get(device)
        rest = None if held is None else held - rounded
        roles = {role: total[0] for role, total in own.items()}
        counts = {role: total[1] for role, total in own.items()}
        found.append(Device(device, roles, counts, rounded, held, rest, REST_ROLES.get(phase, UNKNOWN)))
    return tuple(found)


@functools.lru_cache(maxsize=64)
def _dtype_name(dtype: Any) -> str:  # noqa: ANN401 - a torch.dtype
    return str(dtype).removeprefix("torch.")


def _rounded(sizes: list[int], device: str) -> int:
    return sum(sizes) if device == "cpu" else sum(-(-size // ROUNDING_BYTES) * ROUNDING_BYTES for size in sizes)


def named(storages: Iterable[Storage]) -> tuple[Named, ...]:
    """The largest storages with their names, largest first."""
    return tuple(
        Named(text_of(name), role, device, size, tuple(tensor.shape), _dtype_name(tensor.dtype))
        for role, device, size, _, tensor, name in sorted(storages, key=_size_of, reverse=True)[:MOST_NAMED]
    )


def without_overlap(storages: Iterable[Storage]) -> tuple[list[Storage], dict[str, list[tuple[int, int, str]]]]:
    """Storages that show the same memory counted once (arrays shared with numpy, exported buffers), and the ranges by device.

    Of two storages that overlap the one that begins first keeps its bytes, the other what is beyond. Storages without an address stay
    as they are.
    """
    kept: list[Storage] = []
    by_device: dict[str, list[Storage]] = {}
    for storage in storages:
        if storage[3]:
            by_device.setdefault(storage[1], []).append(storage)
        else:
            kept.append(storage)
    ranges: dict[str, list[tuple[int, int, str]]] = {}
    for device, addressed in by_device.items():
        addressed.sort(key=_address_of)
        own: list[tuple[int, int, str]] = []
        end = 0
        for storage in addressed:
            role, _, size, address, tensor, name = storage
            if address >= end:
                kept.append(storage)
                own.append((address, size, role))
            elif address + size > end:
                kept.append((role, device, address + size - end, end, tensor, name))
                own.append((end, address + size - end, role))
            end = max(end, address + size)
        ranges[device] = own
    return kept, ranges
