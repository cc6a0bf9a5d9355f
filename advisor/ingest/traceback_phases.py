"""What a program was doing, by the innermost meaningful frames of its traceback.

The innermost frame that says something decides, with three corrections. Backward wins over everything inside it: a checkpointed
block is run forward again by the autograd engine. A forward pass is refined by what it was run for (generation, evaluation, the
start of an engine). An optimizer whose step() calls the training step as its closure, as Lightning does, is not stepping.
"""

import re
from collections.abc import Sequence

from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import Frame, Phase


def _path(*parts: str) -> LazyPattern:
    return LazyPattern("|".join(re.escape(part) for part in parts))


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


_OPTIMIZER_FILES = _path(
    "torch/optim/", "bitsandbytes/optim", "apex/optimizers", "deepspeed/ops/adam", "transformers/optimization.py",
    "torchao/optim", "torchao/prototype/low_bit_optim", "colossalai/nn/optimizer", "galore_torch", "megatron/core/optimizer/",
)  # fmt: skip
_OPTIMIZER_FUNCTIONS = _names(
    "_init_group", "_multi_tensor_adam", "_multi_tensor_adamw", "_single_tensor_adam", "_single_tensor_adamw", "_fused_adam",
    "_multi_tensor_sgd", "_take_model_step", "_optimizer_step", "initialize_optimizer_states", "optimizer_step", "init_state",
    "_initialize_state", "update_step",
)  # fmt: skip
_OPTIMIZER_CODE = LazyPattern(
    r"(?:optim(?:izer)?|opt|scaler|solver)\w{0,20}\.step\(|exp_avg(?:_sq)?['\"\]]|_foreach_(?:sqrt|div|addc|mul|lerp)"
)

_BACKWARD_FILES = _path("torch/autograd/__init__.py", "torch/autograd/variable.py")
_BACKWARD_FUNCTIONS = _names(
    "backward",
    "_engine_run_backward",
    "run_backward",
    "unscale_and_clip_grads",
    "reduce_ipg_grads",
    "_backward",
)
_BACKWARD_CODE = LazyPattern(r"\.backward\(|autograd\.grad\(|run_backward\(")

_LOSS_FUNCTIONS = _names(
    "cross_entropy", "nll_loss", "kl_div", "mse_loss", "l1_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "ctc_loss", "ForCausalLMLoss", "fixed_cross_entropy", "ForMaskedLMLoss", "log_softmax", "selective_log_softmax",
    "get_batch_logps", "_get_batch_logps", "get_per_token_logps", "_get_per_token_logps", "logprobs_from_logits",
    "entropy_from_logits", "cross_entropy_loss", "vocab_parallel_cross_entropy", "chunked_cross_entropy", "sparse_categorical_crossentropy",
)  # fmt: skip
_LOSS_FILES = _path("torch/nn/modules/loss.py", "transformers/loss/", "vocab_parallel_cross_entropy.py")
_LOSS_CODE = LazyPattern(r"\blogits\b[\w.\[\], :]{0,40}\.float\(\)|logits\.to\(torch\.float32|\blm_head\(|\.log_softmax\(|\boutput_layer\(")
_LOSS_CODE_INNERMOST = LazyPattern(r"cross_entropy\(|\bcriterion\(|\bloss_f(?:n|ct|unc)\w{0,12}\(|nll_loss\(|mse_loss\(")

_LOADING_FUNCTIONS = _names(
    "from_pretrained", "_load_pretrained_model", "load_state_dict", "_load_state_dict_into_model", "_load_from_state_dict",
    "_load_state_dict_into_meta_model", "set_module_tensor_to_device", "load_checkpoint_in_model", "load_checkpoint_and_dispatch",
    "dispatch_model", "load_model", "weight_loader", "create_weights", "load_weights", "initialize_model", "_load_checkpoint",
    "load_checkpoint", "restore_location", "persistent_load", "load_tensor", "_rebuild_tensor", "default_restore_location",
    "_cuda_deserialize", "_materialize_copy", "caching_allocator_warmup", "load_shard_file", "process_weights_after_loading",
    "_maybe_quantize", "quantize_", "load_from_checkpoint", "resume_from_checkpoint", "model_to_device",
)  # fmt: skip
_LOADING_FILES = _path(
    "torch/serialization.py", "transformers/modeling_utils.py", "transformers/core_model_loading.py", "accelerate/big_modeling.py",
    "accelerate/utils/modeling.py", "safetensors/torch.py", "model_loader/",
)  # fmt: skip
_MODULE_FILE = _path("torch/nn/modules/module.py")
_MODULE_MOVES = _names(
    "_apply",
    "to",
    "cuda",
    "convert",
    "half",
    "float",
    "bfloat16",
    "xpu",
    "double",
    "param_applied",
    "<lambda>",
    "to_empty",
)
_LOADING_CODE = LazyPattern(r"\bmodel\w{0,20}\.(?:to|cuda|half)\(|torch\.load\(|\.from_pretrained\(|load_state_dict\(")

_CHECKPOINT_FUNCTIONS = _names(
    "state_dict", "save_checkpoint", "_save_checkpoint", "save_pretrained", "save_model", "_save", "_save_to_state_dict",
    "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "full_tensor_state_dict", "_zero3_consolidated_16bit_state_dict",
    "zero3_consolidated_16bit_state_dict", "_summon_full_params", "optim_state_dict", "full_optim_state_dict", "save_state",
    "_full_state_dict", "_full_pre_state_dict_hook", "_full_post_state_dict_hook", "save_16bit_model", "dump_checkpoint",
)  # fmt: skip
_CHECKPOINT_CODE = LazyPattern(r"torch\.save\(|\.state_dict\(|save_checkpoint\(|save_pretrained\(")

_DATA_FILES = _path(
    "torch/utils/data/",
    "datasets/arrow_dataset.py",
    "torchvision/transforms",
    "torchvision/datasets",
    "webdataset/",
)
_DATA_FUNCTIONS = _names(
    "__getitem__", "collate", "collate_fn", "default_collate", "pin_memory", "_next_data", "send_to_device", "_prepare_inputs",
    "_prepare_input", "move_data_to_device", "batch_to_device", "pin_memory_batch", "preload", "move_to_device",
)  # fmt: skip
_DATA_CODE = LazyPattern(
    r"\b(?:inputs?|batch|images?|imgs?|labels?|targets?|data|x|y|samples?|input_ids)\w{0,12}(?:\[[^\]\n]{1,40}\])?\.(?:to|cuda)\("
)

_GENERATION = LazyPattern(
    r"^(?:generate|_sample|sample|_generate|greedy_search|beam_search|_beam_search|_greedy_search|assisted_decoding|"
    r"contrastive_search|_contrastive_search|_assisted_decoding|generate_text|stream_generate|model_generate|_prefill|"
    r"sample_tokens|decode_step|generate_sequences|prepare_inputs_for_generation|inference_step)$"
)
_EVALUATION = LazyPattern(
    r"^(?:evaluate\w{0,24}|evaluation_loop|prediction_loop|prediction_step|predict_step|validat(?:e|ion)\w{0,24}|val_?step|eval_?\w{0,24}|"
    r"_?run_(?:eval\w{0,16}|validation|val|test)|test_step|_evaluate\w{0,16}|_run_sanity_check|test_epoch|val_epoch|valid_step|"
    r"_loglikelihood_tokens|loglikelihood|nested_concat|do_eval\w{0,12}|validation_loop)$"
)
_ENGINE_START = LazyPattern(
    r"^(?:determine_num_available_blocks|determine_available_memory|_?initialize_kv_caches?|initialize_kv_cache_tensors|profile_run|"
    r"_dummy_run|init_cache_engine|initialize_cache|_allocate_kv_cache\w{0,12}|allocate_kv_cache|warm_up_model|capture_model|"
    r"compile_or_warm_up_model|init_memory_pool|_?init_pools|init_device|check_enough_kv_cache_memory|_check_enough_kv_cache_memory|"
    r"get_kv_cache_configs?|raise_if_cache_size_invalid|_init_cache|profile_max_num_token|init_cuda_graphs|init_attention_backend|"
    r"warmup|_create_kv_caches|get_num_free_gpu_memory|profile_num_available_blocks)$"
)

_FORWARD_FUNCTIONS = _names(
    "forward",
    "_call_impl",
    "_wrapped_call_impl",
    "forward_call",
    "_conv_forward",
    "__call__",
    "call",
    "apply",
)
_FORWARD_FILES = _path(
    "torch/nn/functional.py",
    "torch/nn/modules/",
    "flash_attn",
    "xformers/",
    "torch/_refs/",
    "torch/nn/attention/",
)


def phase_of(frames: Sequence[Frame]) -> Phase:
    """The phase that a traceback's frames, outermost first, show; UNKNOWN where none says anything."""
    phase: Phase | None = None
    for depth, frame in enumerate(reversed(frames)):
        file = frame.filename.replace("\\", "/")
        function = frame.function.split("(")[0].rpartition(".")[2]
        if _is_backward(file, function, frame.code):
            return Phase.OPTIMIZER_STEP if phase is Phase.OPTIMIZER_STEP else Phase.BACKWARD
        if phase is None:
            phase = _of_frame(file, function, frame.code, is_innermost=depth == 0)
        elif phase is Phase.FORWARD:
            phase = _refined(function, frame.code) or phase
        elif phase in (Phase.DATA, Phase.OPTIMIZER_STEP) and function in _CHECKPOINT_FUNCTIONS:
            phase = Phase.CHECKPOINT
    return phase or Phase.UNKNOWN


def _is_backward(file: str, function: str, code: str) -> bool:
    if _BACKWARD_FILES.search(file) or _BACKWARD_CODE.search(code):
        return True
    return function in _BACKWARD_FUNCTIONS and not _OPTIMIZER_FILES.search(file)


def _of_frame(file: str, function: str, code: str, *, is_innermost: bool) -> Phase | None:
    """What one frame says by itself; None where it says nothing."""
    said = (
        (Phase.OPTIMIZER_STEP, _OPTIMIZER_FILES.search(file) or function in _OPTIMIZER_FUNCTIONS or _OPTIMIZER_CODE.search(code)),
        (Phase.LOSS, function in _LOSS_FUNCTIONS or _LOSS_FILES.search(file) or _LOSS_CODE.search(code)),
        (Phase.LOSS, is_innermost and _LOSS_CODE_INNERMOST.search(code)),
        (Phase.CHECKPOINT, function in _CHECKPOINT_FUNCTIONS or _CHECKPOINT_CODE.search(code)),
        (Phase.LOADING, _is_loading(file, function, code)),
        (Phase.DATA, _DATA_FILES.search(file) or function in _DATA_FUNCTIONS or _DATA_CODE.search(code)),
        (Phase.ENGINE_START, _ENGINE_START.match(function)),
        (Phase.GENERATION, _GENERATION.match(function)),
        (Phase.EVALUATION, _EVALUATION.match(function)),
        (Phase.FORWARD, function in _FORWARD_FUNCTIONS or _FORWARD_FILES.search(file)),
    )
    return next((phase for phase, is_so in said if is_so), None)


def _is_loading(file: str, function: str, code: str) -> bool:
    if _MODULE_FILE.search(file):
        return function in _MODULE_MOVES
    return function in _LOADING_FUNCTIONS or bool(_LOADING_FILES.search(file)) or bool(_LOADING_CODE.search(code))


def _refined(function: str, code: str) -> Phase | None:
    """What a forward pass was run for, by a frame outside it."""
    if _LOSS_CODE.search(code):
        return Phase.LOSS
    if _ENGINE_START.match(function):
        return Phase.ENGINE_START
    if _GENERATION.match(function):
        return Phase.GENERATION
    if _EVALUATION.match(function):
        return Phase.EVALUATION
    return None
