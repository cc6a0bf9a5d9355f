"""MEM406: settings that are given and not in effect."""

import pytest

from advisor.model.failure import FailureKind, LogText, Mention
from advisor.rules.memory.allocator_setting_not_applied import allocator_setting_not_applied
from advisor.rules.samples import GIB, a_failure, a_log, a_record

check = allocator_setting_not_applied.check


def given(value: str, name: str = "PYTORCH_CUDA_ALLOC_CONF") -> LogText:
    return a_log(settings=((name, value),))


@pytest.mark.parametrize(
    ("value", "recorded", "fires"),
    [
        ("expandable_segments:True", ("expandable_segments", "False"), True),
        ("expandable_segments:True", ("expandable_segments", "True"), False),
        ("max_split_size_mb:128", ("max_split_size", str(128 * 1024**2)), False),
        ("max_split_size_mb:128", ("max_split_size", "-1"), True),
        ("garbage_collection_threshold:0.8", ("garbage_collection_threshold", "0.8"), False),
        ("garbage_collection_threshold:0.8", ("garbage_collection_threshold", "0"), True),
        ("roundup_power2_divisions:16", ("roundup_power2_divisions", "{}"), False),
    ],
)
def test_what_is_given_is_compared_with_what_is_recorded(value: str, recorded: tuple[str, str], fires: bool) -> None:
    finding = check(given(value), a_record(allocator_settings=(recorded,)), None)
    assert (finding is not None) is fires


def test_a_snapshot_without_settings_proves_nothing() -> None:
    assert check(given("expandable_segments:True"), a_record(), None) is None


@pytest.mark.parametrize(
    ("name", "backend", "fires"),
    [
        ("PYTORCH_CUDA_ALLOC_CONFIG", "CUDA", True),
        ("PYTORCH_HIP_ALLOC_CONF", "CUDA", True),
        ("PYTORCH_HIP_ALLOC_CONF", "HIP", False),
        ("PYTORCH_CUDA_ALLOC_CONF", "HIP", False),  # ROCm reads both names
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "CUDA", False),
    ],
)
def test_a_name_that_nobody_reads_is_told(name: str, backend: str, fires: bool) -> None:
    finding = check(given("expandable_segments:True", name), None, a_failure(backend=backend))
    assert (finding is not None) is fires


def test_the_other_backend_replaces_the_settings() -> None:
    assert check(given("backend:cudaMallocAsync,max_split_size_mb:128"), None, None) is not None
    assert check(given("backend:cudaMallocAsync"), None, None) is None


@pytest.mark.parametrize(("ratio", "fires"), [("0.0", True), ("0.7", False)])
def test_a_limit_that_was_lifted_cannot_be_reached(ratio: str, fires: bool) -> None:
    failure = a_failure(kind=FailureKind.UNIFIED_MEMORY_LIMIT, backend="MPS", allowed_bytes=9 * GIB)
    assert (check(given(ratio, "PYTORCH_MPS_HIGH_WATERMARK_RATIO"), None, failure) is not None) is fires


def test_the_log_itself_may_say_so() -> None:
    text = "UserWarning: expandable_segments not supported on this platform"
    assert check(a_log(mentions=(Mention(topic="expandable-segments", line=2, text=text),)), None, None) is not None
