"""The words of the field that rules can use, by topic: what a log speaks of besides its failures.

A phrase is matched without regard to case and stands alone: no letter, digit or underscore before or behind it, unless a star opens
that end. A topic's name is stable; rules ask for it by name (`LogText.mentioned`).
"""

from advisor.ingest.lazy_pattern import LazyPattern

_TABLE = r"""
# loading and resuming
torch.load: torch.load
map-location: map_location
load-state-dict: load_state_dict | *load_state_dict_into*
from-pretrained: from_pretrained
device-map: device_map
resume: resume | resumed | resuming | resume_from_checkpoint | --resume | after restart
    | load_checkpoint
meta-device: meta device | init_empty_weights | device('meta') | device("meta")

# evaluation and generation
evaluation: evaluate | evaluation | evaluating | trainer.evaluate | validation | validate
    | validating | evaluation_loop | prediction_step | prediction_loop | validation_step
    | eval_step | *run_validation | eval loop | do_eval | val_loader | valid_loader | test_step
    | eval_steps
evaluate-call: trainer.evaluate | evaluate() | evaluation_loop | prediction_loop | nested_concat
generate: generate | generation | model.generate | greedy_search | beam_search
no-grad: no_grad | torch.no_grad
inference-mode: inference_mode
volatile: volatile
eval-accumulation: eval_accumulation_steps
compute-metrics: compute_metrics
preprocess-logits: preprocess_logits_for_metrics

# adapters and frozen weights
lora: lora | qlora | only_optimize_lora | loraconfig | lora_r | lora_rank | lora_alpha
    | lora_target_modules | dora
qlora: qlora
peft: peft | get_peft_model | peft_config
frozen-weights: frozen | freeze | requires_grad_(false) | requires_grad = false
    | requires_grad=false
quantized: load_in_4bit | load_in_8bit | bitsandbytes | 4bit | 4-bit | 8-bit | nf4 | gptq | awq
    | int8
full-fine-tune: full fine-tune | full finetune | full fine tuning | full fine-tuning
    | full_finetune | full_finetuning

# activation checkpointing
gradient-checkpointing: gradient_checkpointing | gradient checkpointing | activation checkpointing
    | activation_checkpointing | torch.utils.checkpoint | checkpointing
    | gradient_checkpointing_enable | recompute_granularity | nn.remat | jax.checkpoint
use-reentrant: use_reentrant
enable-input-require-grads: enable_input_require_grads
inputs-without-grad: none of the inputs have requires_grad=true
use-cache: use_cache
use-cache-conflict: `use_cache=true` is incompatible with gradient checkpointing

# optimizer
adamw: adamw | adamw_torch | adamw_hf | fusedadam | deepspeedcpuadam | adamw_torch_fused
    | *_multi_tensor_adamw
adam: adam | fusedadam | optim.adam
sgd: sgd
adafactor: adafactor
8bit-optimizer: adamw_8bit | adamw_bnb_8bit | paged_adamw_8bit | paged_adamw_32bit | adam8bit
    | adamw8bit | 8-bit adam | adamw8bitao | pagedadamw | pagedadamw8bit
optimizer-state: exp_avg | exp_avg_sq | optimizer state | optimizer states | *_init_group
    | momentum_buffer
optimizer-step: optimizer.step | optimizer_step | optim.step | *optimizer.step
fused-optimizer: fused=true | adamw_torch_fused | fusedadam | multi-tensor kernel
foreach: foreach=true | foreach | *_foreach_* | *_multi_tensor_* | foreach=false
zero-grad: zero_grad | set_to_none
gradient-accumulation: gradient_accumulation_steps | gradient accumulation
    | accumulate_grad_batches

# sharding and parallelism
fsdp: fsdp | fullyshardeddataparallel | fsdp2 | fsdp1 | fully_shard
deepspeed: deepspeed
zero: zero-1 | zero-2 | zero-3 | zero3 | zero2 | zero stage | zero_optimization | stage3_*
zero-3: zero-3 | zero3 | zero stage 3 | stage3_* | stage3.py
offload: offload | cpu_offload | offloading | offloaded | offload_optimizer | offload_param
    | cpu offload
all-gather: all_gather | all_gather_object | allgather | all_gather_into_tensor
tensor-parallel: tensor_parallel_size | tensor parallel | tensor_model_parallel_size | -tp | --tp
    | tp_size
pipeline-parallel: pipeline_parallel_size | pipeline parallel | pipeline_model_parallel_size
    | naive pipeline
expert-parallel: expert_parallel | mixture of experts | moe
data-parallel: nn.dataparallel | dataparallel | torch.nn.dataparallel | data_parallel.py
    | gather_outputs
ddp: ddp | distributeddataparallel | distributed data parallel | ddp_strategy
find-unused-parameters: find_unused_parameters
no-sync: no_sync
gradient-buckets: gradient_as_bucket_view | bucket_cap_mb | reduce bucket | reduce_bucket_size
set-device: set_device | torch.cuda.set_device | local_rank

# saving
state-dict: state_dict | full_state_dict | full_optim_state_dict
checkpoint-save: torch.save | save_checkpoint | save_pretrained | _save_checkpoint
    | asynchronous save | saving checkpoint | checkpoint save | save_model | async_save
    | saving model checkpoint | synchronous save | wait_for_staging
async-checkpoint: async_save | asynchronous save | async staging | wait_for_staging
    | async checkpoint

# attention
attention: attention | attn | self_attn | multihead | multi_head_attention | *attention.forward
    | *_attention_forward
flex-attention: flex_attention | flexattention
sdpa: scaled_dot_product_attention | sdpa | *sdpaattention | sdpa_attention
math-attention: math backend | sdpbackend.math | math sdpa | _scaled_dot_product_attention_math
    | eager_attention_forward | attn_implementation="eager" | attn_implementation='eager'
    | basic attention
flash-attention: flash_attn | flash attention | flash-attention | flashattention
    | flash_attention_2 | flash_attn_varlen_func
no-flash-attention: flash_attn is not installed | flash attention is not available
    | without flash_attn | without flash attention | flash_attn not installed
    | torch was not compiled with flash attention | no flash attention
    | flash-attn is not installed | package flash_attn seems to be not installed
memory-efficient-attention: memory_efficient_attention | xformers | efficient attention
dense-attention-mask: causal_mask | attn_mask | attention_mask
vision-attention: *visionsdpaattention* | *visionattention* | vision attention
    | *vision*attention.forward | *visionflash*

# logits and loss
cross-entropy: cross_entropy | crossentropyloss | nll_loss | crossentropy | fixed_cross_entropy
    | forcausallmloss
logits: logits
lm-head: lm_head | output_layer
log-softmax: log_softmax | logprob | logprobs | get_batch_logps | selective_log_softmax
float-upcast: logits.float() | .float() | to(torch.float32) | upcast
vocabulary: vocab | vocab_size | vocabulary
fused-cross-entropy: fused_linear_cross_entropy | liger | cut_cross_entropy
    | fused linear cross entropy | logits_to_keep

# kept alive from step to step
retain-graph: retain_graph
item: .item() | loss.item() | item()
detach: .detach() | detach()
memory-grows: memory leak | memory leaks | keeps growing | keeps increasing | memory increases
    | memory usage increases | memory grows | usage rises | grows steadily | keep increasing
    | slowly increases | gradually increases
second-step: second iteration | second step | after the first step | after the first iteration
    | 2nd iteration
first-step: first step | first iteration
reference-cycle: reference cycle | reference cycles | circular reference | gc.collect
hooks: register_forward_hook | register_hook | register_full_backward_hook

# data
pin-memory: pin_memory
dataloader: dataloader | data_loader | *dataloaderiter* | enumerate(dataloader)*
    | dataloader worker
dataloader-worker: dataloader worker
prefetch: prefetch_factor | prefetch | persistent_workers
data-time: data_time | data time | dataloader time
shared-memory: shm | /dev/shm | shm_size | --shm-size | shared memory | shm-size | --ipc=host
file-descriptors: ancdata | too many open files | file_descriptor | ulimit
memory-mapped-file: lmdb | mmap | memmap | np.memmap
padding: padding | pad_to_multiple_of | pad_sequence | left padding
packing: packing | packed | sample packing | sequence packing
sequence-length: max_seq_len | max_seq_length | max_length | seq_len | sequence length
    | model_max_length | cutoff_len | longer than
long-sequence: token indices sequence length is longer than the specified maximum
    | sequence length is longer than | exceeds max_seq_len | exceed max_seq_len | long samples
    | longest sample | outlier
truncation: truncation | truncate | truncated
variable-length: variable length | variable-length | varying lengths | variable batch
    | changing lengths | dynamic shapes | dynamic shape
batch-size: batch size | batch_size | micro_batch_size | per_device_train_batch_size
    | train_batch_size
images: image_size | pixel_values | image tokens | resolution | max_pixels

# compilation and graphs
cuda-graphs: cuda graph | cuda graphs | cudagraph | cudagraphs | cudagraph_trees | hip graph
    | hip graphs | capture_model | graph-replays | capturing cuda graph shapes
    | capturing the model for cuda graphs | cuda_graph
reduce-overhead: reduce-overhead | max-autotune
enforce-eager: enforce_eager | --enforce-eager
cuda-graph-shapes: recording cudagraph tree for | distinct sizes to cudagraph
    | cudagraph_capture_sizes | cuda_graph_bs | cudagraph dynamic shapes | too many dynamic shapes
torch-compile: torch.compile | inductor | torch._dynamo | torchinductor | dynamo | compile_inner
recompile: recompile | recompiles | recompiling | recompilation | recompilations
    | cachelimitexceeded | cache_size_limit | recompile_limit | torch._dynamo hit config*
    | accumulated_cache_size_limit | last reason
recompile-limit: cachelimitexceeded | torch._dynamo hit config* | recompile_limit reached*
    | hit config.cache_size_limit | hit config.recompile_limit
dynamo-reset: torch._dynamo.reset | _dynamo.reset | dynamo cache
graph-break: graph break | graph breaks | graph_break
mark-dynamic: mark_dynamic | dynamic=true
convolution: conv2d | conv3d | conv1d | convolution | *conv_forward | conv_transpose3d
    | conv_transpose2d | slow_conv_transpose3d
cudnn-benchmark: cudnn.benchmark | benchmark=true
memory-format: channels_last | nchw | nhwc | nchwtonhwc* | nhwctonchw*
library-workspace: cublas workspace | cublas_workspace_config | miopen | autotune | cudnnfind*

# allocator
expandable-segments: expandable_segments | expandable segments
max-split-size: max_split_size_mb
gc-threshold: garbage_collection_threshold
alloc-conf: pytorch_cuda_alloc_conf | pytorch_alloc_conf | pytorch_hip_alloc_conf
    | pytorch_npu_alloc_conf
malloc-async: cudamallocasync | backend:cudamallocasync
memory-fraction: set_per_process_memory_fraction | per_process_memory_fraction
    | per_process_gpu_memory_fraction
preallocate: xla_python_client_preallocate | preallocate | preallocates | preallocated
    | preallocating | xla_python_client_mem_fraction
memory-growth-option: set_memory_growth | allow_growth | tf_force_gpu_allow_growth
empty-cache: empty_cache
fragmentation: fragmentation | fragmented | cannot be utilised | cannot be utilized
    | not releasable | non-releasable | unusable memory | inactive_split
cudamalloc: cudamalloc | cudafree | hipmalloc | cudahostalloc | cudamalloc call*
record-stream: record_stream
watermark: pytorch_mps_high_watermark_ratio | pytorch_mps_low_watermark_ratio

# other processes and other engines on the device
zombie-process: zombie | zombies | defunct | <defunct>
orphan-process: orphan | orphaned | orphans | leftover process | leftover processes
    | left over processes | still alive | not terminated | stale process | stale processes
nvidia-smi: nvidia-smi | rocm-smi | npu-smi
other-process: other process | other processes | another process | occupied by other | other jobs
    | other users
later-run: second run | later model | on later | second server | second model
vllm-in-trainer: llm(...) | self.llm = llm( | llmrayactor | vllm_gpu_memory_utilization | use_vllm
    | vllm_mode | colocate | colocated | hybrid_engine | rollout.gpu_memory_utilization
    | sharding_manager
rlhf: grpo | ppo | rlhf | rloo | dpo | rollout | grpotrainer | ppotrainer | openrlhf | verl | trl
sleep-mode: enable_sleep_mode | sleep_mode | cumem_allocator | cumem_allocator.cpp
    | torch_memory_saver | sleep mode
second-model: ema_model | ema model | ref_model | reference model | reference_model | teacher
    | teacher_model | old_policy | ref_policy | deepcopy
mig: mig | mig device | 1g.5gb | 1g.10gb | 2g.10gb | 3g.20gb | 3g.40gb | 7g.80gb
wsl: wsl | wsl2
windows: windows | win32 | wddm | windows 10 | windows 11 | site-packages\torch*
carve-out: carve-out | gtt | vram carve-out | uma frame buffer

# engines' own words
kv-cache: kv cache | kv_cache | past_key_values | key_cache | dynamiccache | past_key_value
    | kvcache | value_cache
kv-cache-concatenation: torch.cat([past_key* | torch.cat((past_key* | torch.cat([self.key_cache*
    | torch.cat([self.keys* | torch.cat([past_key_value*
kv-preemption: is preempted by | preemptionmode.recompute | kv cache pool is full
    | retract requests | retract_decode
gpu-blocks: # gpu blocks | # cuda blocks | gpu kv cache size | maximum concurrency for
swap-space: swap_space

# communication
nccl-timeout: watchdog caught collective operation timeout | collective operation timeout
    | nccl timeout | timed out after | heartbeat monitor timed out
nccl: nccl | rccl | nccl warn
nccl-groups: new_group | destroy_process_group | nccl groups | communicator | communicators
    | nccl_buffsize
gloo: gloo
peer-to-peer: p2p | peer to peer | peer-to-peer | nccl_p2p_disable | p2pbandwidthlatencytest
    | peer access
pcie-acs: acs | acsctl | reqredir+ | cmpltredir+ | iommu | intel_iommu | amd_iommu | noacs
topology: topo -m | nvlink | sys | phb | pix | infiniband | mlx5_* | roce
rdma: rdma | gpudirect | gpu direct | gdr | nccl_net_gdr_level | gdrcopy
straggler: straggler | stragglers | slow rank | waiting for other ranks

# time
synchronize: cuda.synchronize | synchronize() | cudadevicesynchronize | cudastreamsynchronize
    | torch.cuda.synchronize | streamsynchronize
stream-synchronize: cudastreamsynchronize | hipstreamsynchronize
launch-overhead: launch overhead | launch-bound | launch bound | cudalaunchkernel | kernel launch
    | cpu overhead | dispatch overhead | direct; 8-30% util
gpu-idle: gpu idle | gpu utilization | gpu util | gpu is idle | cuda usage | gpu usage
garbage-collection: gc.collect | gc.disable | gc.freeze | garbage collection | garbage collector
    | gen-2 | gen2 | gc pause
cpu-threads: omp_num_threads | set_num_threads | openmp | libgomp | thread creation failed*
    | mkl_num_threads | num_threads
autograd-anomaly: set_detect_anomaly | detect_anomaly | anomaly_mode
launch-blocking: cuda_launch_blocking
debugger: pydevd | debugpy | pdb
profiler: torch.profiler | nsys | key_averages | self cpu time total | self cuda time total
    | self cpu % | cpu total % | cuda total %
tf32: tf32 | tensorfloat32 | allow_tf32 | set_float32_matmul_precision
tf32-disabled: tensorfloat32 tensor cores for float32 matrix multiplication available but not enabled
    | allow_tf32=false | allow_tf32 = false
float32: float32 | fp32 | --no-half | full precision
half-precision: bf16 | bfloat16 | fp16 | float16 | autocast | mixed precision | amp
pageable-memory: pageable | pageable memory | pageable->device | non_blocking
host-to-device: memcpy htod | cudamemcpyasync | host to device | memcpyhtod | htod
validation-or-logging: log_every_n_steps | logging_steps | wandb | val_check_interval
seconds-per-token: *s/token | ms per token | per token is about | tokens/s | tok/s
seconds-per-step: s/it | sec/step | step time | s/update | it/s | seconds per step
layers-on-host: layer offloaded | layers offloaded | pre_layer | n_gpu_layers | offloaded to gpu
    | offloaded to the cpu | with offload | cpu offloading
    | some parameters are on the meta device | sysmem fallback
data-dependent-operator: aten::nonzero | aten::item | aten::_local_scalar_dense | nonzero
shared-device-work: nvdec | nvenc | cuda mps | time-slicing
power-cap: sw power cap | power cap | power limit | power-cap | power brake | capped to*
thermal: thermal | thermal slowdown | temperature | throttling | throttled | thermally
xid: xid
ecc: ecc | remapped rows | retired pages | row remap | uncorrectable
collective: all_reduce | allreduce | all-reduce | reduce_scatter | broadcast_one_to_all
"""
"""A topic a line, then its phrases; an indented line goes on with the topic above it."""


def _phrases(table: str) -> dict[str, tuple[str, ...]]:
    """Topic → phrases, of the table above."""
    entries: dict[str, tuple[str, ...]] = {}
    for line in table.replace("\n    | ", " | ").split("\n"):
        if line and not line.startswith("#"):
            topic, _, phrases = line.partition(": ")
            entries[topic] = tuple(phrases.split(" | "))
    return entries


PHRASES = _phrases(_TABLE)
"""Topic → phrases."""

PATTERNS: dict[str, tuple[str, LazyPattern]] = {
    "alloc-retries": (
        "retries",
        LazyPattern(
            r"(?i)(?<!\bno )(?<!,)\b(?:num_alloc_retries|alloc_retries|cuda ?malloc retries)\b"
            r"(?![\"'\])]{0,3}\s{0,12}(?:[:=|]|->)?\s{0,12}(?:0(?:\.0{1,6})?(?![\d.]*\d)|none\b)|[\"']?,\S)"
        ),
    ),
    "loss-accumulation": (
        "+=",
        LazyPattern(
            r"\b\w{0,30}(?:loss|likelihood|nll|cost|err(?:or)?)\w{0,20} \+= (?!.{0,80}(?:\.item\(\)|\.detach\(\)|float\(|\.data\b))"
        ),
    ),
    "loss-accumulation-in-words": (
        "+=",
        LazyPattern(r"(?i)\+= of (?:the )?loss|loss(?:es)? \+= ?without"),
    ),
    "num-workers": ("num_workers", LazyPattern(r"\bnum_workers[\"' ]{0,2}[=: ]{1,3}\d{1,4}\b")),
    "num-workers-0": ("num_workers", LazyPattern(r"\bnum_workers[\"' ]{0,2}[=: ]{1,3}0\b")),
    "single-process-loader": ("_singleprocess", LazyPattern(r"_SingleProcessDataLoaderIter")),
    "after-epochs": (
        "epoch",
        LazyPattern(r"(?i)\bafter (?:\w{1,12} )?(?:\d{1,5}|a few|several|some) epochs?\b|\bafter (?:each|every|the first) epoch\b"),
    ),
    "square-attention": ("s", LazyPattern(r"\b[ST] ?[x×] ?[ST]\b|\bS\^2\b|\bquadratic\b")),
    "long-context": (
        "=",
        LazyPattern(r"\b(?:S|seq_?len|sequence_length|max_seq_len)\s?=\s?\d{5,7}\b"),
    ),
    "parallel-size-in-words": ("tp=", LazyPattern(r"-tp=\d{1,3}\b")),
    "library-workspace-in-words": (
        "workspace",
        LazyPattern(r"(?<![/\w])workspace(?! ?[/:])"),
    ),
    "scale-dependent": (
        "with",
        LazyPattern(r"(?i)\bwith -?\w{0,3}=?\d{1,5}(?: (?:machines|nodes|gpus|ranks)|\b.{0,8};? ?(?:fine|works) with)|\bfine with\b"),
    ),
    "second-step-failure": (
        "memory",
        LazyPattern(r"(?i)out of memory.{0,40}\b(?:iteration|step) 2\b"),
    ),
    "no-grad-missing": (
        "grad",
        LazyPattern(r"(?i)\bwithout (?:torch\.)?no_grad|forgot (?:torch\.)?no_grad"),
    ),
}
"""Topic → a needle (lower case) and the pattern that a line with it must match, for what no phrase can say."""

NO_WORDS = LazyPattern(
    r"non-releasable (?:memory|allocs) {1,40}\||inactive_split\.(?:all|small_pool|large_pool)\."
    r"|fragmentation[\"']?(?: ratio)? ?[:=] ?0(?:\.0{1,6})?(?![\d.]*\d)"
)
"""Labels of tables that every healthy job prints too, and a count of none; in lower case, from the phrase on."""

STANDING_ADVICE = (
    b"try setting", b"to avoid fragmentation", b"e.g., cuda graphs", b"e.g., hip graphs", b"reduce gpu memory used by",
    b"to disable upper limit",
    b"use pytorch_mps_high",
    b"to release all unoccupied", b"possible that dataloader", b"raise your shared memory",
)  # fmt: skip
"""Parts of messages that every failure prints, whatever the program does; words near them are not the log's own."""
