import pytest
from failure_messages import GIB, KIB, failures_of, printed, the_failure

from advisor.model.failure import FailureKind


def test_numpy_tells_the_size_and_the_shape() -> None:
    failure = the_failure(
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 14.9 GiB for an array with shape"
        " (2000000, 1000) and data type float64"
    )

    assert failure.kind is FailureKind.HOST_OUT_OF_MEMORY
    assert failure.requested_bytes == printed("14.9", GIB)
    assert "(2000000, 1000) of float64" in failure.detail


def test_the_cpu_allocator_tells_the_bytes() -> None:
    failure = the_failure(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate"
        " memory: you tried to allocate 34359738368 bytes. Error code 12 (Cannot allocate memory)"
    )

    assert failure.generation == "DefaultCPUAllocator"
    assert failure.requested_bytes == 32 * GIB


def test_the_kernels_kill_names_the_process_and_what_it_held() -> None:
    failure = the_failure(
        "[12345.678] Out of memory: Killed process 4242 (python3) total-vm:99000000kB, anon-rss:60000000kB,"
        " file-rss:1024kB, shmem-rss:2048kB, UID:1000 pgtables:130000kB oom_score_adj:0"
    )

    assert failure.generation == "OOM killer"
    (victim,) = failure.other_processes
    assert (victim.pid, victim.name, victim.used_bytes) == (
        4242,
        "python3",
        (60_000_000 + 1024 + 2048) * KIB,
    )


def test_a_cgroups_kill_and_its_limit_are_one_failure() -> None:
    failure = the_failure(
        "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
        "memory: usage 67108864kB, limit 67108864kB, failcnt 912\n"
        "Memory cgroup out of memory: Killed process 31 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"
    )

    assert failure.generation == "cgroup OOM killer"
    assert failure.allowed_bytes == 64 * GIB


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=9.batch. Some of your processes",
            "Slurm",
        ),
        ("  reason: OOMKilled\n  exitCode: 137", "Kubernetes"),
        ("DataLoader worker (pid 77) is killed by signal: Killed.", "DataLoader worker killed"),
        (
            "RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly",
            "DataLoader worker exited",
        ),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "std::bad_alloc"),
        ("OSError: [Errno 12] Cannot allocate memory", "errno 12"),
        (
            "OSError: [WinError 1455] The paging file is too small for this operation to complete",
            "errno 12",
        ),
        ("MemoryError", "MemoryError"),
        ("Killed", "Killed"),
        ("run.sh: line 12:  4242 Killed                  python train.py --epochs 3", "Killed"),
        ("zsh: killed     python train.py", "Killed"),
        (
            "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.",
            "SIGKILL",
        ),
        ("Command '['python', 'train.py']' returned non-zero exit status 137.", "SIGKILL"),
        ("container exited with code 137", "SIGKILL"),
    ],
)
def test_every_word_for_a_killed_or_refused_process(text: str, generation: str) -> None:
    failure = the_failure(text)

    assert failure.kind is FailureKind.HOST_OUT_OF_MEMORY
    assert failure.generation == generation


def test_torchruns_block_names_the_rank_that_was_killed() -> None:
    failure = the_failure(
        "Root Cause (first observed failure):\n[0]:\n  time      : 2024-05-01_12:00:00\n"
        "  host      : node-3\n  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: 4242)\n"
        "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 4242\n"
    )

    assert failure.rank == 5
    assert any("SIGKILL" in gap for gap in failure.gaps)


def test_ray_tells_what_its_node_used() -> None:
    failure = the_failure(
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.9, ID: ab) where the task (task ID: cd, name=f, pid=7, memory"
        " used=3.10GB) was running was 121.50GB / 125.50GB (0.968), which exceeds the memory usage threshold"
    )

    assert failure.kind is FailureKind.HOST_OUT_OF_MEMORY
    assert failure.allocated_bytes == printed("121.50", GIB)
    assert failure.total_bytes == printed("125.50", GIB)


@pytest.mark.parametrize(
    "text",
    ["the scheduler killed 137 jobs", "except MemoryError:", "skilled workers", "oomkilled: false"],
)
def test_words_that_say_no_kill_are_no_failure(text: str) -> None:
    assert failures_of(text) == []


def test_a_kill_behind_another_failure_may_be_the_launchers() -> None:
    _, kill = failures_of(
        "RuntimeError: CUDA error: device-side assert triggered\n"
        "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n"
    )

    assert any("launcher" in gap for gap in kill.gaps)
