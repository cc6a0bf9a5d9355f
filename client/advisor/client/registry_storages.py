"""The storages under tensors, each counted once, to the role that claimed it first.

Nothing here runs an operator, reads a value or keeps a tensor alive longer than a walk: sizes and addresses are read from storages.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from advisor.client.registry_names import Name

MOST_TENSORS = 4096
"""Tensors looked for in one container: more is a data set, not a training's state."""

DEEPEST_LEVEL = 4
"""Levels of containers looked into: `optimizer.state[p]` of the known optimizers has at most three."""

BARE_KINDS: frozenset[type] = frozenset({int, float, bool, str, bytes, type(None)})

Storage = tuple[str, str, int, int, Any, Name]
"""A live storage, during a walk: role, device ("cuda:0"), bytes, address of the first (0 where it was not asked for or there is none), the
tensor through which it was found, and its name. A plain tuple: a walk makes thousands."""


class Storages:
    """What one walk found.

    Attributes:
        found: by the identity of the storage.
        plain: classes of tensors that are one storage.
        unreadable_count: tensors whose memory torch hides.
    """

    def __init__(self, torch: ModuleType, *, with_addresses: bool) -> None:
        """Empty.

        Args:
            torch: the module; never imported from here.
            with_addresses: read addresses as well, for joining with an allocator's snapshot.
        """
        self.plain = frozenset({torch.Tensor, torch.nn.Parameter})
        self.found: dict[int, Storage] = {}
        self.unreadable_count = 0
        self._tensor = torch.Tensor
        self._is_copy_on_write = getattr(torch._C, "_is_cow_tensor", None)  # noqa: SLF001 - guarded
        self._with_addresses = with_addresses
        self._devices: dict[Any, str] = {}
        self._kinds: dict[type, bool] = {kind: kind not in BARE_KINDS for kind in (*BARE_KINDS, *self.plain)}

    def is_tensor(self, value: Any) -> bool:  # noqa: ANN401 - any object
        """Whether it is one, by its type alone: a proxy's `__class__` may run somebody's code."""
        kind = type(value)
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = issubclass(kind, self._tensor)
        return known

    def add(self, role: str, tensor: Any, name: Name) -> None:  # noqa: ANN401 - a tensor
        """Count what lies under a tensor, unless another role has it."""
        self.add_all(role, ((tensor, name),))

    def add_all(self, role: str, tensors: Iterable[tuple[Any, Name]]) -> None:
        """The same for many, with their names; a column at a time, which takes half as long as one after the other."""
        plain = self.plain
        pairs = []
        for pair in tensors:
            if type(pair[0]) in plain:
                pairs.append(pair)
            else:
                self._add_parts(role, *pair)
        try:
            storages = [tensor.untyped_storage() for tensor, _ in pairs]
        except (AttributeError, NotImplementedError, RuntimeError):
            for tensor, name in pairs:
                self._add_doubtful(role, tensor, name)
            return
        keys = [storage._cdata for storage in storages]  # noqa: SLF001 - the storage's identity, as torch.multiprocessing uses it
        sizes = [storage.nbytes() for storage in storages]
        found, devices, with_addresses = self.found, self._devices, self._with_addresses
        for key, size, storage, (tensor, name) in zip(keys, sizes, storages, pairs, strict=True):
            if size and key not in found:
                device = devices.get(storage.device)
                if device is None:
                    device = self._device(storage)
                if device:
                    found[key] = role, device, size, self._address(tensor, storage) if with_addresses else 0, tensor, name

    def tensors_in(self, value: Any, level: int = 0) -> Iterator[Any]:  # noqa: ANN401 - any object
        """The tensors in a value: itself, or those in its mappings, lists and tuples, at most MOST_TENSORS of each."""
        if self.is_tensor(value):
            yield value
            return
        kind = type(value)
        if level == DEEPEST_LEVEL or kind in BARE_KINDS:
            return
        if issubclass(kind, (list, tuple, set, frozenset)):
            inner = list(value)
        elif issubclass(kind, dict):
            inner = list(dict.values(value))
        elif issubclass(kind, Mapping):
            inner = list(value.values())
        else:
            return
        for item in inner[:MOST_TENSORS]:
            yield from self.tensors_in(item, level + 1)

    def _device(self, storage: Any) -> str:  # noqa: ANN401 - a storage
        """The device's name; empty for one without memory."""
        device = storage.device
        text = self._devices[device] = "" if device.type == "meta" else str(device)
        return text

    def _address(self, tensor: Any, storage: Any) -> int:  # noqa: ANN401 - as above
        """The first byte's address; 0 where there is none, and where asking would copy the data (copy on write)."""
        try:
            if self._is_copy_on_write is not None and self._is_copy_on_write(tensor):
                return 0
            return int(storage.data_ptr())
        except RuntimeError:
            return 0

    def _add_doubtful(self, role: str, tensor: Any, name: Name) -> None:  # noqa: ANN401 - as above
        """A tensor, or another of its batch, whose storage torch does not show."""
        try:
            tensor.untyped_storage()
        except (AttributeError, NotImplementedError, RuntimeError):
            self._add_without_storage(role, tensor, name)
            return
        self.add(role, tensor, name)

    def _add_parts(self, role: str, tensor: Any, name: Name) -> None:  # noqa: ANN401 - as above
        for part in self._parts(tensor, 0):
            if type(part) in self.plain:
                self.add(role, part, name)
                continue
            try:
                storage = part.untyped_storage()
            except (AttributeError, NotImplementedError, RuntimeError):
                self._add_without_storage(role, part, name)
                continue
            # A wrapper's storage tells a size, but has no address; a fake tensor's warns when it is asked for one.
            device = self._device(storage)
            address = self._address(part, storage) if device else 0
            if address and storage.nbytes():
                self.found.setdefault(storage._cdata, (role, device, storage.nbytes(), address, part, name))  # noqa: SLF001 - as above

    def _parts(self, tensor: Any, level: int) -> Iterator[Any]:  # noqa: ANN401 - as above
        """The plain tensors of a subclass: a DTensor's local one, a quantized one's data and scales, ..."""
        kind = type(tensor)
        if kind in self.plain:
            yield tensor
            return
        if level == DEEPEST_LEVEL:
            return
        local = getattr(tensor, "_local_tensor", None)
        if local is not None:
            yield from self._parts(local, level + 1)
        elif hasattr(kind, "__tensor_flatten__"):
            for attribute in tensor.__tensor_flatten__()[0]:
                part = getattr(tensor, attribute, None)
                if self.is_tensor(part):
                    yield from self._parts(part, level + 1)
        else:
            yield tensor
            for value in list(vars(tensor).values()):
                yield from self._attached(value, level + 1)

    def _attached(self, value: Any, level: int) -> Iterator[Any]:  # noqa: ANN401 - as above
        """Tensors that a subclass carries in its attributes: `quant_state` of bitsandbytes and what is in it."""
        if level == DEEPEST_LEVEL:
            return
        if self.is_tensor(value):
            yield from self._parts(value, level + 1)
        elif type(value).__module__.partition(".")[0] not in {"builtins", "torch"}:
            for inner in list(getattr(value, "__dict__", {}).values()):
                yield from self._attached(inner, level + 1)

    def _add_without_storage(self, role: str, tensor: Any, name: Name) -> None:  # noqa: ANN401 - as above
        """A sparse tensor is its indices and values; one whose memory torch hides is counted as unreadable."""
        parts = []
        layout = str(getattr(tensor, "layout", ""))
        if layout == "torch.sparse_coo":
            parts = [tensor._indices(), tensor._values()]  # noqa: SLF001 - the public ones demand a coalesced tensor
        elif layout in {"torch.sparse_csr", "torch.sparse_bsr"}:
            parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        elif layout in {"torch.sparse_csc", "torch.sparse_bsc"}:
            parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
        self.add_all(role, [(part, name) for part in parts])
        self.unreadable_count += not parts
