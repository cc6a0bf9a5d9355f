import pytest
from failure_messages import the_failure

from advisor.model.failure import FailureKind


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: DataLoader worker (pid 88) is killed by signal: Bus error. It is possible that dataloader's workers are out",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "Bus error (core dumped)",
        "RuntimeError: unable to write to file </torch_12_345>: No space left on device (28)",
        "RuntimeError: unable to open shared memory object </torch_12_345> in read-write mode",
        "OSError: [Errno 28] No space left on device: '/dev/shm/torch_1_2'",
    ],
)
def test_shared_memory_that_is_full(text: str) -> None:
    assert the_failure(text).kind is FailureKind.SHARED_MEMORY_EXHAUSTED


def test_nccls_segment_tells_its_size() -> None:
    failure = the_failure("NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ab12Cd (size 9637888)")

    assert failure.kind is FailureKind.SHARED_MEMORY_EXHAUSTED
    assert failure.requested_bytes == 9_637_888


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: received 0 items of ancdata",
        "RuntimeError: unable to open shared memory object </torch_9_8> in read-write mode: Too many open files (24)",
        "OSError: [Errno 28] No space left on device: '/data/checkpoints/last.pt'",
    ],
)
def test_open_files_and_full_disks_are_no_lack_of_memory(text: str) -> None:
    assert the_failure(text).kind is FailureKind.NOT_OUT_OF_MEMORY


def test_a_mapping_that_the_host_refuses_is_the_hosts() -> None:
    failure = the_failure("RuntimeError: unable to mmap 4096 bytes from file </torch_9_8>: Cannot allocate memory (12)")

    assert failure.kind is FailureKind.HOST_OUT_OF_MEMORY
