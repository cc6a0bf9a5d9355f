from failure_messages import GIB, KIB, MIB, printed, the_failure

from advisor.model.failure import FailureKind

ADVICE = " Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure)."


def test_old_messages_print_gb_and_mean_gib() -> None:
    failure = the_failure(
        "RuntimeError: MPS backend out of memory (MPS allocated: 3.25 GB, other allocations: 8.50 GB, max"
        f" allowed: 12.00 GB). Tried to allocate 640.25 MB on private pool.{ADVICE}"
    )

    assert failure.kind is FailureKind.UNIFIED_MEMORY_LIMIT
    assert failure.allocated_bytes == printed("3.25", GIB)
    assert failure.other_allocations_bytes == printed("8.50", GIB)
    assert failure.allowed_bytes == 12 * GIB
    assert failure.requested_bytes == printed("640.25", MIB)
    assert failure.detail == "private pool"
    assert "1024" in failure.generation


def test_new_messages_print_gib_and_leave_out_other_allocations_that_are_none() -> None:
    failure = the_failure(
        "RuntimeError: MPS backend out of memory (MPS allocated: 40.10 GiB, max allowed: 40.25 GiB)."
        f" Tried to allocate 384.00 KiB on shared pool.{ADVICE}"
    )

    assert failure.generation == "MPS GiB"
    assert failure.other_allocations_bytes is None
    assert failure.requested_bytes == 384 * KIB
    assert failure.detail == "shared pool"


def test_the_first_wording_said_currently_allocated() -> None:
    failure = the_failure(
        "RuntimeError: MPS backend out of memory (currently allocated: 7.00 GB, max allowed: 7.50 GB)."
        " Tried to allocate 1.25 GB on private pool."
    )

    assert failure.allocated_bytes == 7 * GIB


def test_a_buffer_that_metal_refuses_is_a_limit_of_one_allocation() -> None:
    failure = the_failure("RuntimeError: Invalid buffer size: 24.50 GB")

    assert failure.generation == "Metal buffer limit"
    assert failure.requested_bytes == printed("24.50", GIB)


def test_the_message_may_be_broken_between_its_sentences() -> None:
    failure = the_failure(
        "RuntimeError: MPS backend out of memory (MPS allocated: 5.00 GB, other allocations: 384.00 KB,\n"
        "  max allowed: 9.07 GB).\nTried to allocate 3.75 GB on private pool."
    )

    assert failure.requested_bytes == printed("3.75", GIB)
    assert failure.allowed_bytes == printed("9.07", GIB)
