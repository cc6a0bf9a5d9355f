import argparse
import json
import os
import random
import subprocess
import sys
import time

import pytest

from advisor.client import run_facts
from advisor.client.frame_locals import callers
from advisor.client.redaction import REDACTED
from advisor.client.run_facts import facts_at_attach

SECRET = "s3cretS3CRETvalue"

SCRIPT = """
import argparse, json, sys
from advisor.client.frame_locals import callers
from advisor.client.run_facts import facts_at_attach
LEARNING_RATE = 0.1
API_KEY = "SECRET"
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hf-token")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--db")
    args, _ = parser.parse_known_args()
    config = {"wandb": {"key": "SECRET"}, "url": "https://me:SECRET@host/", "max_tokens": 5}
    db_password = "SECRET"
    print(json.dumps(facts_at_attach(frames=callers(sys._getframe())), allow_nan=False))
main()
""".replace("SECRET", SECRET)


def facts_of_a_script(folder, *words, **environment):
    script = folder / "train.py"
    script.write_text(SCRIPT)
    known = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PATH": os.environ["PATH"], **environment}
    done = subprocess.run([sys.executable, str(script), *words], env=known, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout, json.loads(done.stdout)


def test_no_secret_of_arguments_settings_or_environment_is_in_the_facts(tmp_path):
    words = ["--hf-token", SECRET, f"--db=postgres://u:{SECRET}@h/d", f"wandb.key={SECRET}", "--tokenizer", "gpt2"]
    environment = {"HF_TOKEN": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "WANDB_API_KEY": SECRET, "DATABASE_URL": f"x://u:{SECRET}@h"}
    text, facts = facts_of_a_script(tmp_path, *words, **environment)
    assert SECRET not in text
    assert facts["process"]["argv"][-2:] == ["--tokenizer", "gpt2"]
    assert facts["environment"]["values"]["HF_TOKEN"] == REDACTED
    assert "AWS_SECRET_ACCESS_KEY" in facts["environment"]["names"]
    assert facts["limits"]["redacted_count"] > 0


def test_a_script_is_described(tmp_path):
    _, facts = facts_of_a_script(tmp_path, "--seed", "1337", CUDA_VISIBLE_DEVICES="0", RANK="3", WORLD_SIZE="8", LOCAL_RANK="1")
    assert facts["faults"] == {}
    assert facts["process"]["script"] == str(tmp_path / "train.py")
    assert facts["process"]["cwd"] == str(tmp_path)
    assert facts["process"]["code_files"] == [str(tmp_path / "train.py")]
    assert facts["ranks"]["rank"] == 3
    assert facts["ranks"]["world_size"] == 8
    configuration = facts["configuration"]
    assert [each["name"] for each in configuration["found"]] == ["args", "config"]
    assert configuration["found"][0]["values"]["seed"] == 1337
    assert configuration["constants"]["train.py"]["LEARNING_RATE"] == 0.1
    assert facts["randomness"]["configured_seeds"] == {"args.seed": 1337}
    assert [each["item"] for each in facts["missing"]] == ["commit", "data_version"]


def test_what_is_told_counts():
    facts = facts_at_attach(config={"lr": 1}, data_version="v3", seed=5)
    assert facts["told"] == {"data_version": "v3", "seed": 5}
    assert facts["configuration"]["told"]["values"] == {"lr": 1}
    assert not {"config", "seed", "data_version"} & {each["item"] for each in facts["missing"]}


def test_a_fault_in_one_part_leaves_the_others_and_hides_its_text(monkeypatch):
    def broken(*_):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(run_facts, "facts_of_torch", broken)
    monkeypatch.setattr(run_facts, "scan", broken)
    facts = facts_at_attach(frames=callers(sys._getframe()))
    assert facts["faults"] == {"scan": "RuntimeError", "torch": "RuntimeError"}
    assert facts["torch"] is None
    assert facts["process"]["pid"] == os.getpid()
    assert SECRET not in json.dumps(facts)


@pytest.mark.parametrize("value", [object(), 3, "text", [], [None], {}, type, Exception("x")])
def test_anything_may_be_passed(value):
    facts = facts_at_attach(model=value, optimizer=value, config=value, data_version=value, seed=value)
    json.dumps(facts, allow_nan=False)


def test_a_removed_working_folder_is_unknown(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    facts = facts_at_attach()
    monkeypatch.chdir(tmp_path)
    assert facts["process"]["cwd"] is None
    assert facts["faults"] == {}


def test_the_generators_are_not_moved():
    state = random.getstate()
    facts_at_attach(seed=1, frames=callers(sys._getframe()))
    assert random.getstate() == state


def test_the_facts_of_an_ordinary_script_take_a_few_milliseconds():
    args = argparse.Namespace(**{f"option{number}": number / 3 for number in range(40)}, seed=1)
    facts_at_attach(frames=callers(sys._getframe()))
    times = []
    for _ in range(20):
        began = time.process_time()
        facts_at_attach(config=args, frames=callers(sys._getframe()))
        times.append(time.process_time() - began)
    # Under 1 ms on an ordinary processor; the limit is for the slowest that tests run on.
    assert min(times) < 0.01


def test_a_notebook_is_known_by_what_its_program_leaves(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert run_facts._notebook({}) == "unknown"
    assert run_facts._notebook({"JPY_SESSION_NAME": "/n/train.ipynb"}) == "/n/train.ipynb"
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert run_facts._notebook({"JPY_SESSION_NAME": "/n/train.ipynb"}) is None


class TestWithTorch:
    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch", reason="a real training is described")

    def test_a_training_is_described_and_nothing_of_it_moved(self):
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        def train():
            model = torch.nn.Linear(4, 4)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)  # noqa: F841
            loader = DataLoader(TensorDataset(torch.zeros(10, 4)), batch_size=5)  # noqa: F841
            return facts_at_attach(frames=callers(sys._getframe()))

        torch.manual_seed(1337)
        before = torch.get_rng_state().clone()
        facts = train()
        assert facts["faults"] == {}
        assert facts["randomness"]["generators"]["torch"]["initial_seed"] == 1337
        assert facts["models"][0]["parameter_count"] == 20
        assert facts["optimizers"][0]["groups"][0]["lr"] == 0.01
        assert facts["schedules"][0]["settings"]["step_size"] == 10
        assert facts["data"]["loaders"][0]["batch_size"] == 5
        assert facts["data"]["datasets"][0]["length"] == 10
        after = torch.nn.Linear(4, 4).weight
        torch.manual_seed(1337)
        torch.nn.Linear(4, 4)
        assert torch.equal(torch.nn.Linear(4, 4).weight, after)
        assert not torch.equal(before, torch.get_rng_state())
        assert not torch.cuda.is_initialized()

    def test_the_settings_of_hugging_face_and_omegaconf_are_read(self):
        omegaconf = pytest.importorskip("omegaconf", reason="its configurations are read")
        transformers = pytest.importorskip("transformers", reason="its arguments are read")

        def train():
            cfg = omegaconf.OmegaConf.create({"optimizer": {"lr": 0.1, "betas": [0.9, 0.95]}, "name": "${optimizer.lr}", "api_key": SECRET})  # noqa: F841
            training_args = transformers.TrainingArguments(output_dir="out", hub_token=SECRET, learning_rate=3e-4, use_cpu=True)  # noqa: F841
            return facts_at_attach(frames=callers(sys._getframe()))

        facts = train()
        found = {each["name"]: each["values"] for each in facts["configuration"]["found"]}
        assert found["cfg"] == {"optimizer": {"lr": 0.1, "betas": [0.9, 0.95]}, "name": "${optimizer.lr}", "api_key": REDACTED}
        assert found["training_args"]["learning_rate"] == 3e-4
        assert found["training_args"]["hub_token"] == REDACTED
        assert found["training_args"]["seed"] == 42
        assert facts["randomness"]["configured_seeds"]["training_args.seed"] == 42
        assert SECRET not in json.dumps(facts)
