"""Train a small model and compare the registry with every dispatch at the moments of a step."""

import sys
from typing import NamedTuple

import torch
from cpu_allocations import CpuAllocations, Saved
from small_models import VOCABULARY, a_model
from torch import nn

from advisor.client.registry import Registry
from advisor.client.registry_walk import Walk

WATCHED_STEP = 2
"""The third: DDP has built its buckets anew by then, and the optimizer has its states."""

MOMENTS = ("forward end", "mid backward", "after backward", "after step", "after zero_grad")


class Moment(NamedTuple):
    """Bytes at a moment.

    Attributes:
        walk: what the registry says.
        alive_bytes: by every dispatch.
        tagged_bytes: alive and under a role of the registry.
        saved_bytes: of the rest, what hooks saw being saved for backward.
        in_flight_bytes: of the rest, what the running backward made itself.
        untagged: what is none of these: (bytes, part, operator) each, largest first.
        dead_bytes: that the registry claims and no dispatch knows.
    """

    walk: Walk
    alive_bytes: int
    tagged_bytes: int
    saved_bytes: int
    in_flight_bytes: int
    untagged: tuple[tuple[int, str, str], ...]
    dead_bytes: int

    @property
    def roles(self):
        return self.walk.devices[0].roles

    @property
    def untagged_ratio(self):
        """Of what is alive; blocks whose size is known without an address (DDP's buckets) are taken out by their sizes."""
        sizes = [size for size, _, _ in self.untagged]
        for size in (size for sizes in self.walk.unaddressed.values() for size in sizes):
            sizes.remove(size)
        return sum(sizes) / self.alive_bytes


def compare(registry, allocations, saved, phase, frame):
    walk = registry.walk(phase=phase, frame=frame, with_addresses=True)
    claimed = {address: size for address, size, _ in walk.ranges["cpu"]}
    alive = allocations.alive()
    known = {address for address, *_ in alive}
    rest = [one for one in alive if one[0] not in claimed]
    kept = saved.addresses() if phase in {"forward", "backward"} else set()
    unsaved = [one for one in rest if one[0] not in kept]
    in_flight = [one for one in unsaved if phase == "backward" and one[2] == "backward"]
    untagged = sorted(((size, part, operator) for _, size, part, operator in unsaved if not (phase == part == "backward")), reverse=True)
    total, unclaimed, unexplained = (sum(one[1] for one in group) for group in (alive, rest, unsaved))
    flying = sum(one[1] for one in in_flight)
    dead = sum(size for address, size in claimed.items() if address not in known)
    return Moment(walk, total, total - unclaimed, unclaimed - unexplained, flying, tuple(untagged), dead)


def moments_of(kind, form, *, wrap=lambda model: model, optimizer_class=torch.optim.AdamW, steps=WATCHED_STEP + 1):
    """The moments of the last step, by name."""
    torch.manual_seed(0)
    found = {}
    with CpuAllocations() as allocations:
        saved, registry = Saved(), Registry()
        inner = a_model(kind, form, saved.note)
        model = wrap(inner)
        optimizer = optimizer_class([parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-3)
        registry.find(sys._getframe())

        def probe(_):
            found["mid backward"] = compare(registry, allocations, saved, "backward", sys._getframe())

        def seen(place, hidden):
            if place == 2 and hidden.requires_grad:
                hidden.register_hook(probe)

        inner.seen = seen
        for _ in range(steps):
            allocations.part = "forward"
            text = torch.randint(VOCABULARY, (8, 65))
            registry.add_batch([text])
            with saved.watching():
                logits = model(text[:, :-1])
                loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))
            found["forward end"] = compare(registry, allocations, saved, "forward", sys._getframe())
            allocations.part = "backward"
            loss.backward()
            allocations.part = "step"
            found["after backward"] = compare(registry, allocations, saved, "other", sys._getframe())
            optimizer.step()
            found["after step"] = compare(registry, allocations, saved, "other", sys._getframe())
            optimizer.zero_grad()
            found["after zero_grad"] = compare(registry, allocations, saved, "other", sys._getframe())
    return found
