"""Roles of single storages: what is counted, to whom, once, under which name; and that a walk touches nothing."""

import gc
import sys
import weakref

import pytest

torch = pytest.importorskip("torch", reason="walks over torch's tensors")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from advisor.client.registry import Registry  # noqa: E402 - after the skip


def a_registry(*models, optimizers=()):
    registry = Registry()
    for model in models:
        registry.add_model(model)
    for optimizer in optimizers:
        registry.add_optimizer(optimizer)
    return registry


def roles_of(registry, **options):
    walk = registry.walk(**options)
    assert walk.faults == ()
    return walk.devices[0].roles if walk.devices else {}


def names_of(registry, **options):
    return {one.name: one for one in registry.walk(**options).largest}


def trained(model, optimizer, *inputs):
    model(*inputs).sum().backward()
    optimizer.step()


def test_weights_buffers_gradients_and_states_are_told_apart():
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    optimizer = torch.optim.Adam(model.parameters())
    trained(model, optimizer, torch.randn(4, 8))
    weights = 4 * (64 + 8 + 8 + 8)
    states = 2 * weights + 4 * 4
    assert roles_of(a_registry(model, optimizers=[optimizer])) == {
        "weights": weights,
        "buffers": 8 + 2 * 32,
        "gradients": weights,
        "optimizer_states": states,
    }


def test_the_largest_have_the_names_shapes_and_types_of_the_parameters():
    model = nn.ModuleDict({"body": nn.Sequential(nn.Linear(16, 4, dtype=torch.bfloat16))})
    optimizer = torch.optim.Adam(model.parameters())
    trained(model["body"], optimizer, torch.randn(4, 16, dtype=torch.bfloat16))
    named = names_of(a_registry(model, optimizers=[optimizer]))
    weight = named["body.0.weight"]
    assert (weight.role, weight.device, weight.size_bytes, weight.shape, weight.dtype) == ("weights", "cpu", 128, (4, 16), "bfloat16")
    assert named["gradient of body.0.weight"].role == "gradients"
    assert named["exp_avg of body.0.weight"].role == "optimizer_states"


def test_frozen_weights_are_weights_and_only_trained_ones_trainable():
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 2, bias=False))
    model[0].weight.requires_grad_(False)
    walk = a_registry(model).walk()
    assert walk.devices[0].roles == {"weights": 4 * (64 + 16)}
    assert walk.trainable_bytes == 64


def test_tied_weights_and_views_of_one_buffer_are_counted_once():
    model = nn.ModuleDict({"embedding": nn.Embedding(8, 8), "head": nn.Linear(8, 8, bias=False)})
    model["head"].weight = model["embedding"].weight
    flat = torch.zeros(100)
    model["a"], model["b"] = nn.Module(), nn.Module()
    model["a"].weight, model["b"].weight = nn.Parameter(flat[:50]), nn.Parameter(flat[50:])
    assert roles_of(a_registry(model)) == {"weights": 256 + 400}


def test_storages_over_the_same_memory_are_counted_once_where_addresses_are_read():
    array = torch.zeros(64).numpy()
    model = nn.Module()
    model.first, model.second = torch.from_numpy(array), torch.from_numpy(array[16:])
    assert roles_of(a_registry(model), with_addresses=True) == {"buffers": 256}


def test_parameters_that_only_the_optimizer_knows_are_weights():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(64))], lr=0.1)
    assert names_of(a_registry(optimizers=[optimizer]))["parameter 0 of group 0"].role == "weights"


def test_nested_states_of_lbfgs_are_optimizer_states():
    model = nn.Linear(8, 1, bias=False)
    optimizer = torch.optim.LBFGS(model.parameters(), history_size=4)

    def closure():
        optimizer.zero_grad()
        loss = (model(torch.ones(2, 8)) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    named = names_of(a_registry(model, optimizers=[optimizer]))
    assert named["old_dirs of weight"].role == "optimizer_states"


def test_tensors_in_an_optimizers_own_attributes_are_told_by_their_names():
    class Sharded(torch.optim.SGD):
        def __init__(self, parameters):
            super().__init__(parameters, lr=0.1)
            self.fp32_groups_flat = [torch.zeros(10)]
            self.averaged_gradients = {0: [torch.zeros(20)]}
            self.ipg_bucket = torch.zeros(30)

    model = nn.Linear(1, 1, bias=False)
    optimizer = Sharded(model.parameters())
    assert roles_of(a_registry(model, optimizers=[optimizer])) == {
        "weights": 4,
        "optimizer_states": 40,
        "gradients": 80,
        "communication_buffers": 120,
    }


def test_an_optimizer_inside_another_is_walked():
    class Wrapper:
        def __init__(self, inner):
            self.optimizer, self.param_groups, self.state = inner, inner.param_groups, {}

    model = nn.Linear(4, 4, bias=False)
    inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trained(model, inner, torch.ones(1, 4))
    wrapper = Wrapper(inner)
    assert roles_of(a_registry(model, optimizers=[wrapper]))["optimizer_states"] == 64


def test_main_gradients_of_megatron_are_gradients():
    model = nn.Linear(4, 4, bias=False)
    model.weight.main_grad = torch.zeros(4, 4)
    assert roles_of(a_registry(model)) == {"weights": 64, "gradients": 64}


def test_a_sparse_gradient_is_its_indices_and_values():
    model = nn.Embedding(100, 8, sparse=True)
    model(torch.tensor([1, 2, 3])).sum().backward()
    assert roles_of(a_registry(model))["gradients"] == 3 * 8 + 3 * 8 * 4


def test_a_quantized_parameter_is_its_data_and_what_its_state_carries():
    class QuantState:
        def __init__(self, inner=None):
            self.absmax, self.code, self.state2 = torch.zeros(16), torch.zeros(8), inner

    class Params4bit(nn.Parameter):
        pass

    parameter = Params4bit(torch.zeros(128, dtype=torch.uint8), requires_grad=False)
    parameter.quant_state = QuantState(QuantState())
    model = nn.Module()
    model.weight = parameter
    assert roles_of(a_registry(model)) == {"weights": 128 + 2 * 4 * (16 + 8)}


def test_a_wrapping_subclass_is_the_tensors_that_it_flattens_to():
    two = pytest.importorskip("torch.testing._internal.two_tensor", reason="torch's own example of a wrapper")
    model = nn.Module()
    model.weight = nn.Parameter(two.TwoTensor(torch.zeros(4, 4), torch.zeros(4, 4)))
    assert roles_of(a_registry(model)) == {"weights": 128}


def test_tensors_without_memory_are_left_out():
    with torch.device("meta"):
        model = nn.Linear(1000, 1000)
    fake = pytest.importorskip("torch._subclasses.fake_tensor", reason="fake tensors")
    with fake.FakeTensorMode():
        model.table = torch.zeros(1000)
    assert roles_of(a_registry(model)) == {}


def test_buffers_and_attributes_named_so_are_caches():
    class KVCache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("k", torch.zeros(2, 8))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.kv_cache = KVCache()
            self.cache_v = torch.zeros(2, 8)
            self.past_key_values = [(torch.zeros(2, 8), torch.zeros(2, 8))]
            self.register_buffer("causal_mask", torch.zeros(8, 8))
            self.positions = torch.zeros(4)

    model = Attention()
    assert roles_of(a_registry(model)) == {"kv_cache": 4 * 64, "buffers": 256 + 16}


def test_what_a_module_computed_from_its_weights_is_no_buffer():
    model = nn.Linear(4, 4, bias=False)
    model.scaled = model.weight * 2
    assert roles_of(a_registry(model)) == {"weights": 64}


def test_averaged_copies_are_weights_and_a_scaler_is_state():
    model = nn.Linear(4, 4, bias=False)
    average = torch.optim.swa_utils.AveragedModel(model)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.zeros(1))
    registry = Registry()
    registry.find(sys._getframe())
    walk = registry.walk()
    assert walk.devices[0].roles["weights"] == 128
    assert walk.devices[0].roles["optimizer_states"] == 2 * 4
    assert {"model.weight", "average.weight"} <= {one.name for one in walk.largest}
    del average


def test_a_batch_and_its_copy_are_inputs_until_they_die():
    registry = Registry()
    batch = torch.zeros(4, 16, dtype=torch.int64)
    registry.add_batch([batch])
    copied = batch.clone()
    assert roles_of(registry, frame=sys._getframe()) == {"inputs": 2 * 512}
    del batch, copied
    assert roles_of(registry) == {}


def test_held_results_are_named_by_their_variables():
    weight = nn.Parameter(torch.ones(64))
    losses = [weight * 2]
    kept = torch.zeros(32)
    named = names_of(Registry(), frame=sys._getframe())
    function = "test_held_results_are_named_by_their_variables"
    assert named[f"losses[0] in {function}"].role == "outputs"
    assert named[f"kept in {function}"].role == "held"
    del losses, kept


def test_a_cache_of_transformers_is_found_through_its_layers():
    layer = type("DynamicLayer", (), {"__module__": "transformers.cache_utils"})
    base = type("Cache", (), {"__module__": "transformers.cache_utils"})
    past = type("DynamicCache", (base,), {})()
    past.layers = []
    for _ in range(3):
        one = layer()
        one.keys, one.values = torch.zeros(1, 2, 8, 4), torch.zeros(1, 2, 8, 4)
        past.layers.append(one)
    model_kwargs = {"past_key_values": past}
    assert roles_of(Registry(), frame=sys._getframe(), phase="generation") == {"kv_cache": 6 * 256}
    del model_kwargs


def test_keys_that_a_training_step_computes_are_no_cache():
    weight = nn.Parameter(torch.ones(1, 2, 8, 4))
    past_key_values = [(weight * 2, weight * 3)]
    assert "kv_cache" not in roles_of(Registry(), frame=sys._getframe(), phase="forward")
    assert roles_of(Registry(), frame=sys._getframe(), phase="generation")["kv_cache"] == 512
    del past_key_values


def test_what_fsdp_gathered_is_a_buffer_and_the_shard_is_the_weight():
    class Handle:
        flat_param = nn.Parameter(torch.zeros(50))

    handle = Handle()
    handle.flat_param._local_shard = handle.flat_param.data
    handle.flat_param._full_param_padded = torch.zeros(100)
    handle.flat_param._saved_grad_shard = torch.zeros(50)
    model = nn.Module()
    model._handle = handle
    model.weight = nn.Parameter(handle.flat_param._full_param_padded[:10])
    assert roles_of(a_registry(model)) == {"weights": 200, "communication_buffers": 400, "gradients": 200}


def test_a_walk_runs_no_operator_and_no_code_of_a_subclass():
    calls = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, kinds, arguments=(), options=None):
            calls.append(function)
            return super().__torch_function__(function, kinds, arguments, options or {})

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, operator, kinds, arguments=(), options=None):
            calls.append(operator)
            return operator(*arguments, **(options or {}))

    model = nn.Embedding(100, 8, sparse=True)
    model(torch.tensor([1, 2])).sum().backward()
    model.table = torch.zeros(16).as_subclass(Watched)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    registry = a_registry(model, optimizers=[optimizer])
    calls.clear()
    with Operators():
        roles = roles_of(registry, frame=sys._getframe(), with_addresses=True)
    assert calls == []
    assert roles["buffers"] == 64


def test_reading_addresses_copies_nothing_that_is_copied_on_write():
    if not hasattr(torch, "_lazy_clone"):
        pytest.skip("this torch has no copy on write")
    model = nn.Module()
    model.table = torch._lazy_clone(torch.zeros(64))
    assert roles_of(a_registry(model), with_addresses=True)["buffers"] == 256
    assert torch._C._is_cow_tensor(model.table)


def test_neither_registry_nor_walk_keeps_anything_alive():
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(2, 8)
    registry = a_registry(model, optimizers=[optimizer])
    registry.add_batch([batch])
    walk = registry.walk(frame=sys._getframe(), with_addresses=True)
    references = [weakref.ref(one) for one in (model, optimizer, batch, model.weight)]
    gc.disable()  # no cycle may hold them either
    try:
        del model, batch
        assert references[2]() is None
    finally:
        gc.enable()
    del optimizer
    gc.collect()
    assert [reference() for reference in references] == [None] * 4
    assert walk.devices[0].roles["inputs"] == 64
    assert roles_of(registry) == {}


def test_one_strange_optimizer_costs_only_its_own_states():
    class Strange(torch.optim.SGD):
        @property
        def state(self):
            raise RuntimeError("not today")

        @state.setter
        def state(self, value):
            pass

    model = nn.Linear(4, 4, bias=False)
    model(torch.ones(1, 4)).sum().backward()
    optimizer = Strange(model.parameters(), lr=0.1)
    walk = a_registry(model, optimizers=[optimizer]).walk()
    assert walk.devices[0].roles == {"weights": 64, "gradients": 64}
    assert walk.faults == ("optimizer states: RuntimeError: not today",)


def test_a_scripted_and_a_compiled_model_keep_their_names():
    inner = nn.Sequential(nn.Linear(4, 4, bias=False))
    for model in (torch.jit.script(inner), torch.compile(inner)):
        assert names_of(a_registry(model))["0.weight"].role == "weights"
