"""What is alive on a CPU, measured without the registry: every result of every dispatched operator, by weak references to storages."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class CpuAllocations(TorchDispatchMode):
    """Storages that operators made while the mode was on; `part` is what the caller says is going on.

    A weak reference keeps the identity of a storage from being given to another, not its memory.
    """

    def __init__(self):
        super().__init__()
        self.part = "setup"
        self.operator_count = 0
        self._made = {}

    def __torch_dispatch__(self, operator, kinds, arguments=(), options=None):
        self.operator_count += 1
        results = operator(*arguments, **(options or {}))
        for tensor in tree_leaves(results):
            if isinstance(tensor, torch.Tensor):
                self.note(tensor, str(operator))
        return results

    def note(self, tensor, operator="noted"):
        tensor = getattr(tensor, "_local_tensor", tensor)
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:
            return
        if storage._cdata not in self._made and storage.device.type == "cpu":
            self._made[storage._cdata] = StorageWeakRef(storage), self.part, operator

    def alive(self):
        """(address, bytes, part in which it was made, operator) of each live storage; FSDP resizes its storages, so both are read now."""
        self._made = {key: made for key, made in self._made.items() if not made[0].expired()}
        found = []
        for reference, part, operator in self._made.values():
            place = place_of(reference)
            if place is not None:
                found.append((*place, part, operator))
        return found


def place_of(reference):
    """(address, bytes) of a storage that lives; None where it is dead, empty, or a wrapper's without memory."""
    storage = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
    try:
        return (storage.data_ptr(), storage.nbytes()) if storage is not None and storage.nbytes() else None
    except RuntimeError:
        return None


class Saved:
    """What the autograd graph saved for backward, by hooks on saving: addresses of storages that still live."""

    def __init__(self):
        self._saved = {}

    @contextmanager
    def watching(self):
        with saved_tensors_hooks(self._pack, lambda tensor: tensor):
            yield self

    def note(self, tensor):
        """A tensor that a graph holds by other means: the input of a checkpointed block."""
        storage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
        self._saved[storage._cdata] = StorageWeakRef(storage)

    def addresses(self):
        return {place[0] for reference in self._saved.values() if (place := place_of(reference)) is not None}

    def _pack(self, tensor):
        self.note(tensor)
        return tensor


def profiled_live_bytes(work):
    """Bytes alive at each mark of a piece of work, by the allocator's own events in torch's profiler.

    Args:
        work: called with a function that marks a moment by its name; everything it counts must be allocated within.
    """

    def mark(name):
        with torch.profiler.record_function(f"mark:{name}"):
            pass

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        work(mark)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text("utf-8"))["traceEvents"]
    alive, marks = {}, {}
    for event in sorted((event for event in events if "ts" in event), key=lambda event: float(event["ts"])):
        if event.get("name") == "[memory]":
            address, size = event["args"]["Addr"], int(event["args"]["Bytes"])
            if size > 0:
                alive[address] = size
            else:
                alive.pop(address, None)
        elif str(event.get("name")).startswith("mark:"):
            marks.setdefault(event["name"].removeprefix("mark:"), sum(alive.values()))
    return marks
