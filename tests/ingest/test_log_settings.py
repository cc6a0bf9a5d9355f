import pytest
from failure_messages import the_log


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
            "PYTORCH_CUDA_ALLOC_CONF",
            "expandable_segments:True",
        ),
        (
            "export PYTORCH_CUDA_ALLOC_CONF='max_split_size_mb:128,garbage_collection_threshold:0.8'",
            "PYTORCH_CUDA_ALLOC_CONF",
            "max_split_size_mb:128,garbage_collection_threshold:0.8",
        ),
        ("XLA_PYTHON_CLIENT_PREALLOCATE=false", "XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
        ("Namespace(per_device_train_batch_size=8, bf16=True)", "per_device_train_batch_size", "8"),
        (
            "python -m vllm --max-model-len 4096 --gpu-memory-utilization 0.9",
            "max_model_len",
            "4096",
        ),
        ("{'max_seq_length': 2048, 'optim': 'adamw_torch'}", "optim", "adamw_torch"),
        ("  gradient_accumulation_steps: 16", "gradient_accumulation_steps", "16"),
        ("dataloader num_workers = 0", "num_workers", "0"),
        ("--optim adamw_bnb_8bit", "optim", "adamw_bnb_8bit"),
    ],
)
def test_settings_are_read_in_every_spelling(text: str, name: str, value: str) -> None:
    assert the_log(text).setting(name) == value


def test_the_last_value_counts() -> None:
    assert the_log("batch_size=8\nbatch_size=4\n").setting("batch_size") == "4"


@pytest.mark.parametrize(
    "text",
    [
        "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation",
        "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing",
        "the batch_size is too large",
        "my_batch_size=8",
        "Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit",
    ],
)
def test_advice_and_prose_are_no_settings(text: str) -> None:
    assert the_log(text).settings == ()


def test_what_engines_report_of_their_memory_is_kept() -> None:
    log = the_log(
        "INFO Available KV cache memory: -0.30 GiB\nINFO GPU KV cache size: 10,944 tokens\n"
        "INFO # GPU blocks: 0, # CPU blocks: 256\nINFO Model loading took 14.25 GiB and 3 seconds\n"
    )

    assert log.setting("available_kv_cache_memory") == "-0.30 GiB"
    assert log.setting("kv_cache_tokens") == "10,944"
    assert log.setting("num_gpu_blocks") == "0"
    assert log.setting("model_loading_memory") == "14.25 GiB"


def test_frameworks_are_known_by_their_paths_and_words() -> None:
    assert the_log('File "/env/site-packages/transformers/trainer.py", line 1, in train').frameworks == ("transformers",)
    assert the_log("plain words").frameworks == ()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("world_size: 16", 16),
        ("WORLD_SIZE=8", 8),
        ("initialized rank 3/64", 64),
        ("num_processes: 4", 4),
        ("hello world", None),
    ],
)
def test_the_size_of_the_job(text: str, size: int | None) -> None:
    assert the_log(text).world_size == size
