import pytest

from advisor.model.tables import OperatorRow
from advisor.rules.compute.conversion_heavy import conversion_heavy
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_mix, a_table


def by_trace(copies, **mix):
    mix = a_mix(seconds=(("matmul", 1 - copies), ("copy", copies)), device_seconds=1.0, **mix)
    return conversion_heavy.check(a_breakdown(), mix, None)


def by_table(*rows, **table):
    return conversion_heavy.check(None, None, a_table(*rows, **table))


@pytest.mark.parametrize(("share", "fires"), [(0.149, False), (0.151, True)])
def test_it_fires_from_fifteen_percent_of_the_kernels_time_on(share, fires):
    assert (by_trace(share) is not None) is fires


def test_conversions_between_layouts_are_answered_with_channels_last():
    assert "channels_last" in by_trace(0.3, layout_seconds=0.2).actions[0].change
    assert "channels_last" not in by_trace(0.3, layout_seconds=0.1).actions[0].change


@pytest.mark.parametrize(("seconds", "fires"), [(0.149, False), (0.151, True)])
def test_a_table_fires_by_the_rows_self_time_on_the_device(seconds, fires):
    rows = (
        OperatorRow(name="aten::copy_", self_device_seconds=seconds / 2),
        OperatorRow(name="aten::cat", self_device_seconds=seconds / 2),
    )
    found = by_table(*rows, device="CUDA", self_device_total_seconds=1.0)
    assert (found is not None) is fires


def test_without_a_device_the_same_reading_applies_to_cpu_time():
    row = OperatorRow(name="aten::contiguous", self_cpu_seconds=0.4)
    assert "CPU time" in by_table(row, self_cpu_total_seconds=1.0).statement


def test_the_processors_time_says_less_than_the_devices():
    row = OperatorRow(name="aten::contiguous", self_cpu_seconds=0.4, self_device_seconds=0.4)
    on_cpu = by_table(row, self_cpu_total_seconds=1.0)
    assert on_cpu.confidence < by_table(row, device="CUDA", self_device_total_seconds=1.0).confidence


@pytest.mark.parametrize("name", ["cudaLaunchKernel", "hipLaunchKernel", "aten::cudnn_convolution", "cudaMemcpyAsync"])
def test_where_a_device_was_used_the_processors_time_in_a_copy_is_waiting(name):
    rows = (OperatorRow(name="aten::copy_", self_cpu_seconds=0.6), OperatorRow(name=name, self_cpu_seconds=0.1))
    assert by_table(*rows, self_cpu_total_seconds=1.0) is None


def test_host_time_of_a_copy_is_not_device_time():
    row = OperatorRow(name="aten::copy_", self_cpu_seconds=0.9, self_device_seconds=0.01)
    assert by_table(row, device="CUDA", self_device_total_seconds=1.0) is None


def test_operators_that_only_sound_alike_are_not_counted():
    row = OperatorRow(name="aten::convolution", self_device_seconds=0.9)
    assert by_table(row, device="CUDA", self_device_total_seconds=1.0) is None
