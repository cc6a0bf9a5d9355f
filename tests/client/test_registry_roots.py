"""Models and optimizers are found among callers' variables, and by the garbage collector when nothing else helps."""

import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="looks for torch's modules")

from torch import nn  # noqa: E402

from advisor.client.registry import Registry  # noqa: E402 - after the skip
from advisor.client.registry_roots import MOST_VALUES, outermost, scan_frames  # noqa: E402


def found_from_here():
    return scan_frames(sys._getframe(1), torch)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizers = [torch.optim.SGD(model.parameters(), lr=0.1)]

    def step(self):
        return found_from_here()


def test_a_model_is_found_through_the_trainer_that_holds_it():
    model = nn.Linear(2, 2)
    trainer = Trainer(model)
    found = trainer.step()
    assert [one for _, one in found.models] == [model]
    assert found.optimizers == trainer.optimizers


def test_models_in_lists_and_mappings_and_attributes_of_attributes_are_found():
    first, second, third = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    accelerator = type("Accelerator", (), {"__module__": "accelerate"})()
    accelerator._models = [first]
    networks = {"generator": second}
    outer = type("Runner", (), {"__module__": "lib"})()
    outer.strategy = type("Strategy", (), {"__module__": "lib"})()
    outer.strategy.model = third
    expected = {id(first), id(second), id(third)}
    del first, second, third
    assert {id(one) for _, one in found_from_here().models} == expected
    del networks


def test_variables_of_a_script_are_found():
    namespace = {"__name__": "train", "model": nn.Linear(2, 2), "scan": found_from_here}
    exec("found = scan()", namespace)
    assert ("model", namespace["model"]) in namespace["found"].models


def test_only_the_outermost_modules_are_models():
    inner = nn.Linear(2, 2)
    outer = nn.Sequential(nn.Sequential(inner))
    assert outermost([("inner", inner), ("model", outer), ("again", outer)]) == [("model", outer)]


def test_objects_that_answer_to_everything_run_no_code():
    class Proxy:
        @property
        def __class__(self):
            raise AssertionError("asked for its class")

        def __getattr__(self, name):
            if name == "__dict__":
                raise AttributeError(name)
            raise AssertionError(name)

        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = None

    proxy = Proxy()
    assert found_from_here().models == []
    del proxy


def test_a_scan_of_much_data_ends():
    heap = [[SimpleNamespace(value=[number]) for number in range(200)] for _ in range(200)]
    looked = found_from_here()
    assert looked.held == []
    assert MOST_VALUES < 200 * 200
    del heap


def test_the_collector_finds_what_no_frame_holds_and_is_asked_once():
    hidden = [nn.Linear(3, 3)]
    optimizer = torch.optim.SGD(hidden[0].parameters(), lr=0.1)
    registry = Registry()
    registry.add_optimizer(optimizer)
    assert registry.lacks_models()
    registry.find_by_gc()
    assert not registry.lacks_models()
    assert {"weight", "bias"} <= {one.name.rpartition(".")[2] for one in registry.walk().largest}


def test_a_registry_that_knows_the_models_does_not_ask_the_collector():
    model = nn.Linear(3, 3)
    registry = Registry()
    registry.add_model(model)
    registry.add_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    assert not registry.lacks_models()
