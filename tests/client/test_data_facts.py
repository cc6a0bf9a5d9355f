import types

import pytest

from advisor.client.data_facts import facts_of_data
from advisor.client.frame_scan import Scan, Variable
from advisor.client.plain_values import PlainValues


def a_scan(**by_kind):
    return Scan(
        {kind: [Variable(name, value, "main in train.py") for name, value in each.items()] for kind, each in by_kind.items()},
        [],
        [],
        [],
        False,
    )


def facts(**by_kind):
    return facts_of_data(a_scan(**by_kind), PlainValues())


def an_instance(path, *bases, **attributes):
    module, _, name = path.rpartition(".")
    value = type(name, bases, {"__module__": module})()
    value.__dict__.update(attributes)
    return value


class Untouchable:
    def __len__(self):
        raise AssertionError("a length may read a disk")

    __getitem__ = __iter__ = __len__


TORCH_DATASET = type("Dataset", (), {"__module__": "torch.utils.data.dataset"})


def test_a_loader_is_kept_with_its_settings_and_classes():
    dataset = an_instance("project.data.Words", TORCH_DATASET)
    sampler = an_instance("torch.utils.data.sampler.RandomSampler")
    attributes = {"batch_size": 8, "num_workers": 2, "pin_memory": True, "drop_last": False, "dataset": dataset, "sampler": sampler}
    loader = an_instance("torch.utils.data.dataloader.DataLoader", **attributes, collate_fn=len)
    found = facts(loader={"loader": loader})
    (only,) = found["loaders"]
    assert only["batch_size"] == 8
    assert only["sampler"] == "torch.utils.data.sampler.RandomSampler"
    assert only["dataset"] == "project.data.Words"
    assert [each["name"] for each in found["datasets"]] == ["loader.dataset"]


def test_a_users_data_set_gives_sizes_and_settings_and_is_not_asked_its_length():
    dataset = an_instance(
        "project.data.Words", Untouchable, TORCH_DATASET, samples=[1] * 7, block=128, root="data/x", text="long " * 1000, model=object()
    )
    (found,) = facts(dataset={"train": dataset})["datasets"]
    assert found["length"] is None
    assert found["sizes"] == {"samples": 7, "text": 5000}
    assert found["settings"] == {"block": 128, "root": "data/x"}


def test_a_data_set_of_hugging_face_gives_its_fingerprint():
    description = types.SimpleNamespace(
        dataset_name="wiki", config_name="en", version="1.0.0", builder_name=None, download_checksums={"x": 1}
    )
    kind = type("Dataset", (), {"__module__": "datasets.arrow_dataset", "__len__": lambda _: 42})
    dataset = kind()
    dataset.__dict__.update(_fingerprint="8a5edab282632443", _info=description, _split="train")
    found = facts(dataset={"ds": dataset})
    assert found["fingerprints"] == {"ds": "8a5edab282632443"}
    (only,) = found["datasets"]
    assert only["length"] == 42
    assert only["corpus"] == {"dataset_name": "wiki", "config_name": "en", "version": "1.0.0"}
    assert only["split"] == "train"


def test_the_parts_of_a_dictionary_of_data_sets_are_kept_each():
    parts = {name: an_instance("datasets.arrow_dataset.Dataset", list, _fingerprint=f"f-{name}") for name in ("train", "test")}
    found = facts(dataset={"ds": an_instance("datasets.dataset_dict.DatasetDict", dict)})
    assert found["datasets"] == []
    kind = type("DatasetDict", (dict,), {"__module__": "datasets.dataset_dict"})
    assert facts(dataset={"ds": kind(parts)})["fingerprints"] == {"ds.train": "f-train", "ds.test": "f-test"}


def test_a_subset_of_a_concatenation_is_unwrapped_and_what_wraps_itself_ends():
    base = an_instance("project.data.Words", TORCH_DATASET, n=3)
    both = an_instance("torch.utils.data.dataset.ConcatDataset", TORCH_DATASET, datasets=[base, base], cumulative_sizes=[3, 6])
    subset = an_instance("torch.utils.data.dataset.Subset", TORCH_DATASET, dataset=both, indices=[0, 1])
    base.__dict__["dataset"] = subset
    found = facts(dataset={"train": subset})["datasets"]
    assert [(each["name"], each["length"]) for each in found] == [("train", 2), ("train.dataset", 6), ("train.dataset.0", None)]


def test_the_files_that_arrays_are_mapped_from_are_kept_once(tmp_path):
    numpy = pytest.importorskip("numpy", reason="maps files")
    path = tmp_path / "train.bin"
    path.write_bytes(bytes(64))
    array = numpy.memmap(path, dtype="uint16", mode="r")
    dataset = an_instance("project.data.Tokens", TORCH_DATASET, tokens=array)
    found = facts(file={"tokens": array}, dataset={"train": dataset})
    assert found["files"] == [str(path)]
    assert found["datasets"][0]["sizes"] == {"tokens": 32}


class TestWithTorch:
    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch", reason="real loaders are read")

    def test_a_real_loader_is_read(self):
        import torch
        from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

        data = TensorDataset(torch.zeros(10, 3))
        loader = DataLoader(
            ConcatDataset([Subset(data, range(4)), data]), batch_size=2, shuffle=True, generator=torch.Generator().manual_seed(5)
        )
        found = facts(loader={"loader": loader})
        (only,) = found["loaders"]
        assert only["batch_size"] == 2
        assert only["generator_seed"] == 5
        assert only["sampler"] == "torch.utils.data.sampler.RandomSampler"
        lengths = {each["name"]: each["length"] for each in found["datasets"]}
        assert lengths == {"loader.dataset": 14, "loader.dataset.0": 4, "loader.dataset.0.dataset": 10}

    def test_a_real_data_set_of_hugging_face_is_read(self):
        datasets = pytest.importorskip("datasets", reason="its fingerprint is read")
        data = datasets.Dataset.from_dict({"x": [1, 2, 3]})
        found = facts(dataset={"data": data})
        assert found["fingerprints"] == {"data": data._fingerprint}
        assert found["datasets"][0]["length"] == 3
