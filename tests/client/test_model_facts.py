import types

import pytest

from advisor.client.model_facts import MOST_GROUPS, facts_of_models, facts_of_optimizers, facts_of_schedules
from advisor.client.plain_values import PlainValues
from advisor.client.redaction import REDACTED


class Tensor:
    """A parameter, as far as it is asked."""

    __module__, __qualname__ = "torch.nn.parameter", "Parameter"

    def __init__(self, count, dtype="torch.float32", requires_grad=True):
        self.count, self.dtype, self.requires_grad = count, dtype, requires_grad

    def numel(self):
        if self.count is None:
            raise ValueError("an uninitialized parameter has no shape")
        return self.count


class Params4bit(Tensor):
    __module__, __qualname__ = "bitsandbytes.nn.modules", "Params4bit"


def a_module(parameters=(), modules=None, **more):
    class Net:
        def __getattr__(self, name):
            raise AssertionError(name)

        def parameters(self):
            raise AssertionError

        modules = parameters

    module = Net()
    module.__dict__.update(
        _parameters={f"p{at}": each for at, each in enumerate(parameters)}, _modules=modules or {}, training=True, **more
    )
    return module


def of(*models):
    return facts_of_models(models, None, PlainValues())


def test_elements_are_counted_by_dtype_and_by_whether_they_are_trained():
    inner = a_module([Tensor(10, "torch.bfloat16", requires_grad=False), None])
    (found,) = of(a_module([Tensor(5), Tensor(7)], {"inner": inner, "gone": None}))
    assert found["parameter_count"] == 22
    assert found["trainable_parameter_count"] == 12
    assert found["parameter_count_by_dtype"] == {"float32": 12, "bfloat16": 10}
    assert found["module_count"] == 2
    assert found["is_training"] is True
    assert not found["is_cut"]


def test_tied_parameters_and_shared_modules_count_once():
    tied = Tensor(5)
    shared = a_module([tied])
    (found,) = of(a_module([tied], {"a": shared, "b": shared}))
    assert found["parameter_count"] == 5
    assert found["module_count"] == 2


def test_a_module_that_contains_itself_ends():
    module = a_module([Tensor(1)])
    module.__dict__["_modules"]["self"] = module
    (found,) = of(module)
    assert found["module_count"] == 1


def test_a_parameter_without_a_shape_is_passed_by():
    assert of(a_module([Tensor(None), Tensor(3)]))[0]["parameter_count"] == 3


def test_quantized_parameters_are_named_as_such():
    assert of(a_module([Params4bit(4, "torch.uint8"), Tensor(3)]))[0]["special_parameters"] == {"bitsandbytes.nn.modules.Params4bit": 1}


def test_what_wrappers_wrap_is_named_and_its_configuration_read():
    config = {"hidden_size": 8, "hub_token": "abc"}
    model = a_module([Tensor(1)], gradient_checkpointing=True, config=config)
    (found,) = of(a_module([], {"module": a_module([], {"_orig_mod": model})}))
    assert len(found["inside"]) == 2
    assert found["config"] == {"hidden_size": 8, "hub_token": REDACTED}
    assert found["checkpointing"] is True


def test_a_model_inside_another_is_not_listed_again():
    inner = a_module([Tensor(1)])
    outer = a_module([], {"inner": inner})
    assert [each["module_count"] for each in of(inner, outer)] == [2]


def an_optimizer(*groups):
    return types.SimpleNamespace(param_groups=list(groups))


def test_an_optimizers_groups_are_kept_without_their_tensors():
    group = {"params": [1, 2, 3], "lr": 0.1, "betas": (0.9, 0.999), "weight_decay": 0.0, "fused": None, "hook": print}
    (found,) = facts_of_optimizers([an_optimizer(group)], PlainValues())
    assert found["class"] == "types.SimpleNamespace"
    assert found["groups"] == [
        {"lr": 0.1, "betas": [0.9, 0.999], "weight_decay": 0.0, "fused": None, "hook": "<builtin_function_or_method>", "tensor_count": 3}
    ]
    assert found["around"] is None


def test_a_wrapped_optimizer_is_looked_into():
    wrapper = type("AcceleratedOptimizer", (), {"__module__": "accelerate.optimizer"})()
    wrapper.optimizer = an_optimizer({"params": [], "lr": 1.0})
    (found,) = facts_of_optimizers([wrapper], PlainValues())
    assert found["class"] == "types.SimpleNamespace"
    assert found["around"] == "accelerate.optimizer.AcceleratedOptimizer"
    assert found["groups"][0]["lr"] == 1.0


def test_of_very_many_groups_some_are_kept_and_all_counted():
    (found,) = facts_of_optimizers([an_optimizer(*({"params": [], "lr": 1.0} for _ in range(1000)))], PlainValues())
    assert len(found["groups"]) == MOST_GROUPS
    assert found["group_count"] == 1000


def test_something_else_than_an_optimizer_has_no_groups():
    assert facts_of_optimizers([object()], PlainValues())[0]["groups"] == []


def test_a_schedule_gives_its_plain_attributes():
    schedule = types.SimpleNamespace(T_max=100, base_lrs=[0.1], optimizer=object(), _step_count=1, lr_lambdas=[print])
    assert facts_of_schedules([schedule], PlainValues()) == [
        {"class": "types.SimpleNamespace", "settings": {"T_max": 100, "base_lrs": [0.1]}}
    ]


class TestWithTorch:
    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch", reason="real models are counted")

    def test_the_counts_are_those_that_torch_gives(self):
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.LazyLinear(3)).to(torch.bfloat16)
        model[0].weight.requires_grad_(False)
        known = [each for each in model.parameters() if not isinstance(each, nn.UninitializedParameter)]
        (found,) = facts_of_models([model], torch, PlainValues())
        assert found["parameter_count"] == sum(each.numel() for each in known)
        assert found["trainable_parameter_count"] == sum(each.numel() for each in known if each.requires_grad)
        assert found["parameter_count_by_dtype"] == {"bfloat16": found["parameter_count"]}
        assert found["special_parameters"] == {"torch.nn.parameter.UninitializedParameter": 2}
        assert found["module_count"] == len(list(model.modules()))

    def test_no_code_of_a_parameters_class_runs(self):
        import torch
        from torch import nn

        class Loud(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, kinds, args=(), kwargs=None):
                raise AssertionError(function)

        model = nn.Linear(2, 2)
        model._parameters["weight"] = torch.zeros(2, 2).as_subclass(Loud)
        (found,) = facts_of_models([model], torch, PlainValues())
        assert found["parameter_count"] == 6

    def test_a_compiled_model_names_what_is_inside(self):
        import torch

        (found,) = facts_of_models([torch.compile(torch.nn.Linear(2, 2))], torch, PlainValues())
        assert found["inside"] == ["torch.nn.modules.linear.Linear"]
        assert found["parameter_count"] == 6

    def test_a_learning_rate_in_a_tensor_is_read_where_nothing_has_to_be_waited_for(self):
        import torch

        optimizer = torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), lr=torch.tensor(0.5))
        (found,) = facts_of_optimizers([optimizer], PlainValues())
        assert found["groups"][0]["lr"] == 0.5
        assert found["groups"][0]["tensor_count"] == 2
        meta = torch.optim.Adam(torch.nn.Linear(2, 2).parameters(), lr=0.5)
        meta.param_groups[0]["lr"] = torch.tensor(0.5, device="meta")
        assert facts_of_optimizers([meta], PlainValues())[0]["groups"][0]["lr"] == "<torch.Tensor>"
