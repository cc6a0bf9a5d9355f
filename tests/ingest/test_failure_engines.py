from failure_messages import GIB, printed, the_failure

from advisor.model.failure import FailureKind


def test_vllm_without_blocks_says_nothing_else() -> None:
    failure = the_failure(
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
    )

    assert failure.kind is FailureKind.KV_CACHE_REFUSED
    assert failure.generation == "vLLM no blocks"


def test_vllm_v0_compares_tokens() -> None:
    failure = the_failure(
        "ValueError: The model's max seq len (65536) is larger than the maximum number of tokens that can"
        " be stored in KV cache (20976). Try increasing `gpu_memory_utilization`"
    )

    assert (failure.needed_tokens, failure.available_tokens) == (65_536, 20_976)


def test_vllm_v1_compares_bytes_and_estimates_a_length() -> None:
    failure = the_failure(
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV"
        " cache is needed, which is larger than the available KV cache memory (9.62 GiB). Based on the"
        " available memory, the estimated maximum model length is 78816. Try increasing"
    )

    assert failure.requested_bytes == 16 * GIB
    assert failure.allowed_bytes == printed("9.62", GIB)
    assert (failure.needed_tokens, failure.available_tokens) == (131_072, 78_816)


def test_vllm_v1_in_its_first_wording_prints_gb_of_1024() -> None:
    failure = the_failure(
        "ValueError: To serve at least one request with the models's max seq len (32768), (6.00 GB KV cache"
        " is needed, which is larger than the available KV cache memory (1.25 GB). Try increasing"
    )

    assert failure.requested_bytes == 6 * GIB
    assert failure.available_tokens is None


def test_vllm_at_startup_names_free_memory_and_its_share() -> None:
    failure = the_failure(
        "ValueError: Free memory on device cuda:1 (31.5/79.15 GiB) on startup is less than desired GPU"
        " memory utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by"
        " other processes."
    )

    assert failure.kind is FailureKind.KV_CACHE_REFUSED
    assert failure.device_index == 1
    assert failure.free_bytes == printed("31.5", GIB)
    assert failure.total_bytes == printed("79.15", GIB)
    assert failure.requested_bytes == printed("71.24", GIB)
    assert "0.9" in failure.detail


def test_disturbed_profiling_is_no_lack_of_memory() -> None:
    failure = the_failure(
        "AssertionError: Error in memory profiling. Initial free memory 20.00 GiB, current free memory"
        " 24.50 GiB. This happens when other processes release memory while vLLM is profiling."
    )

    assert failure.kind is FailureKind.NOT_OUT_OF_MEMORY


def test_sglang_has_no_tokens_left_after_its_weights() -> None:
    failure = the_failure(
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.75"
    )

    assert (failure.backend, failure.kind) == ("SGLang", FailureKind.KV_CACHE_REFUSED)
    assert failure.detail == "mem_fraction_static=0.75"


def test_sglang_at_prefill_compares_tokens_over_three_lines() -> None:
    failure = the_failure(
        "RuntimeError: Prefill out of memory. Try to lower your batch size.\n"
        "Try to allocate 6144 tokens.\n"
        "Available full tokens: 2112 (full_available_size=2112 + full_evictable_size_=0)"
    )

    assert (failure.needed_tokens, failure.available_tokens) == (6144, 2112)


def test_tensorrt_llm_and_tgi_refuse_in_their_words() -> None:
    executor = the_failure("[TRT-LLM] [E] Executor creation failed due to insufficient GPU memory.")
    warm_up = the_failure("RuntimeError: Not enough memory to handle 8192 prefill tokens. You need to decrease")

    assert (executor.backend, executor.kind) == ("TensorRT-LLM", FailureKind.KV_CACHE_REFUSED)
    assert (warm_up.backend, warm_up.needed_tokens) == ("TGI", 8192)


def test_llama_cpp_names_the_buffer() -> None:
    failure = the_failure(
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5000.25 MiB on device 1: cudaMalloc failed: out of memory"
    )

    assert failure.kind is FailureKind.ENGINE_OUT_OF_MEMORY
    assert failure.requested_bytes == printed("5000.25", 2**20)
    assert failure.device_index == 1


def test_vllms_sampler_warm_up_is_an_engine_that_starts() -> None:
    failure = the_failure(
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 512 dummy requests. Please try lowering `max_num_seqs`"
    )

    assert failure.kind is FailureKind.ENGINE_OUT_OF_MEMORY
    assert "512" in failure.detail


def test_the_sleep_mode_allocator_of_vllm_is_an_engine() -> None:
    failure = the_failure("CUDA Error: out of memory at /build/csrc/cumem_allocator.cpp:119")

    assert (failure.kind, failure.backend) == (FailureKind.ENGINE_OUT_OF_MEMORY, "vLLM")
