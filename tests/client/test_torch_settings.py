import subprocess
import sys
import types

import pytest

from advisor.client.torch_settings import SETTINGS, device_of, facts_of_torch, loaded_versions, settings_of


class Warns:
    """A part of torch.backends of 2.9, whose old settings must not be asked."""

    fp32_precision = "tf32"

    @property
    def allow_tf32(self):
        raise AssertionError("asking makes torch print a warning")


def a_torch(matmul, **more):
    backends = types.SimpleNamespace(
        cuda=types.SimpleNamespace(matmul=matmul), cudnn=types.SimpleNamespace(conv=matmul, allow_tf32=True), mkldnn=None
    )
    return types.SimpleNamespace(backends=backends, **more)


def test_the_newer_setting_is_asked_where_there_is_one():
    def never():
        raise AssertionError("asking makes torch print a warning")

    found = settings_of(a_torch(Warns(), get_float32_matmul_precision=never))
    assert found["matmul_tf32"] is True
    assert found["cudnn_tf32"] is True
    assert found["float32_matmul_precision"] == "high"


def test_the_older_setting_is_asked_where_there_is_no_other():
    found = settings_of(a_torch(types.SimpleNamespace(allow_tf32=False), get_float32_matmul_precision=lambda: "medium"))
    assert found["matmul_tf32"] is False
    assert found["float32_matmul_precision"] == "medium"


def test_what_a_version_lacks_or_refuses_is_left_out():
    def refuse():
        raise RuntimeError("mixed")

    assert settings_of(types.SimpleNamespace(is_anomaly_enabled=refuse, get_num_threads=lambda: 3)) == {"thread_count": 3}


def test_without_torch_nothing_is_known(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert facts_of_torch() is None
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert facts_of_torch() is None


def test_the_device_is_not_asked_before_cuda_is_initialized():
    def never():
        raise AssertionError

    assert device_of(types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: False, current_device=never))) is None


def test_the_versions_are_those_of_loaded_modules_without_asking_their_code(monkeypatch):
    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "transformers", Lazy("transformers"))
    module = types.ModuleType("peft")
    module.__version__ = "0.99"
    monkeypatch.setitem(sys.modules, "peft", module)
    monkeypatch.delitem(sys.modules, "trl", raising=False)
    found = loaded_versions()
    assert found["peft"] == "0.99"
    assert "transformers" not in found
    assert "trl" not in found


class TestWithTorch:
    torch = None

    @pytest.fixture(autouse=True)
    def _torch(self):
        self.torch = pytest.importorskip("torch", reason="its settings are asked")

    def test_every_setting_is_told_by_the_installed_version(self):
        assert settings_of(self.torch).keys() == SETTINGS.keys()

    def test_settings_follow_what_is_set(self):
        before = self.torch.are_deterministic_algorithms_enabled()
        try:
            self.torch.use_deterministic_algorithms(True)
            with self.torch.autocast("cpu", dtype=self.torch.bfloat16), self.torch.autograd.set_detect_anomaly(True):
                found = settings_of(self.torch)
        finally:
            self.torch.use_deterministic_algorithms(before)
        assert found["deterministic_algorithms"] is True
        assert found["autocast_cpu"] is True
        assert found["anomaly_mode"] is True
        assert found["autocast_cpu_dtype"] == "bfloat16"

    def test_asking_prints_no_warning_and_initializes_no_device(self):
        program = (
            "import torch, json; from advisor.client.torch_settings import facts_of_torch;"
            "a = facts_of_torch(); torch.set_float32_matmul_precision('high'); b = facts_of_torch();"
            "print(a['settings']['float32_matmul_precision'], b['settings']['float32_matmul_precision'], torch.cuda.is_initialized())"
        )
        command = [sys.executable, "-W", "error", "-c", program]
        done = subprocess.run(command, env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["highest", "high", "False"]
        assert "TF32" not in done.stderr
