"""A small input of each kind that holds every field the readers look at; the sweeps put something wrong into each of them."""

import pickle

from ingest.a_snapshot import ADAMW_STATES, FORWARD, MOVE, Allocator, a_block, a_raw_snapshot, a_segment

MIB = 1024**2

STEP_US = 1_000


def _operator(number, at, name, **arguments):
    said = {"External id": number, "Sequence number": number, "Fwd thread id": 0, "Record function id": 0}
    shapes = {
        "Input Dims": [[64, 512], [512, 512], []],
        "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"],
        "Concrete Inputs": ["", "", "1"],
        "Input Strides": [[512, 1], [1, 512], []],
    }
    return _complete("cpu_op", name, at, 20, 100, 100, {**said, **shapes, **arguments})


def _complete(category, name, at, dur, pid, tid, arguments):  # noqa: PLR0913, PLR0917 - the keys of an event
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": dur, "args": arguments}


def _on_device(category, name, at, dur, correlation, **arguments):
    said = {"External id": correlation, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": correlation}
    launch = {"registers per thread": 64, "grid": [16, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 50}
    return _complete(category, name, at, dur, 0, 7, {**said, **(launch if category == "kernel" else {}), **arguments})


def _step(number):
    at = 1_000_000 + number * STEP_US
    first = 100 * (number + 1)
    message = {"In msg nelems": 4096, "Out msg nelems": 4096, "dtype": "Float", "Group size": 2, "Process Group Ranks": "[0, 1]"}
    yield _complete("user_annotation", f"ProfilerStep#{number}", at, STEP_US - 10, 100, 100, {"External id": first, "Ev Idx": number})
    yield _complete(
        "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 200, 100, 100, {"External id": 1}
    )
    yield _complete("python_function", "train.py(10): step", at + 5, 900, 100, 100, {"Python id": 1, "Python parent id": None, "Ev Idx": 1})
    yield _operator(first + 1, at + 300, "aten::mm")
    yield _complete(
        "cuda_runtime", "cudaLaunchKernel", at + 305, 5, 100, 100, {"correlation": first + 1, "cbid": 211, "External id": first + 1}
    )
    yield _on_device("kernel", "ampere_bf16_s16816gemm_128x128_tn", at + 320, 200, first + 1)
    yield {"ph": "s", "id": first + 1, "pid": 100, "tid": 100, "ts": at + 305, "cat": "ac2g", "name": "ac2g"}
    yield {"ph": "f", "id": first + 1, "pid": 0, "tid": 7, "ts": at + 320, "cat": "ac2g", "name": "ac2g", "bp": "e"}
    yield _operator(first + 2, at + 330, "aten::copy_")
    yield _complete("cuda_runtime", "cudaMemcpyAsync", at + 335, 60, 100, 100, {"correlation": first + 2, "External id": first + 2})
    yield _on_device(
        "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 530, 40, first + 2, bytes=4 * MIB, **{"memory bandwidth (GB/s)": 12.5}
    )
    yield _complete("cuda_runtime", "cudaMemsetAsync", at + 400, 5, 100, 100, {"correlation": first + 3})
    yield _on_device("gpu_memset", "Memset (Device)", at + 575, 5, first + 3, bytes=4096)
    yield _operator(first + 4, at + 410, "record_param_comms", **message)
    yield _complete("cuda_driver", "cuLaunchKernelEx", at + 415, 5, 100, 100, {"correlation": first + 4})
    yield _on_device("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 590, 80, first + 4, **message)
    yield _complete("user_annotation", "Optimizer.step#AdamW.step", at + 450, 200, 100, 100, {"External id": first + 5})
    yield _operator(first + 5, at + 455, "aten::_foreach_add_")
    yield _complete("cuda_runtime", "cudaDeviceSynchronize", at + 700, 200, 100, 100, {"correlation": first + 6})
    yield _on_device("cuda_sync", "Stream Sync", at + 700, 100, first + 6, wait_on_stream=7)
    yield _complete("gpu_user_annotation", f"ProfilerStep#{number}", at + 320, 350, 0, 7, {"External id": first})
    marks = {"Total Reserved": 512 * MIB, "Total Allocated": 400 * MIB, "Bytes": 4 * MIB, "Addr": 1, "Device Id": 0, "Device Type": 1}
    yield {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 100, "tid": 100, "ts": at + 300, "args": marks}


def a_trace():
    """Three steps of a training with one of everything."""
    named = {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 1_000_000, "args": {"name": "python"}}
    out_of_memory = {"Device Id": 0, "Total Allocated": 1, "Total Reserved": 2, "Device Type": 1}
    refused = {"ph": "i", "name": "[OutOfMemory]", "pid": 100, "tid": 100, "ts": 1_000_900, "args": out_of_memory}
    device = {
        "id": 0,
        "name": "NVIDIA A100-SXM4-80GB",
        "totalGlobalMem": 84_000_000_000,
        "computeMajor": 8,
        "computeMinor": 0,
        "numSms": 108,
    }
    return {
        "schemaVersion": 1,
        "deviceProperties": [device],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_count": 1},
        "record_shapes": 1,
        "with_stack": 1,
        "profile_memory": 1,
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "INFO": ["a line of the profiler"],
        "traceEvents": [named, *(event for number in range(3) for event in _step(number)), refused],
        "traceName": "trace.json",
    }


def a_snapshot():
    """A short history with its segments, ended by a refused request."""
    allocator = Allocator()
    weights = allocator.alloc(64 * MIB, MOVE)
    activations = [allocator.alloc(8 * MIB, FORWARD) for _ in range(3)]
    allocator.alloc(128 * MIB, ADAMW_STATES)
    allocator.free(activations[1], FORWARD)
    allocator.fail(4096 * MIB, 100 * MIB)
    raw = allocator.raw(
        allocator_settings={
            "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": False,
            "roundup_power2_divisions": {"1": 4, ">": 2},
        },
        external_annotations=[{"name": "Optimizer.step#AdamW", "stage": "START", "device": 0, "time_us": 1_700_000_000_000_010}],
    )
    raw["device_traces"][0].append(
        {
            "action": "annotate",
            "addr": weights,
            "size": 0,
            "stream": 0,
            "time_us": 1_700_000_000_000_020,
            "user_metadata": "w",
            "pool_id": (0, 1),
        }
    )
    raw["segments"][0]["blocks"][0]["history"] = [{"addr": 1, "real_size": 5, "frames": FORWARD}]
    return raw


def an_old_snapshot():
    """One of torch 2.0: no history, sizes in each block's own history."""
    block = a_block(history=[{"addr": 0x7F0000000000, "real_size": MIB, "frames": FORWARD}])
    return a_raw_snapshot([a_segment(block, a_block(state="inactive", address=0x7F0000200000))], ())


def pickled(value, protocol=4):
    """As torch writes it."""
    return pickle.dumps(value, protocol)


MEMORY_STATS = {
    "active_bytes.all.current": 400 * MIB,
    "active_bytes.all.peak": 900 * MIB,
    "allocated_bytes.all.current": 300 * MIB,
    "allocated_bytes.all.peak": 800 * MIB,
    "inactive_split_bytes.all.current": 20 * MIB,
    "max_split_size": -1,
    "num_alloc_retries": 3,
    "num_ooms": 1,
    "requested_bytes.all.current": 299 * MIB,
    "reserved_bytes.all.current": 512 * MIB,
    "reserved_bytes.all.peak": 1024 * MIB,
}

CONFIGS = {
    "llama": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 32,
        "head_dim": 128,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "mlp_bias": False,
        "quantization_config": None,
        "_name_or_path": "a-model",
    },
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None, "vocab_size": 50257, "n_positions": 1024},
    "mixtral": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 32,
        "vocab_size": 32000,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": 4096,
    },
    "deepseek": {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "moe_layer_freq": 1,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
    },
    "gemma": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 262208,
            "sliding_window": 1024,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        "vision_config": {"hidden_size": 1152},
    },
}
"""Configurations of Hugging Face, one a family of readers."""
