import pytest
from analysis.hand_made_trace import HandMadeTrace, a_breakdown_of

from advisor.analysis.kernel_mix import kernel_mix


def mix_of(trace):
    read = trace.read()
    return kernel_mix(read, a_breakdown_of(read))


def test_time_is_counted_by_what_the_names_say():
    mix = mix_of(
        HandMadeTrace()
        .kernel("ampere_sgemm_128x64_tn", 100, 40)
        .kernel("ampere_sgemm_128x64_tn", 150, 4)
        .kernel("void vectorized_elementwise_kernel<4, AddFunctor<float>>()", 200, 10)
        .kernel("void cudnn::ops::nchwToNhwcKernel<float>()", 220, 6)
        .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 230, 20)
    )
    assert mix.kernel_count == 5
    assert mix.seconds_of("matmul") == pytest.approx(44e-6)
    assert mix.count_of("matmul", "elementwise") == 3
    assert (mix.fp32_matmul_count, mix.tiny_matmul_count, mix.layout_count) == (2, 1, 1)
    assert mix.share_of("communication") == pytest.approx(20 / 80)
    assert mix.top[0].name == "ampere_sgemm_128x64_tn"
    assert (mix.top[0].count, mix.capability) == (2, "8.0")


def test_the_median_kernel_is_one_that_computes():
    mix = mix_of(HandMadeTrace().kernel("ncclDevKernel_AllReduce()", 0, 900, launched=0).kernel("void reduce_kernel<512>()", 1000, 10))
    assert mix.median_kernel_seconds == pytest.approx(10e-6)


def test_copies_are_no_kernels():
    assert mix_of(HandMadeTrace().copy("Memcpy HtoD (Pinned -> Device)", 10, 5, 64)) is None


@pytest.mark.parametrize(
    ("device", "kernel", "capability"),
    [
        (None, "volta_sgemm_64x64_nt", "7.0"),
        (None, "ampere_sgemm_64x64_nt", "8.0"),
        (None, "void some_kernel()", ""),
        ({"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4}, "x", ""),
        ({"id": 0, "name": "Tesla T4", "computeMajor": 7, "computeMinor": 5}, "x", "7.5"),
    ],
)
def test_the_capability_is_the_devices_or_what_the_kernels_names_need(device, kernel, capability):
    assert mix_of(HandMadeTrace(device=device).kernel(kernel, 10, 5)).capability == capability


def test_a_trace_without_a_device_has_no_mix():
    assert mix_of(HandMadeTrace().operator("aten::mm", 0, 10)) is None
