import json
import os

import pytest

from advisor.client.environment_variables import LONGEST_VALUE, MOST_NAMES, facts_of_environment, snapshot_of
from advisor.client.redaction import REDACTED


@pytest.mark.parametrize(
    "name",
    [
        *("CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "PYTORCH_CUDA_ALLOC_CONF", "TORCH_LOGS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HOME"),
        *("SLURM_JOB_ID", "CUBLAS_WORKSPACE_CONFIG", "PYTHONHASHSEED", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TOKENIZERS_PARALLELISM"),
        *(
            "TORCHINDUCTOR_CACHE_DIR",
            "WANDB_PROJECT",
            "LD_LIBRARY_PATH",
            "NVIDIA_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
            "ACCELERATE_MIXED_PRECISION",
        ),
    ],
)
def test_what_changes_a_training_is_kept_with_its_value(name):
    assert facts_of_environment({name: "0,1"}) == {"values": {name: "0,1"}, "names": [], "cut_count": 0}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "HOME",
            "PATH",
            "MY_COMPANY_DATABASE",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_PROFILE",
            "OPENAI_API_KEY",
            "DATABASE_URL",
            "SSH_CONNECTION",
        ),
        *("USER", "SLURM_JOB_USER", "WANDB_USERNAME", "WANDB_EMAIL", "SLURM_JOB_ACCOUNT", "http_proxy", "TORCHING", "CUDA"[:3]),
    ],
)
def test_of_the_others_the_name_alone_is_kept(name):
    assert facts_of_environment({name: "private"}) == {"values": {}, "names": [name], "cut_count": 0}


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "SLURM_JWT", "MLFLOW_TRACKING_PASSWORD", "COMET_API_KEY", "CLEARML_API_SECRET_KEY"]
)
def test_secrets_among_the_allowed_are_hidden_but_named(name):
    assert facts_of_environment({name: "abc"})["values"] == {name: REDACTED}


def test_credentials_inside_allowed_values_are_hidden():
    values = facts_of_environment({"MLFLOW_TRACKING_URI": "https://me:pw@host/x", "VLLM_ARGS": "--api-key=abc --lr 1"})["values"]
    assert values == {"MLFLOW_TRACKING_URI": f"https://{REDACTED}@host/x", "VLLM_ARGS": f"--api-key={REDACTED} --lr 1"}


def test_long_and_many_variables_are_cut_and_counted():
    environment = {"SM_HPS": "x" * 100_000} | {f"OTHER{number:04}": "" for number in range(MOST_NAMES + 7)}
    facts = facts_of_environment(environment)
    assert len(facts["values"]["SM_HPS"]) == LONGEST_VALUE
    assert len(facts["names"]) == MOST_NAMES
    assert facts["cut_count"] == 8


def test_a_secret_that_the_cut_would_divide_is_hidden_whole():
    value = "x" * (LONGEST_VALUE - 30) + " gh" + "p_" + "aB3" * 12
    shown = facts_of_environment({"SM_HPS": value})["values"]["SM_HPS"]
    assert "aB3" not in shown


def test_the_snapshot_is_what_the_environment_says(monkeypatch):
    monkeypatch.setenv("ADVISOR_TEST", "\udcff\u00e9")
    assert snapshot_of(os.environ) == dict(os.environ)
    assert snapshot_of({"a": "b"}) == {"a": "b"}
    json.dumps(facts_of_environment(snapshot_of(os.environ)), allow_nan=False)
