"""What single frames mean: which file and function of which library decides what an allocation is for.

A frame decides only by its whole file path suffix (or folder) together with its whole function name. No word is looked for inside a
name: a function called `forward_step` is not a forward pass, and `step` alone is not an optimizer.
"""

import enum

from advisor.model.dataclass import dataclass
from advisor.model.failure import Frame


class Role(enum.IntEnum):
    """What a stack says of an allocation."""

    UNKNOWN = 0  # no context was recorded
    PYTHON = 1  # Python frames, none of which decides
    CONSTRUCTION = 2  # a constructor of the user's: a model's parameters, or an optimizer's states
    LOADING = 3  # building, moving or loading a module
    FORWARD = 4
    RECOMPUTE = 5  # a forward pass repeated inside backward (checkpointing)
    BACKWARD = 6
    OPTIMIZER = 7
    INPUT = 8
    CACHE = 9
    COMMUNICATION = 10
    SAVING = 11  # copies made by state_dict and its kin


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """Frames of one place and what they mean.

    Attributes:
        place: a path suffix ("torch/nn/modules/module.py"), or a folder anywhere in the path ("torch/optim/").
        functions: function names, whole; empty for every function there.
        role: the meaning.
        creates_state: for OPTIMIZER: what these functions allocate is the optimizer's state.
    """

    place: str
    role: Role
    functions: frozenset[str] = frozenset()
    creates_state: bool = False

    def fits(self, path: str, function: str) -> bool:
        """Whether a frame is one of these."""
        if self.functions and function not in self.functions:
            return False
        return f"/{self.place}" in path if self.place.endswith("/") else path.endswith(f"/{self.place}")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MEANINGS: tuple[Meaning, ...] = (
    # Caches of keys and values.
    Meaning(place="transformers/cache_utils.py", role=Role.CACHE),
    Meaning(place="vllm/worker/cache_engine.py", role=Role.CACHE),
    Meaning(
        place="vllm/v1/worker/gpu_model_runner.py",
        functions=_names("initialize_kv_cache initialize_kv_cache_tensors _allocate_kv_cache_tensors _reshape_kv_cache_tensors"),
        role=Role.CACHE,
    ),
    Meaning(place="sglang/srt/mem_cache/memory_pool.py", role=Role.CACHE),
    Meaning(place="litgpt/model.py", functions=_names("build_kv_cache set_kv_cache"), role=Role.CACHE),
    Meaning(place="torchtune/modules/kv_cache.py", role=Role.CACHE),
    # Communication: buckets, gathered parameters, collectives.
    Meaning(
        place="torch/nn/parallel/distributed.py",
        functions=_names("__init__ _ddp_init_helper _build_params_for_reducer _sync_module_states _sync_buffers _rebuild_buckets"),
        role=Role.COMMUNICATION,
    ),
    Meaning(place="torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", role=Role.COMMUNICATION),
    Meaning(
        place="torch/distributed/fsdp/_fully_shard/_fsdp_param.py",
        functions=_names("init_all_gather_outputs alloc_all_gather_outputs init_unsharded_param"),
        role=Role.COMMUNICATION,
    ),
    Meaning(place="torch/distributed/_composable/fsdp/_fsdp_collectives.py", role=Role.COMMUNICATION),
    Meaning(
        place="torch/distributed/fsdp/_flat_param.py",
        functions=_names("_alloc_padded_unsharded_flat_param _all_gather_flat_param unshard"),
        role=Role.COMMUNICATION,
    ),
    Meaning(place="torch/distributed/fsdp/_flat_param.py", role=Role.LOADING),
    Meaning(
        place="torch/distributed/fsdp/_runtime_utils.py",
        functions=_names("_unshard _reduce_grad _reduce_grad_no_shard _get_reduce_scatter_tensors"),
        role=Role.COMMUNICATION,
    ),
    Meaning(place="torch/distributed/fsdp/_fully_shard/_fsdp_param.py", role=Role.LOADING),
    Meaning(place="torch/distributed/distributed_c10d.py", role=Role.COMMUNICATION),
    Meaning(place="torch/distributed/_functional_collectives.py", role=Role.COMMUNICATION),
    Meaning(
        place="deepspeed/runtime/zero/partition_parameters.py",
        functions=_names("all_gather all_gather_coalesced _all_gather _allgather_params _allgather_params_coalesced"),
        role=Role.COMMUNICATION,
    ),
    Meaning(place="deepspeed/runtime/zero/partition_parameters.py", role=Role.LOADING),
    # Optimizers. Zeroing gradients allocates none of their memory; averaged copies of weights are weights.
    Meaning(place="torch/optim/swa_utils.py", role=Role.LOADING),
    Meaning(
        place="torch/optim/optimizer.py",
        functions=_names("load_state_dict _process_value_according_to_param_policy"),
        role=Role.OPTIMIZER,
        creates_state=True,
    ),
    Meaning(
        place="torch/optim/",
        functions=_names("_init_group _init_state"),
        role=Role.OPTIMIZER,
        creates_state=True,
    ),
    Meaning(place="torch/optim/", role=Role.OPTIMIZER),
    Meaning(
        place="torch/amp/grad_scaler.py",
        functions=_names("unscale_ _unscale_grads_"),
        role=Role.OPTIMIZER,
    ),
    Meaning(
        place="torch/cuda/amp/grad_scaler.py",
        functions=_names("unscale_ _unscale_grads_"),
        role=Role.OPTIMIZER,
    ),
    Meaning(place="torch/nn/utils/clip_grad.py", role=Role.OPTIMIZER),
    Meaning(
        place="bitsandbytes/optim/",
        functions=_names("init_state get_state_buffer"),
        role=Role.OPTIMIZER,
        creates_state=True,
    ),
    Meaning(place="bitsandbytes/optim/", role=Role.OPTIMIZER),
    Meaning(place="apex/optimizers/", role=Role.OPTIMIZER),
    Meaning(place="deepspeed/ops/adam/", role=Role.OPTIMIZER),
    Meaning(place="deepspeed/ops/lion/", role=Role.OPTIMIZER),
    Meaning(
        place="deepspeed/runtime/zero/stage_1_and_2.py",
        functions=_names("initialize_optimizer_states"),
        role=Role.OPTIMIZER,
        creates_state=True,
    ),
    Meaning(
        place="deepspeed/runtime/zero/stage_1_and_2.py",
        functions=_names("step _optimizer_step"),
        role=Role.OPTIMIZER,
    ),
    Meaning(
        place="deepspeed/runtime/zero/stage3.py",
        functions=_names("step _optimizer_step"),
        role=Role.OPTIMIZER,
    ),
    Meaning(place="megatron/core/optimizer/", role=Role.OPTIMIZER),
    Meaning(place="transformer_engine/pytorch/optimizers/", role=Role.OPTIMIZER),
    Meaning(place="torchao/optim/", role=Role.OPTIMIZER),
    Meaning(place="timm/optim/", role=Role.OPTIMIZER),
    Meaning(place="galore_torch/", role=Role.OPTIMIZER),
    Meaning(place="schedulefree/", role=Role.OPTIMIZER),
    Meaning(place="transformers/optimization.py", functions=_names("step"), role=Role.OPTIMIZER),
    # Backward, as seen from the thread that calls it.
    Meaning(
        place="torch/autograd/graph.py",
        functions=_names("_engine_run_backward"),
        role=Role.BACKWARD,
    ),
    Meaning(
        place="torch/autograd/__init__.py",
        functions=_names("backward grad _make_grads"),
        role=Role.BACKWARD,
    ),
    Meaning(place="torch/_tensor.py", functions=_names("backward"), role=Role.BACKWARD),
    # Inputs on their way to the device.
    Meaning(place="torch/utils/data/", role=Role.INPUT),
    Meaning(
        place="accelerate/utils/operations.py",
        functions=_names("send_to_device _send_to_device"),
        role=Role.INPUT,
    ),
    Meaning(
        place="transformers/trainer.py",
        functions=_names("_prepare_input _prepare_inputs"),
        role=Role.INPUT,
    ),
    Meaning(place="lightning_fabric/utilities/apply_func.py", role=Role.INPUT),
    Meaning(place="lightning/fabric/utilities/apply_func.py", role=Role.INPUT),
    Meaning(place="transformers/feature_extraction_utils.py", functions=_names("to"), role=Role.INPUT),
    Meaning(place="transformers/tokenization_utils_base.py", functions=_names("to"), role=Role.INPUT),
    # Saving.
    Meaning(
        place="torch/nn/modules/module.py",
        functions=_names("state_dict _save_to_state_dict"),
        role=Role.SAVING,
    ),
    Meaning(place="torch/distributed/checkpoint/", role=Role.SAVING),
    Meaning(place="torch/distributed/fsdp/_state_dict_utils.py", role=Role.SAVING),
    # Building, moving and loading modules.
    Meaning(
        place="torch/nn/modules/module.py",
        functions=_names(
            "_apply convert to cuda half float double bfloat16 to_empty load_state_dict load _load_from_state_dict "
            "register_parameter register_buffer"
        ),
        role=Role.LOADING,
    ),
    Meaning(
        place="torch/nn/modules/",
        functions=_names("__init__ reset_parameters _reset_parameters"),
        role=Role.LOADING,
    ),
    Meaning(place="torch/nn/parameter.py", role=Role.LOADING),
    Meaning(place="torch/nn/init.py", role=Role.LOADING),
    Meaning(place="torch/serialization.py", role=Role.LOADING),
    Meaning(
        place="torch/_utils.py",
        functions=_names("_rebuild_tensor _rebuild_tensor_v2 _rebuild_parameter"),
        role=Role.LOADING,
    ),
    Meaning(place="torch/_tensor.py", functions=_names("__deepcopy__"), role=Role.LOADING),
    Meaning(place="safetensors/torch.py", role=Role.LOADING),
    Meaning(
        place="transformers/modeling_utils.py",
        functions=_names("from_pretrained _load_pretrained_model"),
        role=Role.LOADING,
    ),
    Meaning(
        place="transformers/modeling_utils.py",
        functions=_names("_load_state_dict_into_meta_model"),
        role=Role.LOADING,
    ),
    Meaning(place="transformers/core_model_loading.py", role=Role.LOADING),
    Meaning(place="accelerate/utils/modeling.py", role=Role.LOADING),
    Meaning(place="accelerate/big_modeling.py", role=Role.LOADING),
    Meaning(place="bitsandbytes/nn/modules.py", functions=_names("to cuda _quantize"), role=Role.LOADING),
    # Forward, last: anything above that a module calls is decided further inside.
    Meaning(
        place="torch/nn/modules/module.py",
        functions=_names("_call_impl _wrapped_call_impl _slow_forward __call__ inner"),
        role=Role.FORWARD,
    ),
    Meaning(
        place="torch/_dynamo/eval_frame.py",
        functions=_names("compile_wrapper __call__"),
        role=Role.FORWARD,
    ),
)
"""In order: of two that fit one frame the first counts."""

NOT_AN_OPTIMIZER = "torch/optim/lr_scheduler.py"
"""Wraps `step` too, and allocates nothing of an optimizer."""

RECOMPUTES = (
    Meaning(
        place="torch/utils/checkpoint.py",
        functions=_names("unpack_hook recompute_fn backward"),
        role=Role.RECOMPUTE,
    ),
)
"""Frames below which a forward pass is a repetition inside backward."""

COMPILED_BACKWARD = (
    Meaning(
        place="torch/_functorch/_aot_autograd/runtime_wrappers.py",
        functions=_names("backward _backward_impl impl_fn"),
        role=Role.BACKWARD,
    ),
)
"""Frames of a compiled backward pass, which autograd runs as a Python function."""

PLUMBING = (
    "torch/",
    "einops/",
    "functorch/",
    "triton/",
    "torchinductor_root/",
)
"""Folders whose frames say how, not what: a site's label is the innermost frame outside of them."""

PLUMBING_FILES = (
    "<string>",
    "runpy.py",
    "contextlib.py",
    "functools.py",
    "<frozen runpy>",
    "threading.py",
)

THREAD_STARTS = _names("<module> _bootstrap _run_module_as_main _run_code main_process_target")
"""The outermost functions of threads that Python started; autograd's threads end elsewhere."""


def normalized(frame: Frame) -> str:
    """The path of a frame with forward slashes and one in front, so that suffixes match whole components."""
    return "/" + frame.filename.replace("\\", "/")


def is_python(frame: Frame) -> bool:
    """Whether a frame is Python code, by its file: C++ frames have "??", nothing, or a source file of C or C++."""
    return frame.filename.endswith((".py", ".pyx")) or frame.filename.startswith("<")
