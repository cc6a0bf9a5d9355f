import pytest

from advisor.rules.compute.weights_on_host import weights_on_host
from advisor.rules.samples import GIB, a_breakdown
from advisor.rules.samples_time import a_copy_group, a_copy_profile, a_log_that_mentions


def check(size=20 * GIB, large=300, exposed=0.5):
    group = a_copy_group(moved_bytes=size, large_count=large, exposed_seconds=exposed, device_seconds=0.6)
    return weights_on_host.check(a_breakdown(), a_copy_profile(group), None, None, None)


@pytest.mark.parametrize(("size", "fires"), [(10 * GIB - 1, False), (10 * GIB, True)])
def test_a_gibibyte_a_step_is_more_than_batches_are(size, fires):
    assert (check(size=size) is not None) is fires


@pytest.mark.parametrize(("large", "fires"), [(159, False), (160, True)])
def test_weights_come_in_many_pieces_and_batches_in_few(large, fires):
    assert (check(large=large) is not None) is fires


@pytest.mark.parametrize(("exposed", "fires"), [(0.199, False), (0.201, True)])
def test_prefetched_weights_cost_nothing(exposed, fires):
    assert (check(exposed=exposed) is not None) is fires


def test_it_explains_the_copies_that_other_rules_see():
    assert set(check().supersedes) == {"INP103", "INP104"}


def test_a_loader_that_says_so_is_believed_and_slow_tokens_alone_hardly():
    said = a_log_that_mentions("layers-on-host", "offloaded 20/43 layers to GPU")
    slow = a_log_that_mentions("seconds-per-token", "0.7s/token")
    confidences = [weights_on_host.check(None, None, None, log, None).confidence for log in (said, slow)]
    assert confidences == [0.85, 0.4]


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("0.7s/token, usage at most 35%", True),
        ("prompt eval ~35 ms per token, eval ~500 ms per token", True),
        ("per token is about 2.9s", True),
        ("generation: 3.1 tokens/s", True),
        ("eval 12 ms per token", False),
        ("tokens/s 41234", False),
        ("grad_norm 0.82 tokens/s 41234", False),
        ("tokens/s: 2.5", True),
        ("11,300 tokens/s per GPU", False),
        ("Avg prompt throughput: 1203.1 tokens/s, Avg generation throughput: 2034.0 tokens/s", False),
        ("Avg generation throughput: 0.0 tokens/s", False),
        ("tokens/s is what we report", False),
        ("0.099 s/token", False),
        ("0.101 s/token", True),
    ],
)
def test_only_tokens_that_no_model_in_device_memory_is_so_slow_with_speak_for_it(text, fires):
    log = a_log_that_mentions("seconds-per-token", text)
    assert (weights_on_host.check(None, None, None, log, None) is not None) is fires


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("offloaded 20/43 layers to GPU", True),
        ("offloaded 33/33 layers to GPU", False),
        ("n_gpu_layers = 99", False),
        ("n_gpu_layers = 20", True),
        ("cpu offloading: False", False),
        ("we do not use cpu offloading", False),
        ("112.98 ms per token with offload", True),
    ],
)
def test_layers_that_are_all_on_the_device_do_not(text, fires):
    log = a_log_that_mentions("layers-on-host", text)
    assert (weights_on_host.check(None, None, None, log, None) is not None) is fires
