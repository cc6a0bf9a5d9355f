"""Settings that a log prints: environment variables, arguments and configurations, frameworks, the size of the job.

A value is taken from "NAME=value", "NAME: value", "'name': value", "--name value" and "name = value". The hints that error messages
print ("try setting PYTORCH_CUDA_ALLOC_CONF=...") are not settings and are left out.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from advisor.ingest.lazy_pattern import LazyPattern
from advisor.ingest.log_lines import LogLines, Needles
from advisor.ingest.log_mentions import Span, is_advice


def _names(table: str) -> tuple[str, ...]:
    return tuple(table.split())


ENVIRONMENT = _names(
    """
PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF PYTORCH_HIP_ALLOC_CONF PYTORCH_NPU_ALLOC_CONF
PYTORCH_NO_CUDA_MEMORY_CACHING PYTORCH_MPS_HIGH_WATERMARK_RATIO PYTORCH_MPS_LOW_WATERMARK_RATIO
XLA_PYTHON_CLIENT_PREALLOCATE XLA_PYTHON_CLIENT_MEM_FRACTION XLA_PYTHON_CLIENT_ALLOCATOR
TF_FORCE_GPU_ALLOW_GROWTH TF_GPU_ALLOCATOR CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING OMP_NUM_THREADS MKL_NUM_THREADS NCCL_P2P_DISABLE
NCCL_IB_DISABLE NCCL_BUFFSIZE NCCL_DEBUG NCCL_MAX_NCHANNELS NCCL_NET_GDR_LEVEL
TORCH_NCCL_AVOID_RECORD_STREAMS WORLD_SIZE LOCAL_RANK MAX_JOBS CUBLAS_WORKSPACE_CONFIG
NVIDIA_TF32_OVERRIDE TOKENIZERS_PARALLELISM VLLM_ATTENTION_BACKEND VLLM_GPU_MEMORY_UTILIZATION
"""
)
"""Environment variables, as spelled."""

ARGUMENTS = _names(
    """
per_device_train_batch_size per_device_eval_batch_size per_gpu_train_batch_size train_batch_size
eval_batch_size batch_size micro_batch_size train_micro_batch_size_per_gpu global_batch_size
gradient_accumulation_steps max_seq_length max_seq_len max_length seq_length sequence_length
cutoff_len block_size model_max_length max_model_len max_num_seqs max_num_batched_tokens
gpu_memory_utilization vllm_gpu_memory_utilization tensor_parallel_size pipeline_parallel_size
swap_space enforce_eager kv_cache_dtype enable_prefix_caching mem_fraction_static
max_total_tokens max_total_num_tokens max_running_requests context_length chunked_prefill_size
num_gpu_blocks num_cpu_blocks optim optimizer learning_rate bf16 fp16 tf32 torch_dtype dtype
gradient_checkpointing use_reentrant use_cache num_workers dataloader_num_workers pin_memory
dataloader_pin_memory prefetch_factor persistent_workers eval_accumulation_steps load_in_4bit
load_in_8bit lora_r lora_rank lora_alpha zero_stage stage offload_optimizer cpu_offload
device_map map_location attn_implementation use_flash_attention_2 find_unused_parameters
gradient_as_bucket_view bucket_cap_mb vocab_size hidden_size num_hidden_layers
num_attention_heads num_key_value_heads intermediate_size torch_compile save_steps eval_steps
logging_steps seed shm_size preallocate expandable_segments world_size num_processes
nproc_per_node nnodes nodes image_size num_generations max_new_tokens max_completion_length
max_prompt_length logits_to_keep set_to_none retain_graph fused foreach n_gpu_layers n_ctx
"""
)
"""Arguments and configuration keys; dashes are read as underscores."""

FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "transformers": ("/transformers/", "\\transformers\\", "transformers.", "import transformers"),
    "accelerate": ("/accelerate/", "accelerate launch", "accelerate.", "accelerator."),
    "deepspeed": ("deepspeed",),
    "fsdp": ("fsdp", "fullyshardeddataparallel", "fully_sharded_data_parallel"),
    "lightning": ("pytorch_lightning", "lightning/pytorch", "lightning.pytorch"),
    "megatron": ("megatron",),
    "peft": ("/peft/", "get_peft_model", "peft."),
    "trl": ("/trl/", "trl.trainer", "grpotrainer", "sfttrainer", "dpotrainer"),
    "unsloth": ("unsloth",),
    "axolotl": ("axolotl",),
    "llama-factory": ("llamafactory", "llama-factory"),
    "torchtune": ("torchtune",),
    "torchtitan": ("torchtitan",),
    "verl": ("/verl/", "verl."),
    "openrlhf": ("openrlhf",),
    "vllm": ("vllm",),
    "sglang": ("sglang",),
    "tensorrt-llm": ("tensorrt_llm", "tensorrt-llm"),
    "tgi": ("text_generation_server", "text-generation-inference"),
    "llama.cpp": ("ggml", "llama_model_load", "llama.cpp"),
    "diffusers": ("/diffusers/", "diffusers."),
    "comfyui": ("comfyui",),
    "jax": ("/jax/", "jaxlib", "jax.errors", "jax._src"),
    "tensorflow": ("tensorflow",),
    "ray": ("ray.exceptions", "/ray/", "rayworker", "ray::"),
    "timm": ("/timm/",),
    "fairseq": ("fairseq",),
    "mmcv": ("/mmcv/", "mmengine", "mmdet"),
    "detectron2": ("detectron2",),
    "ultralytics": ("ultralytics", "yolov"),
    "bitsandbytes": ("bitsandbytes",),
    "xformers": ("xformers",),
    "flash-attn": ("flash_attn",),
}
"""Framework → lower-case words that its logs and paths contain."""

REPORTED = {
    "available_kv_cache_memory": ("available kv cache memory", r"Available KV cache memory: (-?\d{1,6}(?:\.\d{1,4})? ?[GM]i?B)"),
    "kv_cache_tokens": ("gpu kv cache size", r"GPU KV cache size: ([\d,]{1,15}) tokens"),
    "num_gpu_blocks": ("# gpu blocks", r"# GPU blocks: (\d{1,9})"),
    "num_cuda_blocks": ("# cuda blocks", r"# cuda blocks: (\d{1,9})"),
    "model_loading_memory": ("model loading took", r"[Mm]odel loading took (\d{1,6}(?:\.\d{1,6})? ?[GM]i?B)"),
    "model_weights_memory": ("model weights take", r"model weights take (\d{1,6}(?:\.\d{1,6})? ?[GM]i?B)"),
    "activation_peak_memory": ("activation peak memory takes", r"activation peak memory takes (\d{1,6}(?:\.\d{1,6})? ?[GM]i?B)"),
    "cuda_graph_memory": ("graph capturing finished", r"took (\d{1,6}(?:\.\d{1,6})? ?[GM]i?B)"),
}
"""What serving engines report of themselves while they start: name → a lower-case word of the line, and the value in it."""

MOST_SETTINGS = 200
"""Settings kept of one log."""

_MOST_TRIED = 32
"""Places of one name that are looked at; the last value that is found is kept, so the last places are."""

_VALUE = LazyPattern(r"""["'`]{0,2}(?:\s{0,12}[=:]\s{0,3}|\s{1,3}(?=[^\s=:\-\\|,.]))["'`]{0,2}(?P<value>[^\s"'`,;)(}{\]\[]{1,160})""")
_ALLOC_VALUE = LazyPattern(r"""["'`]{0,2}\s{0,3}[=:]\s{0,3}["'`]{0,2}(?P<value>[A-Za-z_0-9]{1,60}:[^\s"'`;)}]{1,200})""")
_HINT = LazyPattern(
    r"(?:try setting|setting|set|use|using|try|consider|increase|decrease|increasing|decreasing|export the)\s{1,3}[`\"']?$",
    re.IGNORECASE,
)
_PROSE_VALUE = LazyPattern(
    r"^(?:is|to|of|or|and|in|for|the|a|was|when|with|larger|if|on|by|from|at|as|not|this|that|will|has|are|be|which)$",
    re.IGNORECASE,
)
_WORD = LazyPattern(r"[A-Za-z0-9_]")
_WORLD = LazyPattern(r"(?:world[_ ]size|WORLD_SIZE|num_processes)[\"' ]{0,2}[=: ]{1,3}(\d{1,6})\b", re.IGNORECASE)
_RANK_OF = LazyPattern(r"\brank[ :=]{1,2}\d{1,6} ?(?:/|of) ?(\d{1,6})\b", re.IGNORECASE)


def settings_of(log: LogLines, parts: Sequence[Span]) -> tuple[tuple[str, str], ...]:
    """Names and values in the order of the names; of a name that is printed several times the last value."""
    found = _reported(log, parts)
    table, needles = _spellings()
    candidates = log.may_have(needles)
    for name, spellings in table:
        for value in () if candidates.isdisjoint(spellings) else _values(log, parts, name, spellings):
            found[name] = value
            break
        if len(found) >= MOST_SETTINGS:
            break
    return tuple(found.items())


@cache
def _spellings() -> tuple[tuple[tuple[str, tuple[bytes, ...]], ...], Needles]:
    """Each name with the forms in which it is looked for, and all of these together."""
    table = []
    for name in (*ENVIRONMENT, *ARGUMENTS):
        lowered = name.lower()
        forms = {lowered, lowered.replace("_", "-")} if name.islower() else {lowered}
        table.append((name, tuple(form.encode() for form in sorted(forms))))
    return tuple(table), Needles(form for _, forms in table for form in forms)


def _reported(log: LogLines, parts: Sequence[Span]) -> dict[str, str]:
    """What engines say of their memory; of several values the last."""
    found: dict[str, str] = {}
    for name, (needle, form) in REPORTED.items():
        for place in _last_places(log, parts, needle.encode()):
            said = re.search(form, log.line_at(place).text)
            if said is not None:
                found[name] = said[1]
                break
    return found


def frameworks_of(log: LogLines, parts: Sequence[Span]) -> tuple[str, ...]:
    """Frameworks that the log names, in the order of the table."""
    candidates = log.may_have(_framework_words())
    return tuple(
        name for name, words in FRAMEWORKS.items() if any(word in candidates and log.has(word, parts) for word in map(str.encode, words))
    )


@cache
def _framework_words() -> Needles:
    return Needles(word.encode() for words in FRAMEWORKS.values() for word in words)


def world_size_of(log: LogLines, parts: Sequence[Span]) -> int | None:
    """Ranks of the distributed job, where the log says so; the last value."""
    for needle, pattern in ((b"world", _WORLD), (b"num_processes", _WORLD), (b"rank", _RANK_OF)):
        for place in _last_places(log, parts, needle):
            said = pattern.search(log.raw[max(0, place - 2) : place + 48].decode("utf-8", "replace"))
            if said is not None and int(said[1]) > 0:
                return int(said[1])
    return None


def _values(log: LogLines, parts: Sequence[Span], name: str, spellings: Sequence[bytes]) -> Iterator[str]:
    """Values of one name, the last first."""
    places = sorted((place for spelling in spellings for place in _last_places(log, parts, spelling)), reverse=True)
    form = _ALLOC_VALUE if name.endswith("ALLOC_CONF") else _VALUE
    for place in places:
        before = log.raw[max(0, place - 40) : place].decode("utf-8", "replace")
        behind = log.raw[place + len(name) : place + len(name) + 260].decode("utf-8", "replace").split("\n")[0]
        if before and _WORD.match(before[-1]):
            continue
        if is_advice(log.lowered, place, place + len(name)):
            continue
        said = form.match(behind)
        if said is None or _HINT.search(before) or _PROSE_VALUE.match(said["value"]):
            continue
        value = said["value"].rstrip(".:")
        if value and not _is_loose_word(before, behind, value):
            yield value


def _is_loose_word(before: str, behind: str, value: str) -> bool:
    """Whether a name and a word beside it are prose: no sign between them, no dashes before them, and no number."""
    return behind[:1] in (" ", "\t") and not before.endswith("--") and not value[0].isdigit() and not re.match(r"\s{0,12}[=:]", behind)


def _last_places(log: LogLines, parts: Sequence[Span], needle: bytes) -> Iterator[int]:
    tried = 0
    for start, end in reversed(parts):
        place = log.lowered.rfind(needle, start, end)
        while place >= 0 and tried < _MOST_TRIED:
            tried += 1
            yield place
            place = log.lowered.rfind(needle, start, place)
