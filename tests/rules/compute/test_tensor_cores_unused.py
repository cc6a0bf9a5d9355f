import pytest

from advisor.model.finding import Severity
from advisor.rules.compute.tensor_cores_unused import tensor_cores_unused
from advisor.rules.samples import a_breakdown, a_failure
from advisor.rules.samples_time import a_ceiling, a_figure, a_log_that_mentions, a_mix

WARNING = "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled."


def check(share=0.6, ceilings=None, **mix):
    mix = a_mix(fp32_matmul_seconds=share, fp32_matmul_count=900, device_seconds=1.0, **mix)
    return tensor_cores_unused.check(a_breakdown(), mix, ceilings, None, None)


@pytest.mark.parametrize(("share", "fires"), [(0.099, False), (0.101, True)])
def test_it_fires_from_a_tenth_of_the_window_on(share, fires):
    assert (check(share) is not None) is fires


@pytest.mark.parametrize(
    ("name", "capability", "severity", "advice"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0", Severity.WARNING, "set_float32_matmul_precision"),
        ("Tesla V100-SXM2-32GB", "7.0", Severity.INFO, "GradScaler"),
        ("NVIDIA GeForce RTX 2080 Ti", "7.5", Severity.INFO, "GradScaler"),
        ("NVIDIA GeForce GTX 1660", "7.5", None, ""),
        ("Tesla P100-PCIE-16GB", "6.0", None, ""),
        ("AMD Instinct MI300X", "", None, ""),
        ("", "", None, ""),
    ],
)
def test_it_asks_what_the_card_can_do(name, capability, severity, advice):
    finding = check(device_name=name, capability=capability)
    assert (finding.severity if finding else None) == severity
    assert finding is None or advice in finding.actions[0].change


def test_what_could_be_won_follows_from_the_two_peaks_of_the_card():
    assert check(0.8, a_ceiling()).impact.step_ratio == pytest.approx(0.8 * (1 - 19.5 / 156))
    assert check(0.8).impact.step_ratio is None


def test_a_card_whose_fp32_peak_is_unknown_promises_nothing():
    ceilings = a_ceiling(dense_peaks={"tf32": a_figure(156e12)})
    assert check(0.8, ceilings).impact.step_ratio is None


def test_pytorchs_own_warning_in_a_log_is_enough():
    log = a_log_that_mentions("tf32-disabled", WARNING)
    assert tensor_cores_unused.check(None, None, None, log, None).confidence == 0.9
    assert tensor_cores_unused.check(None, None, None, log, a_failure()) is None


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("linear takes 8x as long in float32 as in float16", True),
        ("fp32 is 5 times slower than fp16", True),
        ("weights are float32, activations float16", False),
    ],
)
def test_a_comparison_of_both_formats_is_taken_as_a_hint(text, fires):
    log = a_log_that_mentions("float32", text)
    found = tensor_cores_unused.check(None, None, None, log, None)
    assert (found is not None) is fires
    assert found is None or found.confidence == 0.5
