"""Lines that name a lack of memory: those that say that there was none, and those that say that there was."""

import pytest

from advisor.ingest.failure_denials import is_unreal


@pytest.mark.parametrize(
    "line",
    [
        "OOM: 0, retries: 0",
        "OOM count 0",
        "OOM events | 0",
        "RESOURCE_EXHAUSTED errors: 0",
        "memory.events: low 0 high 0 max 0 oom 0 oom_kill 0",
        "all good: 0 out of memory errors",
        '{"step": 5, "oom": 0, "oom_errors": 0}',
        "torch.cuda.OutOfMemoryError: 0 times",
        "Reason: OOMKilled never",
        '"OOMKilled": false,',
        "OOM did not occur",
        "torch.cuda.OutOfMemoryError not raised",
        "the OOM is fixed now",
        "If an out-of-memory error occurs in capture, consider a lower share of the device",
        "If capture fails with out of memory, set the share to 0.8",
        "--offload   use when you run out of memory (OOM)",
        "--batch N   lower this to avoid out of memory",
        "Batch size 64 would run out of memory; using 32",
        "systemd-oomd: Started Userspace Out-Of-Memory (OOM) Killer.",
        "OOM guard enabled",
    ],
)
def test_a_failure_that_is_counted_as_none_denied_or_supposed_is_unreal(line):
    assert is_unreal(line)


@pytest.mark.parametrize(
    "line",
    [
        "[rank 0] OOM in forward",
        "GPU 0: CUDA error: out of memory",
        "GPU 0 out of memory",
        "rank 0: OOM",
        "OOM: 0 bytes free",
        "OOM: 0.5 GiB left",
        "oom 3",
        "Reason: OOMKilled",
        "OOMKilled, not evicted",
        "it did not help: OOM again",
        "that did not solve the OOM",
        "no idea why it is OOM",
        "OOM was not solved by a smaller batch",
        "when I use two cards I get CUDA out of memory",
        "I would like to train a large model, but CUDA out of memory",
        "why do I get CUDA out of memory?",
        "python invoked oom-killer: gfp_mask=0x100cca",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "RESOURCE_EXHAUSTED: Out of memory allocating 1024 bytes.",
        "zero OOMs yesterday; CUDA out of memory today",
        "loss 2.31 at step 12",
    ],
)
def test_a_failure_that_happened_is_not_unreal_whatever_numbers_and_negations_stand_around_it(line):
    assert not is_unreal(line)
