import random
import sys
import types

import pytest

from advisor.client.randomness import GREATEST_SEED_BY_HAND, facts_of_randomness


class Bytes:
    """A tensor of bytes on the CPU, as far as it is asked."""

    def __init__(self, data):
        self.data = data

    def tolist(self):
        return list(self.data)

    def data_ptr(self):
        import ctypes

        self.buffer = ctypes.create_string_buffer(self.data, len(self.data))
        return ctypes.addressof(self.buffer)

    def numel(self):
        return len(self.data)


class Generator:
    def __init__(self, seed, state=b"state"):
        self.seed, self.state = seed, state

    def initial_seed(self):
        return self.seed

    def get_state(self):
        return Bytes(self.state)


def a_torch(seed, *, is_initialized=False, **cuda):
    module = types.ModuleType("torch")
    module.default_generator = Generator(seed)

    def never():
        raise AssertionError("CUDA must not be touched")

    parts = {"current_device": never, "default_generators": ()} | cuda
    module.cuda = types.SimpleNamespace(is_initialized=lambda: is_initialized, **parts)
    return module


@pytest.fixture
def without_libraries(monkeypatch):
    for name in ("torch", "numpy.random.mtrand"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    state = random.getstate()
    yield
    random.setstate(state)


@pytest.mark.usefixtures("without_libraries")
def test_equal_states_have_equal_digests_and_others_do_not():
    random.seed(1)
    first = facts_of_randomness([])["random"]["state_digest"]
    random.seed(1)
    assert facts_of_randomness([])["random"]["state_digest"] == first
    random.random()
    assert facts_of_randomness([])["random"]["state_digest"] != first


@pytest.mark.usefixtures("without_libraries")
def test_looking_draws_no_number():
    random.seed(1)
    state = random.getstate()
    facts_of_randomness([1, 2])
    assert random.getstate() == state


@pytest.mark.usefixtures("without_libraries")
@pytest.mark.parametrize(("draws", "is_seeded"), [(0, True), (1, True), (300, True), (1000, None)])
def test_pythons_generator_is_known_to_be_seeded_while_its_first_numbers_last(draws, is_seeded):
    random.seed(1337)
    for _ in range(draws):
        random.getrandbits(32)
    assert facts_of_randomness([42, 1337])["random"]["is_seeded"] is is_seeded
    assert facts_of_randomness([42])["random"]["is_seeded"] is None


@pytest.mark.usefixtures("without_libraries")
@pytest.mark.parametrize(
    ("seed", "is_seeded"), [(0, True), (GREATEST_SEED_BY_HAND - 1, True), (GREATEST_SEED_BY_HAND, False), (2**64 - 5, False)]
)
def test_torch_is_seeded_by_hand_where_its_seed_is_one_that_people_choose(monkeypatch, seed, is_seeded):
    monkeypatch.setitem(sys.modules, "torch", a_torch(seed))
    found = facts_of_randomness([])
    assert found["torch"]["initial_seed"] == seed
    assert found["torch"]["is_seeded"] is is_seeded
    assert "cuda" not in found


@pytest.mark.usefixtures("without_libraries")
def test_the_device_is_asked_only_where_cuda_is_initialized(monkeypatch):
    cuda = {"current_device": lambda: 1, "default_generators": (None, Generator(7))}
    monkeypatch.setitem(sys.modules, "torch", a_torch(7, is_initialized=True, **cuda))
    found = facts_of_randomness([])
    assert found["cuda"] == {**found["torch"], "device": 1}


@pytest.mark.usefixtures("without_libraries")
def test_torchs_seed_proves_pythons(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", a_torch(99))
    random.seed(99)
    assert facts_of_randomness([])["random"]["is_seeded"] is True


@pytest.mark.usefixtures("without_libraries")
def test_the_state_is_read_with_and_without_ctypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", a_torch(1))
    import ctypes  # noqa: F401 - loaded, as torch does

    first = facts_of_randomness([])["torch"]["state_digest"]
    monkeypatch.delitem(sys.modules, "ctypes")
    assert facts_of_randomness([])["torch"]["state_digest"] == first


def test_numpys_generator_is_seeded_where_it_forgot_what_the_system_gave():
    numpy = pytest.importorskip("numpy", reason="its legacy generator is asked")
    state = numpy.random.get_state()
    try:
        numpy.random.seed(3)
        found = facts_of_randomness([])["numpy"]
        assert found["is_seeded"] is True
        numpy.random.rand()
        assert facts_of_randomness([])["numpy"]["state_digest"] != found["state_digest"]
    finally:
        numpy.random.set_state(state)


def test_an_unseeded_process_is_seen_to_be_unseeded():
    pytest.importorskip("numpy", reason="its legacy generator is asked")
    import subprocess

    program = "import numpy.random, advisor.client.randomness as r; print(r.facts_of_randomness([])['numpy']['is_seeded'])"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
