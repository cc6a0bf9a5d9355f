import json

from hypothesis import given
from hypothesis import strategies as st

from advisor.client.registry import Registry
from advisor.client.registry_names import is_wrapper, text_of
from advisor.client.registry_storages import Storage
from advisor.client.registry_walk import ROLES, Walk, totals, without_overlap


def a_storage(role="weights", device="cuda:0", size=1000, address=0) -> Storage:
    return role, device, size, address, None, "a name"


ranges = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 60), st.sampled_from(ROLES)), max_size=12)


@given(ranges)
def test_memory_that_several_storages_show_is_counted_once(found):
    storages = [a_storage(role, "cuda:0", size, start) for start, size, role in found]
    kept, by_device = without_overlap(storages)
    covered = {place for start, size, _ in found for place in range(start, start + size)}
    assert sum(storage[2] for storage in kept) == len(covered)
    own = by_device.get("cuda:0", [])
    assert {place for start, size, _ in own for place in range(start, start + size)} == covered
    assert own == sorted(own)


def test_storages_of_two_devices_at_one_address_are_two():
    kept, by_device = without_overlap([a_storage(device="cuda:0", address=512), a_storage(device="cuda:1", address=512)])
    assert len(kept) == 2
    assert set(by_device) == {"cuda:0", "cuda:1"}


def test_the_rest_of_a_gpu_in_forward_is_activations_and_counts_rounded_blocks():
    (device,) = totals([a_storage(size=1000), a_storage("gradients", size=512)], {}, {"cuda:0": 4096}, "forward")
    assert device.roles == {"weights": 1000, "gradients": 512}
    assert device.rounded_bytes == 1536
    assert (device.rest_bytes, device.rest_role) == (4096 - 1536, "activations")


def test_outside_forward_and_backward_the_rest_is_not_given_a_role():
    (device,) = totals([a_storage()], {}, {"cuda:0": 4096}, "optimizer")
    assert device.rest_role == "unattributed"


def test_the_rest_is_unknown_where_nobody_knows_what_is_allocated():
    (device,) = totals([a_storage(device="cpu", size=7)], {}, {}, "forward")
    assert (device.allocated_bytes, device.rest_bytes, device.rounded_bytes) == (None, None, 7)


def test_a_device_of_which_only_the_total_is_known_is_all_rest():
    (device,) = totals([], {}, {"cuda:3": 99}, "backward")
    assert (device.device, device.roles, device.rest_bytes) == ("cuda:3", {}, 99)


def test_bytes_known_without_a_storage_are_added():
    (device,) = totals([a_storage()], {("cuda:0", "communication_buffers"): [64, 600]}, {}, "other")
    assert device.roles["communication_buffers"] == 664
    assert device.counts["communication_buffers"] == 2
    assert device.rounded_bytes == 1024 + 512 + 1024


def test_names_are_paths_without_the_modules_that_only_wrap():
    path = ((("", "blocks"), "0"), "weight")
    assert text_of(path) == "blocks.0.weight"
    assert text_of(("exp_avg", path, "of")) == "exp_avg of blocks.0.weight"
    assert is_wrapper("_orig_mod", "OptimizedModule")
    assert is_wrapper("module", "DistributedDataParallel")
    assert not is_wrapper("module", "MyModel")


def test_a_walk_is_json_and_its_addresses_are_columns():
    devices = totals([a_storage()], {}, {}, "forward")
    unaddressed = {("cuda:0", "communication_buffers"): [64]}
    walk = Walk("failure", 3, "forward", 0.001, devices, (), 0, {"cuda:0": [(512, 1000, "weights")]}, unaddressed, (), ())
    content = json.loads(json.dumps(walk.content(), allow_nan=False))
    assert content["devices"][0]["entries"] == {"weights": 1000}
    assert content["unaddressed"] == [{"device": "cuda:0", "role": "communication_buffers", "bytes": [64]}]
    assert content["addresses"] == {"roles": list(ROLES), "devices": {"cuda:0": {"address": [512], "bytes": [1000], "role": [0]}}}


def test_without_torch_a_walk_finds_nothing_and_says_so():
    registry = Registry(modules={})
    assert registry.find(None).models == []
    registry.find_by_gc()
    walk = registry.walk(moment="failure", step=3, phase="forward")
    assert (walk.moment, walk.step, walk.phase, walk.devices) == ("failure", 3, "forward", ())
    assert walk.faults == ("torch is not loaded",)
    assert registry.addresses()["devices"] == {}
