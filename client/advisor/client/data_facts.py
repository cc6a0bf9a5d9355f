"""Which data a run reads: loaders and data sets among the callers' variables, their fingerprints, sizes and files.

No length is asked of a class that is not torch's or Hugging Face's own: `__len__` may read a disk. The sizes of what such an object
holds say nearly the same.
"""

from itertools import islice
from typing import Any

from advisor.client.frame_scan import Scan, Variable
from advisor.client.object_fields import class_path, field, instance_dict, is_a
from advisor.client.plain_values import PlainValues

LONGEST_WORD = 200
"""Letters of a text that is a setting of a data set (its path, its split); longer ones are data."""
MOST_SIZES = 40
MOST_FILES = 64
MOST_DATASETS = 32
DEEPEST_WRAPPING = 4
"""A subset of a concatenation of subsets."""

LOADER_SETTINGS = (
    *("batch_size", "num_workers", "drop_last", "pin_memory", "prefetch_factor", "persistent_workers", "timeout"),
    *("multiprocessing_context", "in_order"),
)

SIZED = (list, tuple, dict, set, frozenset, str, bytes)

CORPUS_FIELDS = ("builder_name", "dataset_name", "config_name", "version")
"""Of a data set's description by Hugging Face."""

NUMPY_FILE = "numpy.memmap"
GENERATORS = ("torch._C.Generator", "torch.Generator")
DATASETS = ("torch.utils.data.dataset.Dataset", "datasets.arrow_dataset.Dataset", "datasets.iterable_dataset.IterableDataset")
WRAPPED = ("dataset", "hf_dataset", "data")
"""Attributes that hold what a data set is made of."""


def facts_of_data(scan: Scan, values: PlainValues) -> dict[str, Any]:
    """Loaders, data sets and files.

    Returns:
        `loaders` and `datasets`: what each is; `fingerprints`: name → what Hugging Face's datasets computed from how the data was made;
        `files`: paths that arrays are mapped from, for the sidecar to hash.
    """
    look = _Look(values)
    for each in scan.by_kind.get("loader", ()):
        look.loader(each)
    for each in scan.by_kind.get("dataset", ()):
        look.dataset(each.value, each.name)
    for each in scan.by_kind.get("file", ()):
        look.file(each.value)
    return {"loaders": look.loaders, "datasets": look.datasets, "fingerprints": look.fingerprints, "files": look.files}


class _Look:
    """One look at the data."""

    def __init__(self, values: PlainValues) -> None:
        self.loaders: list[dict[str, Any]] = []
        self.datasets: list[dict[str, Any]] = []
        self.fingerprints: dict[str, str] = {}
        self.files: list[str] = []
        self._values = values
        self._seen: set[int] = set()

    def loader(self, loader: Variable) -> None:
        own = instance_dict(loader.value)
        generator, sampler, dataset = own.get("generator"), own.get("sampler"), own.get("dataset")
        if dataset is not None:
            self.dataset(dataset, f"{loader.name}.dataset")
        facts = {
            "name": loader.name,
            "where": loader.where,
            "class": class_path(type(loader.value)),
            "sampler": class_path(type(sampler)) if sampler is not None else None,
            "dataset": class_path(type(dataset)) if dataset is not None else None,
            "collate": self._values.read(own.get("collate_fn"), "collate"),
            "generator_seed": None,
            **{name: self._values.read(own[name], name) for name in LOADER_SETTINGS if name in own},
        }
        if generator is not None and class_path(type(generator)) in GENERATORS:
            facts["generator_seed"] = generator.initial_seed()
        self.loaders.append(facts)

    def dataset(self, dataset: Any, name: str, level: int = 0) -> None:  # noqa: ANN401 - a data set
        """A data set, and what it is made of."""
        if id(dataset) in self._seen or level > DEEPEST_WRAPPING or len(self.datasets) >= MOST_DATASETS:
            return
        self._seen.add(id(dataset))
        own = instance_dict(dataset)
        if is_a(dataset, "datasets.dataset_dict.DatasetDict"):
            parts = [(f"{name}.{split}", part) for split, part in islice(dict.items(dataset), MOST_DATASETS)]
        else:
            self.datasets.append({"name": name, "class": class_path(type(dataset)), **self._of_dataset(dataset, name, own)})
            parts = [(f"{name}.{attribute}", own[attribute]) for attribute in WRAPPED if attribute in own]
            several = own.get("datasets")
            parts += [(f"{name}.{at}", part) for at, part in enumerate(several[:MOST_DATASETS])] if type(several) is list else []
        for inner_name, inner in parts:
            if is_a(inner, *DATASETS):
                self.dataset(inner, inner_name, level + 1)

    def _of_dataset(self, dataset: Any, name: str, own: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a data set
        facts: dict[str, Any] = {"length": _length_of(dataset, own)}
        fingerprint = own.get("_fingerprint")
        if type(fingerprint) is str:
            facts["fingerprint"] = self.fingerprints[name] = fingerprint
            facts["corpus"] = _corpus_of(own.get("_info"), self._values)
            facts["split"] = self._values.read(own.get("_split"), "split")
        else:
            facts["settings"], facts["sizes"] = _held_by(own, self._values)
            for value in list(own.values()):
                self.file(value)
        return facts

    def file(self, array: Any) -> None:  # noqa: ANN401 - any value
        """The file that an array is mapped from."""
        if class_path(type(array)) != NUMPY_FILE or len(self.files) >= MOST_FILES:
            return
        path = str(instance_dict(array).get("filename") or "")
        if path and path not in self.files:
            self.files.append(path)


def _length_of(dataset: Any, own: dict[str, Any]) -> int | None:  # noqa: ANN401 - a data set
    """How many examples, where that can be had without running code of the user's."""
    path = class_path(type(dataset))
    if path == "datasets.arrow_dataset.Dataset":
        return len(dataset)
    if path == "torch.utils.data.dataset.TensorDataset":
        tensors = own.get("tensors") or ()
        return int(tensors[0].shape[0]) if tensors and class_path(type(tensors[0])) == "torch.Tensor" else None
    if path == "torch.utils.data.dataset.Subset":
        return len(own["indices"]) if type(own.get("indices")) in (list, range, tuple) else None
    sizes = own.get("cumulative_sizes")
    if path == "torch.utils.data.dataset.ConcatDataset" and type(sizes) is list and sizes:
        return int(sizes[-1])
    return len(dataset) if type(dataset) in (list, tuple) else None


def _corpus_of(description: Any, values: PlainValues) -> dict[str, Any]:  # noqa: ANN401 - DatasetInfo
    found = {}
    for name in CORPUS_FIELDS:
        value = field(description, name)
        if class_path(type(value)) == "datasets.utils.version.Version":
            value = field(value, "version_str")
        if value is not None:
            found[name] = values.read(value, name)
    return found


def _held_by(own: dict[str, Any], values: PlainValues) -> tuple[dict[str, Any], dict[str, int]]:
    """An object's numbers and words, and the lengths of its containers and arrays."""
    settings: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for name, value in list(own.items())[:MOST_SIZES]:
        kind, path = type(value), class_path(type(value))
        if kind in (bool, int, float) or (kind is str and len(value) <= LONGEST_WORD) or path.startswith("pathlib."):
            settings[str(name)] = values.read(value, str(name))
        elif kind in SIZED:
            sizes[str(name)] = len(value)
        elif path in ("numpy.ndarray", NUMPY_FILE, "torch.Tensor") and len(value.shape):
            sizes[str(name)] = int(value.shape[0])
    return settings, sizes
