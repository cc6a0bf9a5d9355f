import pytest
from failure_messages import GIB, MIB, NEW_HINT, OLD_HINT, new_cuda, old_cuda, printed, the_failure

from advisor.model.failure import BLOCK_LIMIT, Failure, FailureKind, ProcessMemory


def test_the_cached_wording_counts_cached_as_reserved_beyond_allocated() -> None:
    failure = the_failure(old_cuda(tail="45.50 MiB cached)"))

    assert failure.generation == "torch 1.x cached"
    assert failure.kind is FailureKind.DEVICE_OUT_OF_MEMORY
    assert failure.requested_bytes == printed("1.50", GIB)
    assert failure.total_bytes == printed("15.90", GIB)
    assert failure.allocated_bytes == printed("11.25", GIB)
    assert failure.free_bytes == printed("768.44", MIB)
    assert failure.reserved_unallocated_bytes == printed("45.50", MIB)
    assert failure.reserved_bytes == printed("11.25", GIB) + printed("45.50", MIB)


def test_the_reserved_wording_leaves_the_difference_unallocated() -> None:
    failure = the_failure(old_cuda(device=3))

    assert failure.generation == "torch 1.4 reserved"
    assert failure.device_index == 3
    assert failure.reserved_bytes == printed("13.75", GIB)
    assert failure.reserved_unallocated_bytes == printed("13.75", GIB) - printed("11.25", GIB)


def test_the_hint_about_split_sizes_dates_the_message() -> None:
    assert the_failure(old_cuda() + OLD_HINT).generation == "torch 1.11 reserved"


def test_a_cap_on_the_process_is_read_in_the_old_list() -> None:
    failure = the_failure(old_cuda(tail="3.10 GiB allowed; 13.75 GiB reserved in total by PyTorch)"))

    assert failure.allowed_bytes == printed("3.10", GIB)
    assert failure.reserved_bytes == printed("13.75", GIB)


def test_figures_behind_the_old_list_are_not_taken_for_its_own() -> None:
    failure = the_failure(old_cuda(tail="13.75 GiB reserved in total by PyTorch)") + " 9.99 GiB free, 8.88 GiB cached")

    assert failure.free_bytes == printed("768.44", MIB)
    assert failure.reserved_unallocated_bytes == printed("13.75", GIB) - printed("11.25", GIB)


def test_the_misspelled_sentence_is_torch_2_1() -> None:
    message = new_cuda(prefix="torch.cuda.OutOfMemoryError: CUDA").replace("capacity", "capacty")

    failure = the_failure(message)

    assert failure.generation == "torch 2.1"
    assert failure.total_bytes == printed("79.15", GIB)


def test_the_sentences_are_read_whole() -> None:
    failure = the_failure(new_cuda(private="with 1.25 GiB allocated in private pools (e.g., CUDA Graphs), "))

    assert failure.requested_bytes == printed("2.25", GIB)
    assert failure.free_bytes == printed("1.31", GIB)
    assert failure.process_bytes == printed("77.83", GIB)
    assert failure.allocated_bytes == printed("70.50", GIB)
    assert failure.private_pool_bytes == printed("1.25", GIB)
    assert failure.reserved_unallocated_bytes == printed("6.75", GIB)
    assert failure.reserved_bytes == printed("70.50", GIB) + printed("6.75", GIB)
    assert failure.resolution_bytes == -(-GIB // 200)
    assert failure.exception == "torch.OutOfMemoryError"
    assert failure.gaps == ()


@pytest.mark.parametrize(
    ("message", "generation"),
    [
        (new_cuda(prefix="torch.cuda.OutOfMemoryError: CUDA"), "torch 2.2"),
        (
            new_cuda(
                prefix="torch.cuda.OutOfMemoryError: CUDA",
                private="with 46.00 MiB allocated in private pools (e.g., CUDA Graphs), ",
            ),
            "torch 2.4",
        ),
        (new_cuda(), "torch 2.5"),
        (
            new_cuda(hint=NEW_HINT.replace("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")),
            "torch 2.9",
        ),
    ],
)
def test_the_generation_is_the_first_version_that_prints_the_wording(message: str, generation: str) -> None:
    assert the_failure(message).generation == generation


def test_other_processes_of_the_device_are_listed() -> None:
    failure = the_failure(
        new_cuda(
            processes="Process 4242 has 12.02 GiB memory in use. Process 77 has 318.00 MiB memory in use."
            " Including non-PyTorch memory, this process has 60.10 GiB memory in use. "
        )
    )

    assert failure.other_processes == (
        ProcessMemory(pid=4242, used_bytes=printed("12.02", GIB)),
        ProcessMemory(pid=77, used_bytes=318 * MIB),
    )
    assert failure.process_bytes == printed("60.10", GIB)


def test_memory_that_the_driver_did_not_know_is_unknown_and_not_16_exbibytes() -> None:
    failure = the_failure(
        new_cuda(
            processes="Process 9 has 17179869184.00 GiB memory in use. Including non-PyTorch memory,"
            " this process has 17179869184.00 GiB memory in use. "
        )
    )

    assert failure.process_bytes is None
    assert failure.other_processes == (ProcessMemory(pid=9, used_bytes=None),)
    assert any("did not know" in gap for gap in failure.gaps)


@pytest.mark.parametrize("backend", ["HIP", "XPU", "MTIA", "MUSA", "MLU"])
def test_other_backends_speak_the_same_sentences(backend: str) -> None:
    failure = the_failure(new_cuda(prefix=f"torch.OutOfMemoryError: {backend}", processes="", hint=""))

    assert failure.backend == backend
    assert failure.process_bytes is None
    assert failure.allocated_bytes == printed("70.50", GIB)


def test_the_npu_list_has_active_memory_and_its_own_device_word() -> None:
    failure = the_failure(
        "RuntimeError: NPU out of memory. Tried to allocate 260.00 MiB (NPU 5; 60.96 GiB total capacity;"
        " 57.24 GiB already allocated; 57.24 GiB current active; 149.57 MiB free; 58.28 GiB reserved in"
        " total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
    )

    assert (failure.backend, failure.generation, failure.device_index) == ("NPU", "torch_npu", 5)
    assert failure.free_bytes == printed("149.57", MIB)
    assert "57.24 GiB current active" in failure.detail


def test_the_old_ipex_list_has_no_free_memory() -> None:
    failure = the_failure(
        "RuntimeError: XPU out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.11 GiB total capacity;"
        " 3.50 GiB already allocated; 3.75 GiB reserved in total by PyTorch)"
    )

    assert failure.generation == "IPEX"
    assert failure.free_bytes is None
    assert failure.gaps == ()


def test_a_size_beyond_an_exabyte_is_another_error() -> None:
    failure = the_failure("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.")

    assert failure.kind is FailureKind.NOT_OUT_OF_MEMORY
    assert failure.requested_bytes == 2**60


def test_a_message_that_people_wrapped_and_quoted_is_one_message() -> None:
    message = new_cuda(hint="")
    words = message.split(" ")
    wrapped = "\n".join("> " + " ".join(words[at : at + 7]) for at in range(0, len(words), 7))

    assert the_failure(wrapped).reserved_unallocated_bytes == printed("6.75", GIB)


def test_a_message_cut_by_its_user_says_what_it_lacks() -> None:
    message = new_cuda()
    failure = the_failure(message[: message.index("Including")])

    assert failure.free_bytes == printed("1.31", GIB)
    assert failure.allocated_bytes is None
    assert any("cut" in gap for gap in failure.gaps)


@pytest.mark.parametrize(
    "message",
    [
        old_cuda(tail="45.50 MiB cached)"),
        old_cuda(tail="3.10 GiB allowed; 13.75 GiB reserved in total by PyTorch)") + OLD_HINT,
        new_cuda(
            processes="Process 4242 has 12.02 GiB memory in use. This process has 66.00 GiB memory in use. 70.00 GiB allowed; ",
            private="with 46.00 MiB allocated in private pools (e.g., CUDA Graphs), ",
        ),
    ],
)
def test_a_cut_message_never_tells_another_figure_than_the_whole(message: str) -> None:
    whole = the_failure(message)
    fields = [name for name in Failure.__dataclass_fields__ if name.endswith("_bytes")]
    for end in range(message.index("memory") + 6, len(message)):
        part = the_failure(message[:end])
        for name in fields:
            figure = getattr(part, name)
            if name != "resolution_bytes" and figure is not None:
                assert figure == getattr(whole, name), (name, message[:end])


def test_the_async_allocator_speaks_in_a_table() -> None:
    failure = the_failure(
        "torch.OutOfMemoryError: Allocation on device 1 would exceed allowed memory. (out of memory)\n"
        "Currently allocated     : 15.22 GiB\n"
        "Requested               : 1.00 GiB\n"
        "Device limit            : 15.90 GiB\n"
        "Free (according to CUDA): 20.50 MiB\n"
        "PyTorch limit (set by user-supplied memory fraction)\n"
        "                        : 15.90 GiB\n"
    )

    assert failure.generation == "torch cudaMallocAsync"
    assert failure.device_index == 1
    assert failure.requested_bytes == GIB
    assert failure.allocated_bytes == printed("15.22", GIB)
    assert failure.free_bytes == printed("20.50", MIB)
    assert failure.allowed_bytes == failure.total_bytes == printed("15.90", GIB)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: cuda runtime error (2) : out of memory at /build/aten/src/THC/generic/THCStorage.cu:41",
        "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "thrust::system::system_error: cudaErrorMemoryAllocation: out of memory",
        "CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY",
        "RuntimeError: HIP error: out of memory",
        "RuntimeError: Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
    ],
)
def test_a_runtime_without_figures_is_still_the_device(text: str) -> None:
    failure = the_failure(text)

    assert failure.kind is FailureKind.DEVICE_OUT_OF_MEMORY
    assert failure.total_bytes is None


@pytest.mark.parametrize("gap", [" ", "  "])
def test_a_block_that_the_platform_does_not_allow_is_read_with_its_figures(gap: str) -> None:
    failure = the_failure(
        "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 6.25 GiB"
        f" (GPU{gap}1; 15.59 GiB total capacity; 2.50 GiB already allocated; 2.75 GiB reserved in total by PyTorch)"
    )

    assert failure.kind is FailureKind.DEVICE_OUT_OF_MEMORY
    assert failure.generation == BLOCK_LIMIT
    assert failure.backend == "XPU"
    assert failure.device_index == 1
    assert failure.requested_bytes == printed("6.25", GIB)
    assert failure.total_bytes == printed("15.59", GIB)
    assert failure.allocated_bytes == printed("2.50", GIB)
    assert failure.reserved_bytes == printed("2.75", GIB)
    assert failure.gaps == ()
